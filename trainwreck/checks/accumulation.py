"""A loss is divided by the number of backward passes that an update adds up."""

from statistics import median
from typing import Any, ClassVar

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer
from trainwreck.finding import Outcome
from trainwreck.places import Place
from trainwreck.state import parameters_of

_LEAST_UPDATES = 3
_EQUAL = 1e-3  # rounding of float16 losses
_MOST = 0.6  # the largest share that is a division


class Accumulation(Check):
    """If an update adds up the gradients of several batches, each mean loss is divided by their number."""

    name = "accumulation"
    question = "Is a loss divided by the number of batches that an update adds up?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "not-divided": Outcome(
            "advice",
            "An update adds up several backward passes of a mean loss, and the loss is not divided by their number.",
            "Divide the loss by the number of batches before backward().",
        ),
        "divided-once": Outcome(
            "advice",
            "The loss is divided, as for several batches, but each update uses one backward pass.",
            "Step only after the number of batches that the loss is divided by.",
            "last_part_only",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._repeated = False
        # For each update: the number of backward passes, and what they start from over the loss.
        self._updates: list[tuple[int, float, Place]] = []

    def on_repeated_closure(self, optimizer: AnyOptimizer) -> None:
        """An optimizer that calls its closure again does not add up."""
        self._repeated = True

    def after_step(self, optimizer: AnyOptimizer) -> None:
        """Compare the roots of the backward passes with the values of torch's losses."""
        owned = {id(parameter) for parameter in parameters_of(optimizer)}
        watch = self.watch
        passes = [backward for backward in watch.backwards if owned & backward.leaves.keys()]
        losses = watch.loss_calls
        if not passes or self._repeated or len(losses) != len(watch.backwards):
            return
        if len({one.place for one in passes}) > 1 or len({one.place for one in losses}) > 1:
            return
        if any(one.value.numel() > 1 or one.options.get("reduction", "mean") != "mean" for one in losses):
            return
        shares = [
            float(backward.roots[0].sum()) / watch.scale / float(loss.value)
            for backward, loss in zip(watch.backwards, losses, strict=True)
            if float(loss.value)
        ]
        if shares:
            self._updates.append((len(passes), median(shares), passes[-1].place))

    def at_end(self) -> None:
        """Say whether the division and the number of backward passes agree; the first and last update may differ."""
        if len(self._updates) < _LEAST_UPDATES:
            return
        count, share, place = self._updates[1]
        if any(one[0] != count or abs(one[1] - share) > _EQUAL for one in self._updates[:-1]):
            return
        if count > 1 and abs(share - 1) < _EQUAL:
            self.tell("not-divided", f"{count} backward passes of a mean loss in each update", place)
        if count == 1 and 0 < share < _MOST and abs(1 / share - round(1 / share)) < _EQUAL:
            self.tell("divided-once", f"the loss is divided by {1 / share:.0f}", place)
