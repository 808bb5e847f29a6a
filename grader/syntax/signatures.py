"""How functions of torch are called: their parameters in order, and the defaults that need not be written."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# In torch's own order, before `/` what these pages write without a name. A test holds them against the
# installed torch. What has no default is passed, whether it has one in torch or not.
_LOSSES = {
    "cross_entropy": "weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean', "
    "label_smoothing=0.0",
    "nll_loss": "weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean'",
    "mse_loss": "size_average=None, reduce=None, reduction='mean'",
    "l1_loss": "size_average=None, reduce=None, reduction='mean'",
    "smooth_l1_loss": "size_average=None, reduce=None, reduction='mean', beta=1.0",
    "huber_loss": "reduction='mean', delta=1.0",
    "binary_cross_entropy_with_logits": "weight=None, size_average=None, reduce=None, reduction='mean', "
    "pos_weight=None",
}
# A module whose call is the call of a function with the same further arguments.
MODULES = {
    "torch.nn.CrossEntropyLoss": "cross_entropy",
    "torch.nn.NLLLoss": "nll_loss",
    "torch.nn.MSELoss": "mse_loss",
    "torch.nn.L1Loss": "l1_loss",
    "torch.nn.SmoothL1Loss": "smooth_l1_loss",
    "torch.nn.HuberLoss": "huber_loss",
    "torch.nn.BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "torch.nn.Softmax": "softmax",
    "torch.nn.LogSoftmax": "log_softmax",
}
_NORM = (
    "num_features, /, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None"
)
_SIGNATURES = {
    "torch.nn.functional.softmax": "input, /, dim=None, _stacklevel=3, dtype=None",
    "torch.nn.functional.log_softmax": "input, /, dim=None, _stacklevel=3, dtype=None",
    "torch.nn.functional.relu": "input, /, inplace=False",
    "torch.nn.functional.dropout": "input, /, p=0.5, training=True, inplace=False",
    "torch.nn.Softmax": "dim=None",
    "torch.nn.LogSoftmax": "dim=None",
    "torch.nn.Linear": "in_features, out_features, /, bias=True, device=None, dtype=None",
    "torch.nn.Conv2d": "in_channels, out_channels, /, kernel_size, stride=1, padding=0, dilation=1, groups=1, "
    "bias=True, padding_mode='zeros', device=None, dtype=None",
    "torch.nn.BatchNorm1d": _NORM,
    "torch.nn.BatchNorm2d": _NORM,
    "torch.nn.ReLU": "inplace=False",
    "torch.nn.GELU": "approximate='none'",
    "torch.nn.Flatten": "start_dim=1, end_dim=-1",
    "torch.nn.Dropout": "p, /, inplace=False",
    "torch.optim.SGD": "params, /, lr, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, "
    "maximize=False, foreach=None, differentiable=False, fused=None",
    "torch.optim.Adam": "params, /, lr, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, amsgrad=False, *, "
    "foreach=None, maximize=False, capturable=False, differentiable=False, fused=None, "
    "decoupled_weight_decay=False",
    "torch.optim.AdamW": "params, /, lr, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.01, amsgrad=False, *, "
    "maximize=False, foreach=None, capturable=False, differentiable=False, fused=None",
    "torch.amp.GradScaler": "device, /, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, "
    "growth_interval=2000, enabled=True",
    "torch.autocast": "device_type, /, dtype=None, enabled=True, cache_enabled=None",
}
# Methods of tensors, optimizers and networks, whatever they are called on; of the functions `torch.mean(x, ...)`
# and `torch.nn.functional.softmax(x, ...)` that do what the method does, the parameters after the first.
_METHODS = {
    "zero_grad": "set_to_none=True",
    "train": "mode=True",
    "softmax": "dim, dtype=None",
    "log_softmax": "dim, dtype=None",
    "mean": "dim=None, keepdim=False, *, dtype=None",
    "sum": "dim=None, keepdim=False, *, dtype=None",
    "argmax": "dim=None, keepdim=False",
    "flatten": "start_dim=0, end_dim=-1",
    "relu": "",
}
# Functions that are methods of their first argument, by path.
AS_METHODS: Mapping[str, str] = {
    **{f"torch.{name}": name for name in _METHODS if name not in ("zero_grad", "train")},
    **{f"torch.nn.functional.{name}": name for name in ("softmax", "log_softmax", "relu")},
}


@dataclass(frozen=True)
class Signature:
    """The parameters of a function: how many are written without a name, all that may be, and the defaults."""

    plain: int
    positional: Sequence[str]
    keywords: Sequence[str]
    defaults: Mapping[str, ast.expr]


def _read(text: str) -> Signature:
    definition = ast.parse(f"def f({text}): ...").body[0]
    assert isinstance(definition, ast.FunctionDef)
    arguments = definition.args
    positional = [item.arg for item in (*arguments.posonlyargs, *arguments.args)]
    only = [item.arg for item in arguments.kwonlyargs]
    defaults = dict(
        zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
    )
    defaults |= {
        name: value for name, value in zip(only, arguments.kw_defaults, strict=True) if value is not None
    }
    return Signature(len(arguments.posonlyargs), positional, [*positional, *only], defaults)


def _with_modules() -> dict[str, str]:
    found = dict(_SIGNATURES)
    for path, name in MODULES.items():
        if name in _LOSSES:
            found[path] = _LOSSES[name]
            found[f"torch.nn.functional.{name}"] = f"input, target, /, {_LOSSES[name]}"
    return found


FUNCTIONS: Mapping[str, Signature] = {path: _read(text) for path, text in _with_modules().items()}
METHODS: Mapping[str, Signature] = {name: _read(text) for name, text in _METHODS.items()}
