"""Watch the first steps of the run: are network, batch norm and dropout in training mode while a loss is computed?

The run calls `model.train()` before each epoch, but `train_step` may change the mode, perhaps only in some steps. Only
forward passes that autograd records count. The table shows whether the layers that depend on the mode work: batch norm
must change its statistics, and dropout must set some values to zero. Batch norm may be in eval mode only if its
statistics were learnt before the run, as in fine-tuning. Statistics with mean 0 and variance 1 are initial values, so
they were not learnt.

If the last batch has more weight than all batches before it, the running statistics are not an average. In eval mode,
the network then uses the statistics of one random batch.

The modes need no threshold: a layer is either in training mode or not.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from harness.checks.core.finding import Finding, Table, percent
from harness.checks.core.subject import Subject

# figure                                   | healthy | broken | bound     | source
# share of the last batch in statistics    | <= 0.1  | >= 0.9 | SHARE 0.5 | PyTorch's momentum; TensorFlow's
# chance that dropout of 0.1 drops nothing | 10^-18  |        | STEPS 20  | a layer with 400 numbers
#
# In TensorFlow, momentum is the share of the old statistics that stays, usually 0.9 to 0.99. With batches of 8, over
# five seeds, a share of 0.1 for the last batch costs 0.01 of the accuracy, a share of 0.5 costs 0.05, and a share of
# 0.9 costs 0.09. The check makes 20 steps, because a validation within the epoch may end training mode after a few
# steps. Even in four steps, a dropout layer with 100 inputs gets 400 numbers.
STEPS = 20
SHARE = 0.5
_COLUMNS = ("layer", "kind", "in training mode", "works")


def measure(subject: Subject) -> Finding:
    """Make the first steps of the run, and watch the mode and the effect of each layer with hooks."""
    trial = subject.trial()
    watched = {name: m for name, m in trial.model.named_modules() if isinstance(m, _BatchNorm | _DropoutNd)}
    training: dict[str, bool] = {}
    works: dict[str, bool] = {}

    def watch(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        def note(layer: nn.Module, given: tuple[Tensor, ...], output: object) -> None:
            if torch.is_grad_enabled():
                training[name] = training.get(name, True) and layer.training
                if isinstance(layer, _DropoutNd):
                    dropped = isinstance(output, Tensor) and bool(((output == 0) & (given[0] != 0)).any())
                    works[name] = works.get(name, False) or dropped

        return note

    for name, module in {"": trial.model, **watched}.items():
        module.register_forward_hook(watch(name))
    before = {name: _statistics(module) for name, module in watched.items()}
    for batch in trial.batches(STEPS):
        trial.step(*batch)
    rows, wrong, idle = [], [], []
    for name, module in watched.items():
        after = _statistics(module)
        moved = any(not torch.equal(old, new) for old, new in zip(before[name], after, strict=True))
        worked = works.get(name) if isinstance(module, _DropoutNd) else moved
        rows.append((name or "the network", type(module).__name__, training.get(name), worked))
        if name not in training or (isinstance(module, _DropoutNd) and not module.p):
            continue
        if not training[name] and not (after and _learnt(before[name])):
            wrong.append(name)
        elif training[name] and not worked and (after or isinstance(module, _DropoutNd)):
            idle.append(name)
    if not training.get("", True) and len(wrong) == len(rows):
        wrong.append("")
    shares = {name: getattr(module, "momentum", None) or 0.0 for name, module in watched.items() if before[name]}
    forgets = [name for name, share in shares.items() if training.get(name) and share > SHARE]
    outcome = "eval-mode" if wrong else "idle" if idle else "forgets" if forgets else "training"
    more = (
        f"; the last batch makes up {percent(max(shares.values()))} of the statistics" if outcome == "forgets" else ""
    )
    return Finding(
        outcome,
        f"the network is in {'training' if training.get('', True) else 'eval'} mode;"
        f" {len(wrong) + len(idle)} of {len(rows)} layers with modes do not work{more}",
        {
            "network in training mode": training.get(""),
            "layers with modes": len(rows),
            "in eval mode": len([name for name in wrong if name]),
            "in training mode, but idle": len(idle),
            "share of the last batch in statistics, largest": max(shares.values(), default=None),
        },
        tables=(Table("Layers with modes", _COLUMNS, tuple(rows)),) if rows else (),
    )


def _statistics(module: nn.Module) -> list[Tensor]:
    found = [getattr(module, name, None) for name in ("running_mean", "running_var")]
    return [tensor.clone() for tensor in found if tensor is not None]


def _learnt(statistics: list[Tensor]) -> bool:
    return bool((statistics[0] != 0).any() or (statistics[-1] != 1).any())
