"""After two epochs, the network knows more than the best constant answer."""

from collections.abc import Generator
from typing import Any, ClassVar

import torch
from torch import Tensor

from trainwreck.check import Check
from trainwreck.constant import loss_of_constant
from trainwreck.events import AnyOptimizer, LossCall
from trainwreck.finding import Outcome
from trainwreck.patience import patient
from trainwreck.trees import tensors
from trainwreck.trial import Trial

# figure                                                | healthy    | broken | bound
# mean loss of the last third over a constant answer's   | below 0.97 | > 0.99 | NOTHING 0.98
# the same over the mean loss of the third before it     | below 0.95 | 1      | FALLS 0.97
# mean loss of the last third over a constant answer's, where evaluations are looked at | | 0.6 | LEARNT 0.85
# kappa of the predictions in an evaluation over its standard error     | above 5    | below 1 | CHANCE 2
NOTHING, FALLS, LEARNT, CHANCE = 0.98, 0.97, 0.85, 2.0
WEAK = 0.15  # with a larger error, an evaluation has too few examples
_ANSWERS, _MOST_EXPECTED = 100, 0.8
_SECONDS, _MOST_STEPS, _LEAST_STEPS = patient(8.0), 1000, 120
_STEPS = 200  # without a loader, which knows the length of an epoch
_MOST_TARGETS = 100_000
_CLOSE = 1e-4


class Progress(Check):
    """The loop learns from its inputs: after two epochs, the loss is below the loss of the best constant answer.

    In a child, the loop goes on as it is. The check knows the loss of a constant answer from the watched targets. It
    speaks only if the child makes two epochs and 120 updates in time, and the loss no longer falls; or if it falls, and
    the predictions in the latest evaluation are as often right as they would be for permuted labels.

    Source: J. Cohen, "A Coefficient of Agreement for Nominal Scales" (1960).
    """

    name = "progress"
    question = "Is the loss below the one of a constant answer after two epochs?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "none": Outcome(
            "advice",
            "After two epochs and more, the loss is still the one of an answer that is the same for all examples.",
            "Look for labels that do not belong to their inputs, a wrong learning rate, and a network that is dead.",
            "label_permute",
            symptom=True,
        ),
        "by-heart": Outcome(
            "advice",
            "The loop learns its examples, but its predictions in evaluations have no relation to the labels there.",
            "Look for labels that do not belong to their inputs, for a validation set with other class numbers or "
            "another preparation, and for too few examples.",
            "label_permute",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._latest: LossCall | None = None
        self._targets: list[Tensor] = []
        self._is_clear = True  # each update has one loss, which compares outputs with targets of the batch

    def on_loss(self, loss: LossCall) -> None:
        """Note the loss of an update."""
        if loss.with_gradients:
            self._is_clear &= self._latest is None or loss.name == self._latest.name
            self._latest = loss

    def after_step(self, optimizer: AnyOptimizer) -> None:
        """Note the targets, and see whether the loss is the one that the update was made for."""
        losses = [loss for loss in self.watch.loss_calls if loss.with_gradients]
        if not self._is_clear:
            return
        self._is_clear = len(losses) == len(self.watch.backwards) == 1 and self._is_plain(losses[0])
        if self._is_clear and sum(one.numel() for one in self._targets) < _MOST_TARGETS:
            self._targets.append(losses[0].targets.detach().clone())

    def _is_plain(self, loss: LossCall) -> bool:
        value, roots = float(loss.value.sum()), [float(root.sum()) for root in self.watch.backwards[0].roots]
        if len(roots) != 1 or abs(roots[0] - value) > _CLOSE * abs(value):
            return False
        batches = [use.last for use in self.watch.loaders.values() if use.training]
        known = any(one.shape == loss.targets.shape and torch.equal(one, loss.targets) for one in tensors(batches))
        return known or not loss.targets.is_floating_point()

    def trials(self) -> Generator[Trial, Any, None]:
        """Let the loop go on for two epochs."""
        trained = [use for use in self.watch.loaders.values() if use.training]
        length = max((use.length for use in trained), default=0)
        if not self._is_clear or self._latest is None or len(trained) > 1 or len(self.watch.optimizers) != 1:
            return
        guess = loss_of_constant(self._latest.name, self._targets, self._latest.options)
        steps = max(2 * length, _LEAST_STEPS) if length else _STEPS
        if guess is None or steps > _MOST_STEPS:
            return
        answer = (yield Trial(steps=steps, seconds=_SECONDS)) or {}
        losses = answer.get("losses", [])
        # Without a loader, the script may end before. It may also go on with another training.
        if len(losses) < (steps if length else _LEAST_STEPS) or answer["optimizers"] > 1:
            return
        third = len(losses) // 3
        before, last = sum(losses[-2 * third : -third]) / third, sum(losses[-third:]) / third
        if last > NOTHING * guess and last > FALLS * before:
            text = f"a loss of {last:.3g} after {len(losses)} updates; a constant answer has {guess:.3g}"
            self.tell("none", text, "labels, learning rate or network")
        elif last < LEARNT * guess and (told := _unrelated(*answer["agreement"])):
            text = f"a loss of {last:.3g}, and {guess:.3g} for a constant answer; {told}"
            self.tell("by-heart", text, "labels, or the data of the evaluation")


def _unrelated(size: int, hits: int, expected: float) -> str:
    """Return the share of hits as text if it is not larger than without a relation, or "" if one is possible.

    The scale is Cohen's kappa: 0 without a relation, 1 if all are right.
    """
    if size < _ANSWERS or expected > _MOST_EXPECTED * size:
        return ""
    kappa = (hits - expected) / (size - expected)
    error = (expected * (size - expected) / size) ** 0.5 / (size - expected)
    if kappa < CHANCE * error and CHANCE * error < WEAK:
        return f"{hits} of {size} predictions of an evaluation are right, and {expected:.0f} would be at random"
    return ""
