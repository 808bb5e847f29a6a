"""Measure each batch of a run: the gradients that the optimizer used, and the outputs of two layers.

A hook that runs last before every optimizer step reads the gradients. So they are the gradients that the optimizer
uses, no matter where the experiment clears, unscales or clips them. On the CPU, NumPy computes their sums and norms
without a copy, because with portable numerics the reductions of torch use no vector instructions and take four times as
long. On a GPU, torch computes them, and a single transfer copies all values of a batch.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from harness.errors import UserError
from harness.run.experiment import HarnessFault
from harness.run.metrics_log import Record, format_record, log_metrics
from harness.run.step_hooks import LastStepHook

BeforeStep = Callable[[torch.optim.Optimizer, Callable[[], "BatchMeasurements"]], None]
Scalar = Tensor | float  # a tensor while the value is on a GPU
PLACES = ("first", "last")
_NOT_RECORDED = (math.nan, math.nan)
_WIDE = (torch.float32, torch.float64)
_INTEGERS = {
    4: np.dtype("i4"),
    8: np.dtype("i8"),
}  # the type of integers with the same size as a float, by size in bytes


class Recorder:
    """Measures a model through hooks while training steps run.

    Use it as a context manager, which removes all hooks at the end. clip_norm: the value to which the global gradient
    norm is clipped before each optimizer step, or None. before_step: is called before each optimizer step, with the
    optimizer and a function that returns the measurements so far, without the loss.
    """

    def __init__(
        self, model: nn.Module, *, clip_norm: float | None = None, before_step: BeforeStep | None = None
    ) -> None:
        named = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self._parameters = list(named.values())
        self._sizes = {name: p.numel() for name, p in named.items()}
        self._indices = {id(p): index for index, p in enumerate(self._parameters)}
        self._clip_norm = clip_norm
        self._judge_step = before_step
        self._model = model
        self._handles: list[RemovableHandle | LastStepHook] = []
        self._watched: list[LeftOverGradients] = []
        self._left_over: list[Scalar] = []
        self._start_batch()

    def __enter__(self) -> "Recorder":
        self._handles = [
            LastStepHook(guard_hook(self._before_step)),
            first_layer(self._model).register_forward_hook(self._activation_hook("first")),
            self._model.register_forward_hook(self._activation_hook("last")),
        ]
        self._watched = [LeftOverGradients(parameter, self._left_over) for parameter in self._parameters]
        self._handles += [handle for watch in self._watched for handle in watch.handles]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _start_batch(self) -> None:
        self._steps = 0
        self._lr: float | None = None
        self._left_over.clear()
        self._norms: list[tuple[Scalar, Scalar, Scalar]] = []  # one entry for each parameter, after an optimizer step
        self._activations: dict[str, tuple[Scalar, Scalar]] = {}
        self._outputs: dict[str, Tensor] = {}

    def _activation_hook(self, place: str) -> Callable[..., None]:
        def note(module: nn.Module, inputs: object, output: object) -> None:
            if torch.is_grad_enabled() and isinstance(output, Tensor) and output.is_floating_point():
                # Copy the output, because the next layer may change it in place. Compute mean and variance later, with
                # the gradients: here, between two layers, other data fill the processor's caches, and it would take ten
                # times as long.
                self._outputs[place] = output.detach().clone()

        return guard_hook(note)

    def _before_step(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        self._steps += 1
        rates = [float(group["lr"]) for group in optimizer.param_groups]
        self._lr = max(rates if self._lr is None else [self._lr, *rates])
        # Under a GradScaler, a fused optimizer divides the gradients by this scale in its step. Other optimizers get
        # unscaled gradients.
        scale: Tensor | None = getattr(optimizer, "grad_scale", None)
        if self._clip_norm is not None:
            limit = self._clip_norm if scale is None else self._clip_norm * float(scale)
            torch.nn.utils.clip_grad_norm_([p for p in self._parameters if p.grad is not None], limit)
        with np.errstate(all="ignore"):  # record an overflow as a value; it is not an error
            if not self._norms:
                self._norms = [gradient_norms(parameter, scale) for parameter in self._parameters]
            else:  # if there are several optimizers, each step measures the parameters of its optimizer
                for parameter in (p for group in optimizer.param_groups for p in group["params"]):
                    if (index := self._indices.get(id(parameter))) is not None:
                        self._norms[index] = gradient_norms(parameter, scale)
            self._sum_up_outputs()
        for watch in self._watched:
            watch.is_fresh = False
        if self._judge_step is not None:
            self._judge_step(optimizer, lambda: self._measurements(math.nan))

    def _sum_up_outputs(self) -> None:
        for place, output in self._outputs.items():
            self._activations[place] = mean_and_variance(output)
        self._outputs.clear()

    def measure_batch(self, loss: Tensor) -> "BatchMeasurements":
        """Return the measurements of the batch that just ran, and prepare for the next batch.

        If the batch had no optimizer step, measure the gradients that are in `.grad` at its end.
        """
        with np.errstate(all="ignore"):
            self._sum_up_outputs()
            self._norms = self._norms or [gradient_norms(parameter, None) for parameter in self._parameters]
        measured = self._measurements(loss.item() if loss.device.type == "cpu" else loss)
        self._start_batch()
        return measured

    def _measurements(self, loss: Scalar) -> "BatchMeasurements":
        scalars = [loss]
        for norms in self._norms:
            scalars += norms
        for place in PLACES:
            scalars += self._activations.get(place, _NOT_RECORDED)
        scalars += self._left_over
        recorded = frozenset(self._activations)
        return BatchMeasurements(as_floats(scalars), self._sizes, self._lr, self._steps, recorded)

    def end_batch(self, loss: Tensor) -> Record:
        """Return the log record of the batch that just ran, and prepare for the next batch."""
        return self.measure_batch(loss).record()


def skips_step(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether a fused optimizer is about to skip its step, because a GradScaler has found an overflow.

    Under a GradScaler, other optimizers are not called at all for a step that is skipped.
    """
    found = getattr(optimizer, "found_inf", None)
    return found is not None and bool(found)


