"""Train until a value is NaN or infinite, then repeat that step and find the operation that produced the value.

The check names the first operation that creates a NaN or an infinity. (The minus infinity in an attention mask does not
count, because no operation computes it.) For this operation, the check shows the layer, the resulting tensor, the line
of the experiment file and the largest input value. If an input was already infinite, the check also shows the line
where this infinity came from. From that line, search backwards for the cause. Typical causes are exp(90), which
overflows in float32, a division by a norm of zero, and a softmax over a row that is completely masked.

`grows` means that all values are finite, but the loss exceeds 100 times the first loss.
"""

import itertools
import math
import traceback
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.module_tracker import ModuleTracker

from harness.checks.core.finding import Cell, Finding, Table, short
from harness.checks.core.subject import Subject, Trial
from harness.checks.overfit import BLOW_UP
from harness.run.metrics_log import Record

SHOWN = 5  # number of steps in the table
# These operations return uninitialized memory or only read a value, so they do not create a NaN or an infinity.
_ANY_VALUE = ("empty", "new_empty", "_local_scalar")
_OPTIMIZERS = str(Path(torch.optim.__file__).parent)


def measure(subject: Subject) -> Finding:
    """Train until a value is not finite, then repeat the run up to that step and watch its operations."""
    trial = subject.trial()
    records: list[Record] = []
    failed, origin = "", None
    for record in trial.records(trial.batches(trial.steps)):
        records.append(record)
        if failed := _not_finite(trial, record):
            origin = _watch(subject, len(records) - 1)
            break
    losses = [abs(record["loss"]) for record in records]
    greatest = max(losses)
    figures: dict[str, Cell] = {"steps": len(records), "greatest loss": greatest}
    if failed:
        outcome, at = "non-finite" if origin else "came-in", records[-1]["step"]
        figures |= {"first step that is not finite": at, "what": failed, **(origin or {})}
        summary = f"step {at}: {failed}"
        if origin:
            summary = "step {}, {pass}: {first operation} ({in}), {result}".format(at, **origin)
    else:
        outcome = "grows" if greatest > BLOW_UP * losses[0] else "finite"
        at = losses.index(greatest)
        summary = f"all {len(records)} steps are finite; the largest loss is {short(greatest)}, at step {at}"
    rows = tuple((record["step"], record["loss"], record["grad_norm"]) for record in records[-SHOWN:])
    return Finding(
        outcome, summary, figures, tables=(Table("The last steps", ("step", "loss", "norm of the gradient"), rows),)
    )


def _not_finite(trial: Trial, record: Record) -> str:
    """Return a message if loss, gradient, a weight or a buffer is not finite after a step, otherwise ""."""
    if not math.isfinite(record["loss"]):
        return f"the loss is {record['loss']}"
    norm = record["grad_norm"]
    # A gradient scaler skips an update if its gradients overflow, so an infinite gradient does no harm.
    scaled = bool(trial.experiment.scalers())
    if norm is not None and not math.isfinite(norm) and record["optimizer_steps"] and not scaled:
        return f"the norm of the gradient is {norm}"
    for name, tensor in (*trial.model.named_parameters(), *trial.model.named_buffers()):
        if tensor.is_floating_point() and not bool(tensor.detach().isfinite().all()):
            return f"{name} is not finite after the update"
    return ""


def _watch(subject: Subject, failing: int) -> dict[str, Cell] | None:
    """Repeat the run up to a step; return a description of its first operation that produces NaN or infinity."""
    trial = subject.trial()
    steps = trial.records(trial.batches(trial.steps))
    for _ in itertools.islice(steps, failing):
        pass
    with ModuleTracker() as tracker:
        watch = _OperationWatch(trial, tracker)
        with watch:
            next(steps)
    return watch.origin


class _OperationWatch(TorchDispatchMode):
    """Watch operations and describe the first one that produces NaN or infinity.

    `origin` is None until there is such an operation. Then it contains entries for the finding: the ATen name of the
    operation, the pass (forward, backward or update), the layer or autograd node, the resulting tensor, the line of the
    experiment file, and the largest input value.
    """

    def __init__(self, trial: Trial, tracker: ModuleTracker) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.origin: dict[str, Cell] | None = None
        self._given = ""  # the last operation that got NaN or infinity as a scalar argument
        self._path = str(trial.experiment.path)
        self._names = {parameter.data_ptr(): name for name, parameter in trial.model.named_parameters()}
        self._tracker = tracker

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation and check its result."""
        given = [] if self.origin else _tensors((args, kwargs))
        largest = max((_largest(tensor) for tensor in given), default=0.0)
        entered = set[str]().union(*map(_not_finite_values, given))
        scalars = _not_finite_scalars((args, kwargs))
        result = func(*args, **(kwargs or {}))
        if self.origin is None and not func.__name__.startswith(_ANY_VALUE):
            wrong = [tensor for tensor in _tensors(result) if _not_finite_values(tensor) - entered - scalars]
            if wrong:
                self.origin = self._describe(func, wrong[0], largest)
                if entered:
                    source = f", given by {self._given}" if self._given else ""
                    self.origin["went in and is not finite"] = " and ".join(sorted(entered)) + source
            elif scalars:
                self._given = f"{func.overloadpacket.__name__}, {self._line(traceback.extract_stack())}"
        return result

    def _line(self, stack: traceback.StackSummary) -> str:
        frames = [frame for frame in stack if frame.filename == self._path]
        return f"line {frames[-1].lineno}, in {frames[-1].name}" if frames else "-"

    def _describe(self, func: Any, tensor: Tensor, largest: float) -> dict[str, Cell]:
        stack = traceback.extract_stack()
        node = torch._C._current_autograd_node()
        layers = self._tracker.parents - {"Global"}
        if any(frame.filename.startswith(_OPTIMIZERS) for frame in stack):
            phase, where = "update", "the optimizer's step"
        elif node is not None:
            phase, where = "backward", str(node.name())
        else:
            phase, where = "forward", max(layers, key=len, default="outside any layer")
        name = self._names.get(tensor.data_ptr())
        shape = "x".join(map(str, tensor.shape)) or "a number"
        words = f"{shape} of {str(tensor.dtype).removeprefix('torch.')}"
        if tensor.numel() > 1:
            words += f", {int((~tensor.detach().isfinite()).sum())} of {tensor.numel()} not finite"
        return {
            "first operation": str(func.overloadpacket.__name__),
            "pass": phase,
            "in": where,
            "result": f"{name}, {words}" if name else words,
            "experiment": self._line(stack),
            "largest value that went in": largest,
        }


def _tensors(values: Any) -> list[Tensor]:
    return [
        value
        for value in tree_leaves(values)
        if isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex()) and value.numel()
    ]


def _not_finite_values(tensor: Tensor) -> set[str]:
    """Return which of "nan", "inf" and "-inf" a tensor contains."""
    values = torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor.detach()
    tests = {"nan": torch.isnan, "inf": torch.isposinf, "-inf": torch.isneginf}
    if bool(values.isfinite().all()):
        return set()
    return {name for name, test in tests.items() if bool(test(values).any())}


def _not_finite_scalars(values: Any) -> set[str]:
    return {str(value) for value in tree_leaves(values) if isinstance(value, float) and not math.isfinite(value)}


def _largest(tensor: Tensor) -> float:
    return float(tensor.detach().abs().nan_to_num(0.0, 0.0, 0.0).max())
