"""Gradients are fresh and used once."""

from collections import Counter
from typing import Any, ClassVar

import torch
from torch import Tensor

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer, BackwardPass, HandMadeOptimizer, first_entries
from trainwreck.finding import Outcome
from trainwreck.state import Watch, parameters_of
from trainwreck.trees import tensors

_TWICE, _THREE_TIMES = 2, 3  # the first update may differ: some scripts warm up


class _Pass:
    """The history of a backward pass: where it is, which gradients it gave, and what became of them.

    calls: the calls of networks whose inputs need no gradient, each with the parameters that it gives gradients to. It
    leaves out calls before a call whose inputs need a gradient, because that call may use their outputs.
    """

    def __init__(self, backward: BackwardPass, watch: Watch) -> None:
        calls = watch.calls
        self._watch, self._step = watch, watch.step
        self.place = backward.place
        self.used: set[int] = set()
        self.dropped: set[int] = set()
        self._leaf = next(iter(backward.leaves.values()), torch.empty(0))
        self._entries = first_entries(self._leaf).clone()
        needs = [any(one.requires_grad for one in tensors((call.args, call.kwargs))) for call in calls]
        self.calls = [
            (call, keys)
            for at, call in enumerate(calls)
            if not any(needs[at:])
            and backward.follows(call)
            and (keys := {id(one) for one in call.network.parameters()} & backward.leaves.keys())
        ]

    def drop(self, key: int) -> None:
        """Note a cleared gradient. If the script has changed weights since the pass, it has used the gradient itself.

        Sharpness-aware minimization moves the weights along a first gradient, clears it, and computes a second one.
        """
        is_own = self._watch.step == self._step  # no optimizer has made a step since
        moved = is_own and not torch.equal(self._entries, first_entries(self._leaf))
        (self.used if moved else self.dropped).add(key)