class LeftOverGradients:
    """Watches one parameter for a leftover gradient: a `.grad` that the first backward pass after a step finds.

    found: the list that gets two norms for each leftover gradient, of the old gradient and of the new one. is_fresh:
    whether a backward pass came since the last step. A first hook measures the leftover gradient. A second
    hook records the measurement only if the backward pass adds to `.grad`, because `torch.autograd.grad` does not.
    """

    def __init__(self, parameter: Tensor, found: list[Scalar]) -> None:
        self.is_fresh = False
        self._pending: list[Scalar] = []
        self._found = found
        self._parameter = parameter
        self.handles = [
            parameter.register_hook(self._note),
            parameter.register_post_accumulate_grad_hook(self._confirm),
        ]

    def _note(self, gradient: Tensor) -> None:
        self._pending = []
        if self.is_fresh or self._parameter.grad is None:
            return
        try:
            self._pending = [gradient_norm(self._parameter.grad), gradient_norm(gradient)]
        except Exception as error:
            raise HarnessFault(f"recording failed: {error}") from error

    def _confirm(self, _: Tensor) -> None:
        self.is_fresh = True
        self._found += self._pending
        self._pending = []


@dataclass(frozen=True, slots=True)
class BatchMeasurements:
    """The measurements of one batch, which `record` turns into a log record.

    values: the loss, three values for each parameter, mean and variance of two activations, and two norms for each
    leftover gradient. sizes: the number of entries of each parameter.
    """

    values: list[float]
    sizes: dict[str, int]
    lr: float | None
    optimizer_steps: int
    activations: frozenset[str]

    @property
    def loss(self) -> float:
        """The loss of the batch."""
        return self.values[0]

    @property
    def has_finite_gradients(self) -> bool:
        """Whether no gradient has an entry that is NaN or infinite. A missing gradient has three NaNs, not two."""
        ends = range(3, 1 + 3 * len(self.sizes), 3)
        return all(math.isfinite(self.values[end - 1]) or math.isnan(self.values[end]) for end in ends)

    def record(self) -> Record:
        """Return the log record of the batch; docs/harness.md explains each field."""
        grad_mean: dict[str, float | None] = {}
        grad_norms: dict[str, float | None] = {}
        squares, zeros, entries = 0.0, 0.0, 0
        for index, (name, size) in enumerate(self.sizes.items()):
            absolute, norm, alive = self.values[1 + 3 * index : 4 + 3 * index]
            if math.isnan(
                alive
            ):  # NaN means that there is no gradient, because a NaN in a gradient counts as a non-zero entry
                grad_mean[name] = grad_norms[name] = None
                continue
            grad_mean[name] = absolute / max(size, 1)
            grad_norms[name] = norm
            squares += norm * norm  # `**` would raise an error if the square overflows
            zeros += size - alive
            entries += size
        rest = self.values[1 + 3 * len(self.sizes) :]
        activations, left_over = {"first": rest[:2], "last": rest[2:4]}, rest[4:]
        stale, fresh = (math.sqrt(sum(v * v for v in left_over[start::2])) for start in (0, 1))
        return {
            "loss": self.loss,
            "lr": self.lr,
            "grad_norm": math.sqrt(squares) if entries else None,
            "grad_mean": grad_mean,
            "grad_norm_by_parameter": grad_norms,
            "grad_zero_fraction": zeros / entries if entries else None,
            "stale_grad_ratio": stale / fresh if fresh else (math.inf if stale else 0.0),
            "optimizer_steps": self.optimizer_steps,
            "activations": {
                place: {"mean": mean, "var": variance} if place in self.activations else None
                for place, (mean, variance) in activations.items()
            },
        }


