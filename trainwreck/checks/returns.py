"""Each action of a policy gradient has the weight of the rewards that follow it."""

import weakref
from typing import Any, ClassVar

import torch
from torch import Tensor

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer, ModelCall
from trainwreck.finding import Outcome
from trainwreck.places import Place, here

_ACTIONS, _UPDATES, _CLOSE = 8, 4, 1e-4


class Returns(Check):
    """The log-probabilities of actions that come one after the other have different weights in the loss.

    The weight of an action is the gradient of the loss with respect to its log-probability. Actions count if the script
    draws each one after another call of the network.

    Source: R. S. Sutton and A. G. Barto, "Reinforcement Learning" (2nd edition, 2018), section 13.3.
    """

    name = "returns"
    question = "Does each action get the return that follows it?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "all-alike": Outcome(
            "advice",
            "All actions of an episode have the same weight in the loss, so none gets credit for what followed it.",
            "Multiply each log-probability with the return from its own step on, then add them up. If the only reward "
            "comes at the end, equal weights are right.",
        )
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._calls: list[weakref.ref[ModelCall]] = []  # the latest one, which made the distribution of an action
        self._weights: list[Tensor] = []  # of the actions of this update
        self._place: Place | None = None
        self._alike = 0  # updates in a row

    def on_score(self, score: Tensor, call: ModelCall) -> None:
        """Note the weight of an action in the next backward pass."""
        if score.numel() != 1 or (self._calls and self._calls[-1]() is call):
            return
        self._calls[:] = [weakref.ref(call)]
        self._place = here()
        score.register_hook(self._note)

    def _note(self, gradient: Tensor) -> None:
        self._weights.append(gradient.detach().flatten())

    def after_step(self, optimizer: AnyOptimizer) -> None:
        """Compare the weights."""
        weights, self._weights = self._weights, []
        if len(weights) < _ACTIONS:
            return
        values = torch.cat(weights)
        size = float(values.abs().max())
        is_alike = 0 < size < float("inf") and float(values.max() - values.min()) < _CLOSE * size
        self._alike = self._alike + 1 if is_alike else 0
        if self._alike == _UPDATES:
            self.tell("all-alike", f"{len(weights)} actions of an episode, in {_UPDATES} updates", self._place)
