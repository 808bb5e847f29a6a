"""Scaled gradients are unscaled before they are clipped or used, and clipping comes before the update."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer, BackwardPass
from trainwreck.finding import Outcome
from trainwreck.places import Place, here
from trainwreck.state import parameters_of


class Scaling(Check):
    """Gradients are unscaled once, then clipped, then used."""

    name = "scaling"
    question = "Are gradients unscaled before they are clipped, and clipped before they are used?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "clips-scaled": Outcome(
            "alarm",
            "Gradients are clipped while they still contain the factor of the GradScaler.",
            "Call scaler.unscale_(optimizer) before clip_grad_norm_.",
            "clip_before_unscale",
        ),
        "steps-scaled": Outcome(
            "alarm",
            "The optimizer uses gradients that still contain the factor of the GradScaler.",
            "Call scaler.step(optimizer) in place of optimizer.step().",
        ),
        "clips-late": Outcome(
            "alarm",
            "Gradients are clipped after the update has used them.",
            "Clip between backward() and step().",
            "clip_after_step",
        ),
        "clips-early": Outcome(
            "alarm",
            "Gradients are clipped before the backward pass has computed them, so nothing is clipped.",
            "Clip between backward() and step().",
        ),
        "clips-some": Outcome(
            "advice",
            "Clipping leaves out some of the gradients that the update uses.",
            "Pass all parameters of the optimizer to one call of clip_grad_norm_.",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._scaled = self._stepping = False
        self._unscaled: set[int] = set()  # optimizers
        self._used: set[int] = set()  # gradients that an update has used, and no backward pass has changed since
        self._late = 0
        self._clipped: set[int] = set()  # gradients that are clipped, since the latest update
        self._partly = 0
        # Since the latest update: parameters that were clipped without a gradient, and those that got one afterwards.
        self._without: set[int] = set()
        self._late_gradients: set[int] = set()
        self._early = 0
        self._place: Place | None = None  # of such a call

    def on_scaler(self, method: str, scaler: Any, optimizer: AnyOptimizer | None) -> None:
        """Note whether gradients contain the factor of the scaler now."""
        if method == "scale":
            self._scaled = scaler.get_scale() != 1
        elif method == "unscale_":
            self._unscaled.add(id(optimizer))
        elif method == "step":
            self._stepping = True
        elif method == "update":
            self._scaled = self._stepping = False
            self._unscaled = set()

    def after_backward(self, backward: BackwardPass) -> None:
        """A backward pass gives new gradients."""
        self._used -= backward.leaves.keys()
        later = self._without & backward.leaves.keys()
        self._late_gradients |= later
        self._clipped -= later

    def on_clip(self, parameters: list[Tensor]) -> None:
        """Look at the gradients that are clipped."""
        clipped = {id(parameter) for parameter in parameters if parameter.grad is not None}
        owners = [
            key
            for key, optimizer in self.watch.optimizers.items()
            if clipped & {id(parameter) for parameter in parameters_of(optimizer)}
        ]
        self._clipped |= clipped
        if not any(_has_gradient(parameter) for parameter in parameters):
            self._without |= {id(parameter) for parameter in parameters}
            self._place = here()
            return
        if self._scaled and not (self._unscaled & set(owners) if owners else self._unscaled):
            self.tell("clips-scaled", f"{len(clipped)} gradients, factor {self.watch.scale:g}")
        # Gradients that no optimizer owns are never used.
        owned = clipped & self.watch.owned().keys()
        if owned and owned <= self._used:
            self._late += 1
            if self._late == 2:
                self.tell("clips-late", f"{len(clipped)} gradients, in two updates")

    def before_step(self, optimizer: AnyOptimizer) -> None:
        """Look at the gradients that an update uses."""
        used = {id(parameter) for parameter in parameters_of(optimizer) if parameter.grad is not None}
        if self._clipped & used and used - self._clipped:
            self._partly += 1
            if self._partly == 2:
                self.tell("clips-some", f"{len(used - self._clipped)} of {len(used)} gradients are not clipped")
        early = used & self._late_gradients
        if early and not used & self._clipped:
            self._early += 1
            if self._early == 2:
                text = f"{len(early)} parameters had no gradient when they were clipped, twice"
                self.tell("clips-early", text, self._place)
        self._clipped -= used
        self._without, self._late_gradients = set(), set()
        if self._scaled and not self._stepping and id(optimizer) not in self._unscaled:
            self.tell("steps-scaled", f"{type(optimizer).__name__} uses gradients with the factor {self.watch.scale:g}")

    def after_step(self, optimizer: AnyOptimizer) -> None:
        """The gradients of the optimizer are used now."""
        self._used |= {id(parameter) for parameter in parameters_of(optimizer)}
        if not self._stepping:
            self._scaled = False


def _has_gradient(parameter: Tensor) -> bool:
    gradient = parameter.grad
    return gradient is not None and bool(torch.any(gradient != 0))