def gradient_norms(parameter: Tensor, scale: Tensor | None) -> tuple[Scalar, Scalar, Scalar]:
    """Return 1-norm, 2-norm and number of non-zero entries of the unscaled gradient, or NaNs without a gradient."""
    if parameter.grad is None:
        return math.nan, math.nan, math.nan
    first, second, alive = gradient_scalars(parameter.grad)
    if scale is None:
        return first, second, alive
    return first / scale.double(), second / scale.double(), alive


def mean_and_variance(values: Tensor) -> tuple[Scalar, Scalar]:
    """Return mean and variance over all entries, computed in at least float32.

    The variance is the mean squared deviation.
    """
    values = _widen(values)
    if values.is_cuda:
        variance, mean = torch.var_mean(values, correction=0)
        return mean, variance
    flat = values.numpy().reshape(-1)
    if not flat.size:
        return _NOT_RECORDED
    with np.errstate(all="ignore"):
        mean_value = np.add.reduce(flat) / flat.size
        flat = flat - mean_value
        return float(mean_value), float(np.dot(flat, flat)) / flat.size


def as_floats(scalars: list[Scalar]) -> list[float]:
    """Return all scalars as Python floats. If they are on a GPU, copy them in a single transfer."""
    tensors = [scalar.detach().reshape(()) for scalar in scalars if isinstance(scalar, Tensor)]
    moved = iter(torch.stack(tensors).tolist() if tensors else ())
    return [next(moved) if isinstance(scalar, Tensor) else scalar for scalar in scalars]


def first_layer(model: nn.Module) -> nn.Module:
    """Return the first module that has its own parameters. Its output is the `first` activation."""
    modules = model.modules()
    return next((m for m in modules if next(m.parameters(recurse=False), None) is not None), model)


def gradient_scalars(gradient: Tensor) -> tuple[Scalar, Scalar, Scalar]:
    """Return the 1-norm, the 2-norm and the number of non-zero entries. NaN counts as non-zero.

    Call this function under `np.errstate(all="ignore")`, because an overflow is a result and not an error.
    """
    gradient = _widen(gradient)
    if gradient.is_cuda:
        alive = torch.count_nonzero(gradient).double()
        return torch.linalg.vector_norm(gradient, 1), torch.linalg.vector_norm(gradient), alive
    absolute = np.abs(gradient.numpy().reshape(-1))
    # Count non-zero integers with the same bits: that is twice as fast, and 0.0 is the only absolute value without a
    # set bit.
    count = np.count_nonzero(absolute.view(_INTEGERS[absolute.itemsize]))
    return float(np.add.reduce(absolute)), math.sqrt(np.dot(absolute, absolute)), float(count)


def gradient_norm(gradient: Tensor) -> Scalar:
    """Return the 2-norm of a gradient."""
    gradient = _widen(gradient)
    if gradient.is_cuda:
        length: Tensor = torch.linalg.vector_norm(gradient)
        return length
    values = gradient.numpy().reshape(-1)
    with np.errstate(all="ignore"):
        return math.sqrt(np.dot(values, values))


def _widen(values: Tensor) -> Tensor:
    """Return the values detached from autograd, in float32 or float64."""
    if values.requires_grad:
        values = values.detach()
    return values if values.dtype in _WIDE else values.float()


def guard_hook(hook: Callable[..., None]) -> Callable[..., None]:
    """Return a hook that raises `HarnessFault` for an error in `hook`, which is not the student's mistake."""

    def run(*arguments: Any) -> None:
        try:
            hook(*arguments)
        except UserError:  # a guardrail ends the run
            raise
        except Exception as error:
            raise HarnessFault(f"recording failed: {error}") from error

    return run


# Write several records at once: after a training step, which fills the processor's caches with other data, making and
# formatting a record takes five times as long as after another record.
BATCHES_AT_ONCE = 32


class LogWriter:
    """Writes `metrics.log` during a run, `BATCHES_AT_ONCE` batches at a time, and passes each record to `note`.

    Use it as a context manager, which writes the remaining batches at the end, even after an error.
    """

    def __init__(self, file: TextIO, note: Callable[[Record], object]) -> None:
        self._file = file
        self._note = note
        self._held_back: list[tuple[Record, BatchMeasurements]] = []

    def __enter__(self) -> "LogWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def batch(self, position: Record, measured: BatchMeasurements) -> None:
        """Add a batch to the log. `position` contains its `step` and `epoch`."""
        self._held_back.append((position, measured))
        if len(self._held_back) >= BATCHES_AT_ONCE:
            self.flush()

    def epoch(self, record: Record) -> None:
        """Write the batches that were added, then the record of an epoch."""
        self.flush()
        log_metrics(self._file, record)

    def flush(self) -> None:
        """Write the batches that were added."""
        held_back, self._held_back = self._held_back, []
        records = [{**position, **measured.record()} for position, measured in held_back]
        self._file.writelines(map(format_record, records))
        self._file.flush()
        for record in records:
            self._note(record)
