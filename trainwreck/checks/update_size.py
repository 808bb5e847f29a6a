"""Updates are small beside the weights that they change."""

from statistics import median
from typing import Any, ClassVar

from torch import Tensor

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer, HandMadeOptimizer
from trainwreck.finding import Outcome
from trainwreck.state import parameters_of

# figure                                          | healthy      | broken | bound
# length of an update over its weights' (median)  | 1e-5 to 0.15 | > 0.4  | LONG 0.3
# the same, the largest of all updates            | > 1e-5       | < 1e-6 | SHORT 1e-6
LONG, SHORT = 0.3, 1e-6
_MATRICES, _LEAST, _UPDATES = 6, 6, 6  # the first updates are judged
_ENTRIES = 64  # the weights of smaller layers may begin near 0
_COPIED = 65_536  # entries of a matrix, so that the copies need little memory


class UpdateSize(Check):
    """An update changes a weight matrix by 1e-5 to 0.15 of its length.

    Source: A. Karpathy, "A Recipe for Training Neural Networks" (2019), and CS231n: "ratio of updates and weights".
    """

    name = "update-size"
    question = "Are updates small beside the weights?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "long": Outcome(
            "advice",
            "Updates are long beside the weights that they change.",
            "Lower the learning rate, or warm it up.",
            "huge_lr",
            symptom=True,
        ),
        "short": Outcome(
            "advice",
            "Updates hardly change the weights.",
            "Raise the learning rate, and look at the scale of the loss.",
            "adam_huge_eps",
            symptom=True,
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._before: list[tuple[Tensor, Tensor]] = []
        self._shares: list[float] = []

    def before_step(self, optimizer: AnyOptimizer) -> None:
        """Copy a part of the largest weight matrices."""
        if isinstance(optimizer, HandMadeOptimizer) or self.watch.step >= _UPDATES:
            return
        matrices = [
            one
            for one in parameters_of(optimizer)
            if one.dim() > 1 and one.grad is not None and one.numel() >= _ENTRIES
        ]
        matrices.sort(key=lambda one: -one.numel())
        self._before = [(one, _sample(one).clone()) for one in matrices[:_MATRICES]]

    def after_step(self, optimizer: AnyOptimizer) -> None:
        """Compare them with the weights after the update."""
        for now, before in self._before:
            if length := float(before.norm()):
                self._shares.append(float((_sample(now) - before).norm()) / length)
        self._before = []

    def at_end(self) -> None:
        """Judge the median and the largest share."""
        if len(self._shares) < _LEAST:
            return
        middle, largest = median(self._shares), max(self._shares)
        if middle > LONG:
            text = f"a median of {middle:.2g} of the weights' length, at most {LONG:g} is usual"
            self.tell("long", text, self.watch.place_of_owner())
        elif largest < SHORT:
            self.tell("short", f"at most {largest:.1g} of the weights' length", self.watch.place_of_owner())


def _sample(weights: Tensor) -> Tensor:
    """Return every n-th entry of a matrix, or all of a small one."""
    return weights.detach().reshape(-1)[:: 1 + weights.numel() // _COPIED]
