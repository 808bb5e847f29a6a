"""The graph of a loss is freed after its update, and not cut before its backward pass."""

import weakref
from typing import Any, ClassVar

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer, BackwardPass
from trainwreck.finding import Outcome
from trainwreck.places import Place

_KEY = "trainwreck"
_OLD, _MANY = 2, 4  # updates ago, and graphs of other updates


class _Mark:
    """Lives as long as the node of a graph that holds it."""


class Graphs(Check):
    """The graph of a loss lives until its update. A list of losses with their graphs grows until memory ends.

    A mark in the first node of each graph shows whether the graph is still in memory.
    """

    name = "graphs"
    question = "Is the graph of each loss freed?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "kept": Outcome(
            "advice",
            "The graphs of earlier losses stay in memory, so memory grows with each update.",
            "Add up loss.item() or loss.detach(), not the loss.",
            "losses_kept",
        ),
        "cut": Outcome(
            "alarm",
            "torch.tensor copies values that have gradients into a new leaf, so no gradient goes back through them.",
            "Use torch.stack, torch.cat or a sum.",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._marks: list[tuple[int, weakref.ref[_Mark], Place]] = []

    def on_operation(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """Look at a new leaf that is made from values with gradients."""
        if name == "cut":
            self.tell("cut", f"a leaf of shape {tuple(result.shape)}")

    def before_backward(self, backward: BackwardPass) -> None:
        """Mark the graph."""
        for root in backward.roots[:1]:
            metadata: Any = getattr(root.grad_fn, "metadata", None)
            if metadata is not None and _KEY not in metadata:
                mark = _Mark()
                metadata[_KEY] = mark
                self._marks.append((self.watch.step, weakref.ref(mark), backward.place))

    def after_step(self, optimizer: AnyOptimizer) -> None:
        """Count the graphs of earlier updates that are still alive."""
        self._marks = [entry for entry in self._marks if entry[1]() is not None]
        old = [entry for entry in self._marks if entry[0] <= self.watch.step - _OLD]
        if len({step for step, _, _ in old}) >= _MANY:
            self.tell("kept", f"{len(old)} graphs of earlier losses", old[-1][2])