class _Gradient:
    """The history of one `.grad`: which passes it contains, and whether an update has used it."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.passes: set[int] = set()
        self.used = False
        self.stale = False  # used by an update, and not cleared before the next backward pass

    @property
    def is_clear(self) -> bool:
        """Whether there is no gradient, or only zeros."""
        gradient = self.tensor.grad
        if gradient is None:
            return True
        if gradient.layout is torch.strided and bool(torch.any(first_entries(gradient) != 0)):
            return False  # most often
        return not bool(torch.any(gradient != 0))


class Gradients(Check):
    """Each gradient is used by one update, and is cleared between this update and the next backward pass.

    An update that uses a gradient once more trains on old batches. A gradient that is cleared unused is lost.
    """

    name = "gradients"
    question = "Is each gradient fresh, and used once?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "stale": Outcome(
            "alarm",
            "The optimizer uses gradients that still contain an earlier batch.",
            "Call optimizer.zero_grad() between the update and the next backward pass.",
            "missing_zero_grad",
        ),
        "empty": Outcome(
            "alarm",
            "The optimizer steps without any gradient.",
            "Call optimizer.step() after loss.backward() and before zero_grad(), and check that the loss depends on"
            " the parameters.",
            "grad_cleared_before_step",
        ),
        "dropped": Outcome(
            "alarm",
            "The gradients of a backward pass are cleared before an update uses them.",
            "Call zero_grad() only after the update that uses the gradients.",
            "step_outside_the_loop",
        ),
        "zero": Outcome(
            "advice",
            "Backward passes give only zeros, so nothing is learned.",
            "Look for dead units, for a saturated or constant output, and for a loss that ends in a clamp.",
        ),
        "dead-end": Outcome(
            "advice",
            "A loss calls a network whose inputs need no gradient, and no update uses this network's gradients.",
            "Remove the detach() before this call, or leave its output out of the loss.",
        ),
    }

    def __init__(self, watch: Watch) -> None:
        super().__init__(watch)
        self._gradients: dict[int, _Gradient] = {}
        self._passes: dict[int, _Pass] = {}
        self._times: Counter[tuple[str, Any]] = Counter()
        self._pulled: set[int] = set()  # the leaves of all passes that gave more than zeros
        self._zeros: set[int] = set()  # the leaves of the latest backward pass, if it gave only zeros

    def _of(self, tensor: Tensor) -> _Gradient:
        return self._gradients.setdefault(id(tensor), _Gradient(tensor))

    def before_backward(self, backward: BackwardPass) -> None:
        """A gradient that an update has used must be clear now."""
        for gradient in self._gradients.values():
            if not (gradient.used or gradient.passes):
                continue
            clear = gradient.is_clear
            if gradient.used:
                gradient.stale, gradient.used = not clear, not clear
            if clear:
                self._drop(gradient)

    def after_backward(self, backward: BackwardPass) -> None:
        """The gradients of all leaves contain this pass now."""
        self._passes[backward.number] = _Pass(backward, self.watch)
        gradients = [self._of(leaf) for leaf in backward.leaves.values()]
        if gradients and all(gradient.is_clear for gradient in gradients):
            # A loss with a margin may become zero when all is learned.
            is_new = self._pulled.isdisjoint(backward.leaves)
            if is_new and self._count("zero", 0) == _THREE_TIMES:
                self.tell("zero", f"{len(gradients)} gradients, {_THREE_TIMES} times", backward.place)
            self._zeros = {id(gradient.tensor) for gradient in gradients}
            return
        self._zeros = set()
        self._pulled |= backward.leaves.keys()
        for gradient in gradients:
            gradient.passes.add(backward.number)

    def before_step(self, optimizer: AnyOptimizer) -> None:
        """Look at each gradient that the update uses."""
        gradients = [self._of(parameter) for parameter in parameters_of(optimizer)]
        by_hand = isinstance(optimizer, HandMadeOptimizer)
        key = 0 if by_hand else id(optimizer)
        empty = not by_hand and all(gradient.is_clear for gradient in gradients)
        empty = empty and not any(id(gradient.tensor) in self._zeros for gradient in gradients)
        if empty and self._count("empty", key) == _THREE_TIMES:
            self.tell("empty", f"{type(optimizer).__name__} made {_THREE_TIMES} steps without a gradient")
        old = [gradient for gradient in gradients if gradient.stale]
        if old and self._count("stale", key) == _TWICE:
            text = f"{len(old)} of {len(gradients)} gradients were not cleared after an earlier update"
            self.tell("stale", text)
        for gradient in gradients:
            if not by_hand and gradient.passes and gradient.is_clear:
                self._drop(gradient)
            for number in gradient.passes:
                self._passes[number].used.add(id(gradient.tensor))
            gradient.passes, gradient.used, gradient.stale = set(), True, False
        self._judge_dropped()

    def on_skipped_step(self, optimizer: AnyOptimizer) -> None:
        """The gradients of a skipped update are dropped on purpose."""
        for gradient in map(self._of, parameters_of(optimizer)):
            gradient.passes = set()

    def on_repeated_closure(self, optimizer: AnyOptimizer) -> None:
        """An optimizer that calls its closure again has used the gradients."""
        for gradient in map(self._of, parameters_of(optimizer)):
            for number in gradient.passes:
                self._passes[number].used.add(id(gradient.tensor))
            gradient.passes = set()

    def _drop(self, gradient: _Gradient) -> None:
        for number in gradient.passes:
            self._passes[number].drop(id(gradient.tensor))
        gradient.passes = set()

    def _judge_dropped(self) -> None:
        waiting = set[int]().union(*(gradient.passes for gradient in self._gradients.values()))
        for number in [number for number in self._passes if number not in waiting]:
            judged = self._passes.pop(number)
            if judged.dropped and not judged.used and self._count("dropped", 0) == _TWICE:
                self.tell("dropped", "two backward passes gave gradients that no update used", judged.place)
            for call, keys in judged.calls if judged.used else ():
                if keys <= judged.dropped and self._count("dead-end", call.place) == _TWICE:
                    self.tell("dead-end", f"{type(call.network).__name__}, in two backward passes", call.place)

    def _count(self, what: str, key: Any) -> int:
        self._times[what, key] += 1
        return self._times[what, key]
