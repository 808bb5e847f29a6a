"""The metric of the script follows the outputs: right answers count as right, and wrong ones as wrong."""

from collections.abc import Generator
from typing import Any, ClassVar

from trainwreck.check import Check
from trainwreck.finding import Outcome
from trainwreck.trial import Trial

# figure                                                     | healthy | broken | bound
# share of right answers that the script counts as right     | 1       | < 0.95 | RIGHT 0.98
# share of wrong answers that it counts as right             | 0       | > 0.05 | WRONG 0.02
RIGHT, WRONG = 0.98, 0.02
_LEAST = 16  # compared examples
_STEPS = 40


class Metric(Check):
    """If the network gives the right answer for each example of an evaluation, the script counts each one as right.

    In children, the loop goes on until it evaluates. There, the outputs of the network are replaced by right answers,
    and by wrong ones. The check looks at the comparisons of the script's predictions with the labels of its batch.
    """

    name = "metric"
    question = "Does the metric count right answers as right, and wrong ones as wrong?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "misses-right": Outcome(
            "alarm",
            "The metric counts answers as wrong although the outputs of the network are right.",
            "Look at how outputs become predictions: the dimension of argmax, the threshold, the order of examples.",
        ),
        "counts-wrong": Outcome(
            "alarm",
            "The metric counts answers as right although the outputs of the network are wrong.",
            "Look at how outputs become predictions, and at what they are compared with.",
        ),
    }

    def trials(self) -> Generator[Trial, Any, None]:
        """Replace the outputs by right answers, and by wrong ones."""
        if not self.watch.evaluations or not any(use.evaluating for use in self.watch.loaders.values()):
            return
        right = yield Trial(steps=_STEPS, answers="right")
        hits, compared = (right or {}).get("compared", (0, 0))
        if compared < _LEAST:
            return  # the script computes its metric in another way
        if hits < RIGHT * compared:
            self.tell("misses-right", f"{hits} of {compared} right answers count", "where the metric is computed")
        wrong = yield Trial(steps=_STEPS, answers="wrong")
        hits, compared = (wrong or {}).get("compared", (0, 0))
        if compared >= _LEAST and hits > WRONG * compared:
            self.tell("counts-wrong", f"{hits} of {compared} wrong answers count", "where the metric is computed")
