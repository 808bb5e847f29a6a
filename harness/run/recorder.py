"""Records what the optimizer used and what the layers put out, one record a batch, one transfer a batch."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.hooks import RemovableHandle

from harness.run.experiment import HarnessFault
from harness.run.metrics_log import Record
from harness.run.scalars import Scalar, gradient_scalars, mean_and_variance, norm, numbers


def first_layer(model: nn.Module) -> nn.Module:
    """Return the first module that has parameters of its own: its output is the `first` activation."""
    for module in model.modules():
        if next(module.parameters(recurse=False), None) is not None:
            return module
    return model


class Recorder:
    """Watches one model through hooks while a training step runs.

    Gradients are read in a pre-hook of *every* optimizer's step, so they are the ones that it used, wherever
    the experiment clears, unscales or clips them. Use as a context manager: leaving it removes all hooks.
    """

    def __init__(self, model: nn.Module, *, clip_norm: float | None = None) -> None:
        self._parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self._sizes = {name: p.numel() for name, p in self._parameters.items()}
        self._indices = {id(p): index for index, p in enumerate(self._parameters.values())}
        self._clip_norm = clip_norm
        self._model = model
        self._handles: list[RemovableHandle] = []
        self._fresh: set[int] = set()
        self._start_batch()

    def __enter__(self) -> "Recorder":
        self._handles = [
            register_optimizer_step_pre_hook(self._guarded(self._before_step)),
            first_layer(self._model).register_forward_hook(self._activation_hook("first")),
            self._model.register_forward_hook(self._activation_hook("last")),
        ]
        for index, parameter in enumerate(self._parameters.values()):
            note, confirm = self._gradient_hooks(index, parameter)
            self._handles.append(parameter.register_hook(self._guarded(note)))
            self._handles.append(parameter.register_post_accumulate_grad_hook(self._guarded(confirm)))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _start_batch(self) -> None:
        self._steps = 0
        self._lr: float | None = None
        self._norms: dict[int, tuple[Scalar, Scalar, Scalar]] = {}
        self._left_over: list[tuple[Scalar, Scalar]] = []
        self._activations: dict[str, tuple[Scalar, Scalar]] = {}
        self._outputs: dict[str, Tensor] = {}

    def _guarded(self, hook: Callable[..., None]) -> Callable[..., None]:
        def run(*arguments: Any) -> None:
            try:
                hook(*arguments)
            except Exception as error:
                raise HarnessFault(f"recording failed: {error}") from error

        return run

    def _gradient_hooks(
        self, index: int, parameter: Tensor
    ) -> tuple[Callable[[Tensor], None], Callable[[Tensor], None]]:
        """Note what lies in `.grad` when the first backward pass since the last step adds to it.

        Only a pass that really adds counts: `torch.autograd.grad` computes a gradient and leaves `.grad` alone.
        """
        pending: list[tuple[Scalar, Scalar]] = []

        def note(gradient: Tensor) -> None:
            pending.clear()
            if index not in self._fresh and parameter.grad is not None:
                pending.append((norm(parameter.grad), norm(gradient)))

        def confirm(_parameter: Tensor) -> None:
            self._fresh.add(index)
            self._left_over += pending
            pending.clear()

        return note, confirm

    def _activation_hook(self, place: str) -> Callable[..., None]:
        def note(module: nn.Module, inputs: object, output: object) -> None:
            if torch.is_grad_enabled() and isinstance(output, Tensor) and output.is_floating_point():
                # A copy, because the next layer may work in place. It is summed up beside the gradients: a few
                # microseconds there, ten times as many here, between two layers that have just filled the caches.
                self._outputs[place] = output.detach().clone()

        return self._guarded(note)

    def _before_step(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        self._steps += 1
        rates = [float(group["lr"]) for group in optimizer.param_groups]
        self._lr = max(rates if self._lr is None else [self._lr, *rates])
        # A fused optimizer under a GradScaler divides by this inside its step; others find unscaled gradients.
        scale: Tensor | None = getattr(optimizer, "grad_scale", None)
        if self._clip_norm is not None:
            self._clip(self._clip_norm, scale)
        own = {self._indices.get(id(p)) for group in optimizer.param_groups for p in group["params"]}
        # Of several optimizers, each one's step counts for its own parameters.
        self._norms |= {
            index: self._gradient_norms(parameter, scale)
            for index, parameter in enumerate(self._parameters.values())
            if index in own or index not in self._norms
        }
        self._fresh.clear()
        self._sum_up_outputs()

    def _sum_up_outputs(self) -> None:
        self._activations |= {place: mean_and_variance(output) for place, output in self._outputs.items()}
        self._outputs.clear()

    def _clip(self, clip_norm: float, scale: Tensor | None) -> None:
        limit = clip_norm if scale is None else clip_norm * float(scale)
        gradients = [p for p in self._parameters.values() if p.grad is not None]
        if gradients:
            torch.nn.utils.clip_grad_norm_(gradients, limit)

    @staticmethod
    def _gradient_norms(parameter: Tensor, scale: Tensor | None = None) -> tuple[Scalar, Scalar, Scalar]:
        """Return the 1-norm, the 2-norm and the number of non-zero entries; NaN without a gradient."""
        if parameter.grad is None:
            return math.nan, math.nan, math.nan
        first, second, alive = gradient_scalars(parameter.grad)
        if scale is None:
            return first, second, alive
        return first / scale.double(), second / scale.double(), alive

    def measure_batch(self, loss: Tensor) -> "BatchMeasurements":
        """Return what was measured of the batch that just ran, and start the next one.

        Where no optimizer stepped, the gradients are those that lie in `.grad` at the end of the batch.
        """
        self._sum_up_outputs()
        scalars: list[Scalar] = [loss]
        for index, parameter in enumerate(self._parameters.values()):
            scalars += self._norms[index] if self._norms else self._gradient_norms(parameter)
        for place in ("first", "last"):
            scalars += self._activations.get(place, (math.nan, math.nan))
        for pair in self._left_over:
            scalars += pair
        measured = BatchMeasurements(
            numbers(scalars), self._sizes, self._lr, self._steps, frozenset(self._activations)
        )
        self._start_batch()
        return measured

    def end_batch(self, loss: Tensor) -> Record:
        """Return the diagnostics of the batch that just ran, and start the next one."""
        return self.measure_batch(loss).record()


@dataclass(frozen=True)
class BatchMeasurements:
    """The figures of one batch, as they came from the device, before a record of the log is made of them.

    `values` holds the loss, three figures for each parameter, mean and variance of two activations, and two
    norms for each gradient that was left over; `sizes` the numbers of entries by parameter.
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

    def record(self) -> Record:
        """Return the diagnostics as the log has them."""
        grad_mean: dict[str, float | None] = {}
        grad_norms: dict[str, float | None] = {}
        squares, zeros, entries = 0.0, 0.0, 0
        for index, (name, size) in enumerate(self.sizes.items()):
            absolute, norm, alive = self.values[1 + 3 * index : 4 + 3 * index]
            if math.isnan(alive):  # no gradient; a NaN inside one counts as not zero
                grad_mean[name] = grad_norms[name] = None
                continue
            grad_mean[name] = absolute / max(size, 1)
            grad_norms[name] = norm
            squares += norm * norm  # `**` would raise where the square overflows
            zeros += size - alive
            entries += size
        rest = self.values[1 + 3 * len(self.sizes) :]
        first, last, left_over = rest[:2], rest[2:4], rest[4:]
        stale = math.sqrt(sum(v * v for v in left_over[0::2])) if left_over else 0.0
        fresh = math.sqrt(sum(v * v for v in left_over[1::2])) if left_over else 0.0
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
                "first": self._activation_record("first", first),
                "last": self._activation_record("last", last),
            },
        }

    def _activation_record(self, place: str, values: list[float]) -> dict[str, float] | None:
        return {"mean": values[0], "var": values[1]} if place in self.activations else None
