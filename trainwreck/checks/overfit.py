"""The script's own loop learns one batch by heart."""

from collections.abc import Generator
from math import isfinite
from statistics import mean
from typing import Any, ClassVar

from trainwreck.check import Check
from trainwreck.constant import loss_of_constant
from trainwreck.finding import Outcome
from trainwreck.trial import MOST_COPIED, Trial

# figure                                | healthy     | broken | bound
# loss after the trial over its start   | below 0.5   |        | LEARNS 0.5
# the same, the best of three rates     | below 0.9   | > 0.97 | STALLS 0.95
# loss at another rate over this loss   | 0.6 to 1.7  | < 0.6  | BETTER 0.6
# the same at a tenth, if it learns     | above 1     | < 0.1  | FAR 0.3
# loss after the trial over its start   | below 0.8   | > 0.98 | SLOW 0.95, and below it at ten times the rate
# best loss over a constant answer's      | below 0.85  | 0.9    | GUESS 0.85
# In 42 corrected scripts of strangers, the loss after the trial was at most 0.9 of its start, but for one at 1.1, which
# learns weights of several losses.
LEARNS, STALLS, BETTER, FAR, SLOW, GUESS = 0.5, 0.95, 0.6, 0.3, 0.95, 0.85
LEARNT = 0.1  # of the first loss: the training has learned all before the trial
_STEPS, _LEAST = 50, 8


class Overfit(Check):
    """The loop learns one batch by heart, and not better at a tenth of the learning rate.

    In children, the loop goes on with the same batch in each step and without dropout: at its own learning rate; at a
    tenth of it, if the loss does not fall below a tenth; and at ten times the rate, if the loss does not halve.
    """

    name = "overfit"
    question = "Does the loop learn one batch by heart?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "rate-too-high": Outcome(
            "advice",
            "The loop does not learn one batch at its learning rate, but it does at a tenth of it.",
            "Lower the learning rate, or warm it up.",
            "huge_lr",
            symptom=True,
        ),
        "hardly-learns": Outcome(
            "note",
            "The loop hardly learns one batch, and learns more at ten times its learning rate.",
            "Raise the learning rate.",
            "adam_huge_eps",
        ),
        "rate-too-low": Outcome(
            "note",
            "The loop learns one batch faster at ten times its learning rate.",
            "If training is slow, try a higher learning rate.",
        ),
        "stalls": Outcome(
            "advice",
            "The loop does not learn one batch: not at its learning rate, nor at a tenth or ten times of it.",
            "Look at the labels, the loss, the gradients and the output of the network.",
            symptom=True,
        ),
        "left-out": Outcome(
            "note",
            "The training is so large that no trial was made: a trial copies weights, gradients and optimizer states.",
            "Watch a smaller network of the same kind, too. The checks that need trials run there.",
        ),
    }

    def trials(self) -> Generator[Trial, Any, None]:
        """Make one to three trials with the same batch."""
        if len(self.watch.optimizers) != 1 or not self._has_batch():
            return  # with an adversary, there is no batch to learn
        if self.watch.is_large:
            text = f"{self.watch.trained_bytes / 2**20:.0f} MB, and a trial may copy {MOST_COPIED / 2**20:.0f} MB"
            self.tell("left-out", text, "the trials")
            return
        own = _ends((yield self._trial(1.0)))
        if own is None or own[1] < LEARNT * own[0] or own[0] < LEARNT * self.watch.losses[0]:
            return
        low = _ends((yield self._trial(0.1)))
        if low is None:
            return
        if own[1] < LEARNS * own[0]:
            if low[1] < FAR * own[1]:
                text = (
                    f"one batch, {_STEPS} times: loss {own[0]:.3g} to {own[1]:.3g}; at a tenth of the rate {low[1]:.3g}"
                )
                self.tell("rate-too-high", text, self.watch.place_of_owner())
            return
        high = _ends((yield self._trial(10.0)))
        if high is None:
            return
        text = (
            f"one batch, {_STEPS} times: loss {own[0]:.3g} to {own[1]:.3g}; tenth of the rate: {low[1]:.3g};"
            f" ten times: {high[1]:.3g}"
        )
        if not own[1] <= low[1] / BETTER:
            self.tell("rate-too-high", text, self.watch.place_of_owner())
        elif own[1] > SLOW * own[0] and high[1] < SLOW * own[1]:
            self.tell("hardly-learns", text, self.watch.place_of_owner())
        elif high[1] < BETTER * own[1]:
            self.tell("rate-too-low", text, self.watch.place_of_owner())
        elif not self._are_drawn() and self._stalls(own[0], min(own[1], low[1], high[1])):
            self.tell("stalls", text, "labels, loss or network")

    def _are_drawn(self) -> bool:
        """Return whether targets are random numbers, as in a diffusion model: the batch has other targets each time."""
        return any(loss.is_drawn for kept in self.watch.kept.values() for loss in kept.losses)

    def _stalls(self, first: float, best: float) -> bool:
        return best > STALLS * first or self._is_guess(best)

    def _is_guess(self, loss: float) -> bool:
        """Return whether a loss is hardly better than the answer that is best for all examples of the batch alike."""
        losses = [loss for kept in self.watch.kept.values() for loss in kept.losses]
        guess = loss_of_constant(losses[0].name, [losses[0].targets], losses[0].options) if len(losses) == 1 else None
        return guess is not None and losses[0].is_direct and losses[0].is_whole and loss > GUESS * guess

    def _has_batch(self) -> bool:
        """Return whether a loader gives batches, or a loss compares a network's outputs with classes or as they are."""
        losses = [loss for kept in self.watch.kept.values() for loss in kept.losses]
        given = any(loss.is_direct or not loss.targets.is_floating_point() for loss in losses)
        return given or any(use.training for use in self.watch.loaders.values())

    @staticmethod
    def _trial(rate: float) -> Trial:
        return Trial(steps=_STEPS, same_batch=True, dropout=False, rate=rate)


def _ends(answer: Any) -> tuple[float, float] | None:
    """Return the mean of the first two losses, and the lower one of the last loss and the mean of the last four.

    Return None for too few losses, or if one is not finite.
    """
    losses = (answer or {}).get("losses", [])
    if len(losses) < _LEAST or not isfinite(sum(losses)):
        return None
    return mean(losses[:2]), min(mean(losses[-4:]), losses[-1])
