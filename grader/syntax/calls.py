"""Spell equal calls of torch alike: names of arguments, defaults, functions and methods, modules of losses."""

import ast
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from grader.syntax.names import SurePaths, read_sure_paths
from grader.syntax.trees import Function, bindings, copied, is_literal

# In torch's own order. Parameters before `/` are written without a name. A parameter without a default here is
# always written, even if torch has a default. A test compares this table with the installed torch.
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
# Modules that call a function of the same meaning with the same further arguments.
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
# Methods of tensors, optimizers and networks on any object. They are also the parameters after the first of functions
# that do the same, such as `torch.mean(x, ...)` and `torch.nn.functional.softmax(x, ...)`.
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
# Paths of functions that do the same as a method of their first argument.
AS_METHODS: Mapping[str, str] = {
    **{f"torch.{name}": name for name in _METHODS if name not in ("zero_grad", "train")},
    **{f"torch.nn.functional.{name}": name for name in ("softmax", "log_softmax", "relu")},
}


@dataclass(frozen=True)
class Signature:
    """The parameters of a function: how many are written without a name, which may be, all names, the defaults."""

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

# No name in a source has a space in it.
_TORCH = " torch"
# `torch.optim.lr_scheduler.StepLR` and one more; only hostile text has longer paths.
_MOST_DOTS = 4
_MAY_ACT = ast.Call | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom


def spell_calls_alike(tree: ast.Module) -> ast.Module:
    """Return a copy in which equal calls of torch are spelled in one way, to measure an edit.

    Arguments get names and an order as in `FUNCTIONS`, without defaults. An import gets its own path,
    `torch.mean(x)` becomes `x.mean()`, `nn.MSELoss()(x, y)` becomes `F.mse_loss(x, y)`, `x.train(False)` becomes
    `x.eval()`, `x.shape[0]` becomes `len(x)`, `f(*[a, b])` becomes `f(a, b)`. A name that the file binds more than
    once does not count as an import, and a method that the file defines does not count as torch's.
    """
    plain = copied(tree)
    plain.body.insert(0, ast.Import(names=[ast.alias(name="torch", asname=_TORCH)]))
    spelled: ast.Module = _Spell(read_sure_paths(plain), _methods_of_its_own(plain)).visit(plain)
    return spelled


