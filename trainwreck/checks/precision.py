"""Training in float16 keeps float32 weights and scales its loss."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer, ModelCall, first_entries
from trainwreck.finding import Outcome
from trainwreck.places import Place
from trainwreck.state import parameters_of

# figure: share of bfloat16 weights with a gradient that an update leaves as they are | LOST 0.6, an estimate
LOST = 0.6
_TWICE, _UPDATES = 2, 4


class Precision(Check):
    """Float16 has gradients only above 6e-8, so its loss needs a scaler, and its weights a copy in float32.

    Source: P. Micikevicius et al., "Mixed Precision Training" (2018).
    """

    name = "precision"
    question = "Does float16 training scale its loss and keep float32 weights?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "no-scaler": Outcome(
            "advice",
            "The network runs in float16, and no GradScaler scales the loss, so small gradients become zero.",
            "Use torch.amp.GradScaler, or bfloat16.",
            "amp_no_scaling",
        ),
        "lost-updates": Outcome(
            "advice",
            "Most updates are too small for bfloat16 weights, which have 8 binary digits, and are lost.",
            "Keep the weights in float32, and use autocast for the forward pass.",
        ),
        "half-weights": Outcome(
            "advice",
            "An optimizer updates float16 weights, so small updates are lost.",
            "Keep the weights in float32, and use autocast for the forward pass.",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._place: Place | None = None
        self._scaled = False
        self._times = 0
        self._before: list[tuple[Tensor, Tensor]] = []  # bfloat16 weights before the update
        self._lost = 0  # updates that change few of them

    def on_call(self, call: ModelCall) -> None:
        """Note a forward pass in float16."""
        if call.with_gradients and any(
            torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) is torch.float16
            for device in ("cuda", "cpu")
        ):
            self._place = call.place

    def on_scaler(self, method: str, scaler: Any, optimizer: AnyOptimizer | None) -> None:
        """Note that a scaler scales the loss."""
        self._scaled = True

    def before_step(self, optimizer: AnyOptimizer) -> None:
        """Look at the weights of the update, and at how its gradients were made."""
        half = [one for one in parameters_of(optimizer) if one.dtype is torch.float16]
        if half:
            self.tell("half-weights", f"{len(half)} of {len(parameters_of(optimizer))} tensors")
        self._before = [
            (one, first_entries(one).clone())
            for one in parameters_of(optimizer)
            if one.dtype is torch.bfloat16 and one.grad is not None and bool(one.grad.any())
        ]
        if self._place is not None and not self._scaled:
            self._times += 1
            if self._times == _TWICE:
                self.tell("no-scaler", f"{_TWICE} updates", self._place)

    def after_step(self, optimizer: AnyOptimizer) -> None:
        """Count the weights that the update leaves as they are."""
        before, self._before = self._before, []
        pairs = [
            (first_entries(weights) == old, first_entries(weights.grad) != 0)
            for weights, old in before
            if weights.grad is not None
        ]
        moving = sum(int(pulled.sum()) for _, pulled in pairs)
        lost = sum(int((same & pulled).sum()) for same, pulled in pairs)
        if lost > LOST * moving:
            self._lost += 1
            if self._lost == _UPDATES:
                self.tell("lost-updates", f"{lost / moving:.0%} of the weights stay, in {_UPDATES} updates")
