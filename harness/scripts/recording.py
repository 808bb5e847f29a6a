"""Measure each update of a script through hooks of torch: the losses, the gradients that the optimizer used, outputs.

The script does not know about it. Networks are found when the script first calls them with gradients.
"""

import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

from harness.run.details import Details
from harness.run.recorder import (
    PLACES,
    BatchMeasurements,
    LeftOverGradients,
    Scalar,
    as_floats,
    first_layer,
    gradient_norms,
    guard_hook,
    mean_and_variance,
)
from harness.run.step_guard import StepGuard
from harness.run.step_hooks import LastStepHook, note_losses

# New networks are looked for up to this update. Most scripts call all their networks before the first one, and the
# search costs time at each call of a layer.
_SEARCHED = 20
_NOT_RECORDED = (math.nan, math.nan)


class Recording:
    """Measures the updates of a script while it runs. `on_update` gets each of them.

    guard: judges each step before the optimizer makes it, or None. details: writes `details.log`, or None.

    Use it as a context manager, which removes all hooks at the end. `networks` has the networks in the order of their
    first calls; `losses` the losses whose backward passes came since the last update.
    """

    def __init__(
        self,
        on_update: Callable[[BatchMeasurements], None],
        guard: StepGuard | None = None,
        details: Details | None = None,
    ) -> None:
        self._guard, self._details = guard, details
        self._on_update = on_update
        self.networks: list[nn.Module] = []
        self.losses: list[float] = []
        self.updates = 0
        self._names: dict[int, str] = {}
        self._watched: dict[int, LeftOverGradients] = {}
        self._left_over: dict[int, list[Scalar]] = {}
        self._outputs: dict[str, Tensor] = {}
        self._measured: tuple[list[Scalar], dict[str, int], float, frozenset[str]] | None = None
        self._depth = 0
        self._hooks = ExitStack()
        self._search = ExitStack()

    def __enter__(self) -> "Recording":
        for handle in (
            register_module_forward_pre_hook(guard_hook(self._enter)),
            register_module_forward_hook(guard_hook(self._leave), always_call=True),
        ):
            self._search.callback(handle.remove)
        self._hooks.enter_context(note_losses(self.losses))
        for last in (
            LastStepHook(guard_hook(self._before_step)),
            register_optimizer_step_post_hook(guard_hook(self._after_step)),
        ):
            self._hooks.callback(last.remove)
        return self

    def __exit__(self, *_: object) -> None:
        self._search.close()
        self._hooks.close()

    def _enter(self, module: nn.Module, _: object) -> None:
        self._depth += 1
        if self._depth == 1 and torch.is_grad_enabled() and not any(module is known for known in self.networks):
            self._add(module)

    def _leave(self, module: nn.Module, inputs: object, output: object) -> None:
        self._depth -= 1

    def _add(self, network: nn.Module) -> None:
        """Hook a network that the script calls itself, if it has parameters to train that no other network has."""
        new = {name: p for name, p in network.named_parameters() if p.requires_grad and id(p) not in self._names}
        if not new:
            return
        prefix = f"{type(network).__name__}." if self.networks else ""
        self.networks.append(network)
        for watch in (self._guard, self._details):
            if watch is not None:
                watch.add(network)
        for name, parameter in new.items():
            self._names[id(parameter)] = prefix + name
            found = self._left_over[id(parameter)] = []
            self._watched[id(parameter)] = LeftOverGradients(parameter, found)
            for handle in self._watched[id(parameter)].handles:
                self._hooks.callback(handle.remove)
        if len(self.networks) == 1:
            for place, layer in zip(PLACES, (first_layer(network), network), strict=True):
                handle = layer.register_forward_hook(guard_hook(self._output_hook(place)))
                self._hooks.callback(handle.remove)

    def _output_hook(self, place: str) -> Callable[..., None]:
        def note(module: nn.Module, inputs: object, output: object) -> None:
            found = first_tensor(output)
            if torch.is_grad_enabled() and found is not None:
                self._outputs[place] = found.detach().clone()

        return note

    def _before_step(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        parameters = {id(p): p for group in optimizer.param_groups for p in group["params"]}
        scalars: list[Scalar] = []
        sizes: dict[str, int] = {}
        with np.errstate(all="ignore"):
            for key, parameter in parameters.items():
                sizes[self._names.get(key, f"parameter {len(sizes)}")] = parameter.numel()
                scalars += gradient_norms(parameter, None)
            for place in PLACES:
                found = self._outputs.get(place)
                scalars += _NOT_RECORDED if found is None else mean_and_variance(found)
            for key in (key for key in parameters if key in self._watched):
                scalars += self._left_over[key]
                self._left_over[key].clear()
                self._watched[key].is_fresh = False
        rate = max(float(group["lr"]) for group in optimizer.param_groups)
        self._measured = scalars, sizes, rate, frozenset(self._outputs)
        self._outputs.clear()
        if self._details is not None:
            self._details.before_step(optimizer)
        if self._guard is not None:
            self._guard.before_step(optimizer, self._measurements)

    def _measurements(self) -> BatchMeasurements:
        """Return the measurements of the step that the optimizer makes."""
        assert self._measured is not None
        scalars, sizes, rate, outputs = self._measured
        loss = sum(self.losses) if self.losses else math.nan  # `fsum` would give other bytes
        return BatchMeasurements(as_floats([loss, *scalars]), sizes, rate, 1, outputs)

    def _after_step(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        if self._measured is None:
            return
        measured = self._measurements()
        self._measured = None
        self._on_update(measured)
        self.losses.clear()
        self.updates += 1
        if self.updates == _SEARCHED:
            self._search.close()


def first_tensor(output: Any) -> Tensor | None:
    """Return the first tensor of floating-point numbers in an output: a tensor, a sequence, or a mapping."""
    if isinstance(output, Tensor):
        return output if output.is_floating_point() else None
    if isinstance(output, dict):
        output = tuple(output.values())
    parts = output if isinstance(output, list | tuple) else ()
    return next((found for part in parts if (found := first_tensor(part)) is not None), None)