def _methods_of_its_own(tree: ast.Module) -> set[str]:
    """Return the names that may be methods of the file's own: functions, members of classes, attributes set."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found.update(bindings(node))
        elif isinstance(node, Function):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            found.add(node.attr)
    return found


class _Spell(ast.NodeTransformer):
    def __init__(self, sure: SurePaths, own_methods: Set[str]) -> None:
        self._path_of, self._bound, self._own_methods = sure.path_of, sure.bound, own_methods

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        node.args = [inner for item in node.args for inner in _spread(item)]
        if any(isinstance(item, ast.Starred) for item in node.args) or not all(k.arg for k in node.keywords):
            return node
        node = self._function_of_module(node)
        path = self._path_of(node.func)
        if path in FUNCTIONS:
            _arrange(node, FUNCTIONS[path])
        if path in AS_METHODS and AS_METHODS[path] not in self._own_methods:
            node = _method(node, AS_METHODS[path])
        match node.func:
            case ast.Attribute(attr=name) if name in METHODS and name not in self._own_methods:
                if not self._path_of(node.func):
                    _arrange(node, METHODS[name])
                    return _eval_mode(node)
        return self._length(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._under_its_path(node) or node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        found = self._under_its_path(node)
        if found is None:
            self.generic_visit(node)
        return found or node

    def _under_its_path(self, node: ast.Name | ast.Attribute) -> ast.expr | None:
        if not isinstance(node.ctx, ast.Load):
            return None
        path = self._path_of(node)
        known = path.startswith("torch.") and path.count(".") <= _MOST_DOTS
        return _torch(path.removeprefix("torch.")) if known else None

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Subscript(
                value=ast.Attribute(value=value, attr="shape"), slice=ast.Constant(value=0), ctx=ast.Load()
            ):
                return self._len(value) or node
        return node

    def _length(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(
                func=ast.Attribute(value=value, attr="size"), args=[ast.Constant(value=0)], keywords=[]
            ):
                return self._len(value) or node
        return node

    def _len(self, value: ast.expr) -> ast.expr | None:
        if "len" in self._bound:
            return None
        return ast.Call(func=ast.Name(id="len", ctx=ast.Load()), args=[value], keywords=[])

    def _function_of_module(self, node: ast.Call) -> ast.Call:
        """Return `F.mse_loss(x, y)` for `nn.MSELoss()(x, y)`; a module with other arguments than constants stays."""
        if not isinstance(node.func, ast.Call) or node.keywords:
            return node
        made = node.func
        name = MODULES.get(self._path_of(made.func), "")
        constant = all(is_literal(item.value) for item in made.keywords)
        if not name or made.args or not constant or len(node.args) != (1 if "softmax" in name else 2):
            return node
        return ast.Call(func=_torch(f"nn.functional.{name}"), args=node.args, keywords=made.keywords)


def _torch(path: str) -> ast.expr:
    node: ast.expr = ast.Name(id=_TORCH, ctx=ast.Load())
    for part in path.split("."):
        node = ast.Attribute(value=node, attr=part, ctx=ast.Load())
    return node


def _spread(item: ast.expr) -> Sequence[ast.expr]:
    match item:
        case ast.Starred(value=ast.List(elts=several) | ast.Tuple(elts=several)):
            return several
    return [item]


def _arrange(call: ast.Call, signature: Signature) -> None:
    """Give the arguments of a call the names and the order of its signature; changes the call."""
    if len(call.args) > len(signature.positional):
        return
    given = dict(zip(signature.positional, call.args, strict=False))
    named = {item.arg: item.value for item in call.keywords if item.arg is not None}
    if given.keys() & named.keys() or not named.keys() <= set(signature.keywords):
        return
    before = [*given.values(), *named.values()]
    given |= named
    plain = signature.positional[: signature.plain]
    if not all(name in given for name in plain):
        return
    after = [given[name] for name in signature.keywords if name in given]
    if [item for item in before if _may_act(item)] != [item for item in after if _may_act(item)]:
        return  # arguments with effects would be evaluated in another order
    call.args = [given[name] for name in plain]
    call.keywords = [
        ast.keyword(arg=name, value=given[name])
        for name in signature.keywords[signature.plain :]
        if name in given and not _same_constant(given[name], signature.defaults.get(name))
    ]


def _may_act(node: ast.expr) -> bool:
    return any(isinstance(inner, _MAY_ACT) for inner in ast.walk(node))


def _same_constant(given: ast.expr, default: ast.expr | None) -> bool:
    if default is None:
        return False
    try:
        ours, theirs = ast.literal_eval(default), ast.literal_eval(given)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    kinds = {type(item) for item in (ours, theirs)}
    return bool(ours == theirs) and (len(kinds) == 1 or kinds == {int, float})


def _method(call: ast.Call, name: str) -> ast.Call:
    """Return `x.mean(...)` for `torch.mean(x, ...)`."""
    rest = [item for item in call.keywords if item.arg != "input"]
    first = call.args[:1] or [item.value for item in call.keywords if item.arg == "input"]
    if not first or {item.arg for item in rest} - set(METHODS[name].keywords):
        return call
    return ast.Call(
        func=ast.Attribute(value=first[0], attr=name, ctx=ast.Load()), args=call.args[1:], keywords=rest
    )


def _eval_mode(call: ast.Call) -> ast.Call:
    """Return `x.eval()` for `x.train(False)`, as torch defines it."""
    match call:
        case ast.Call(
            func=ast.Attribute(value=value, attr="train"),
            args=[],
            keywords=[ast.keyword(arg="mode", value=ast.Constant(value=False))],
        ):
            return ast.Call(
                func=ast.Attribute(value=value, attr="eval", ctx=ast.Load()), args=[], keywords=[]
            )
    return call
