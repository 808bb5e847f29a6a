"""A training that sets a seed gives the same losses again."""

from math import isnan
from typing import ClassVar

from trainwreck.check import Check
from trainwreck.finding import Outcome


class Repeat(Check):
    """A script that sets a seed has the same losses when it runs again. A second process runs its first updates."""

    name = "repeat"
    question = "Does the script give the same losses again?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "differs": Outcome(
            "advice",
            "The script sets a seed, but a second run has other losses.",
            "Seed `random`, NumPy and torch before the first random number, and give data loaders a generator.",
        )
    }

    def compare(self, first: list[float], second: list[float]) -> None:
        """Compare the losses of the updates of two runs."""
        for update, (one, other) in enumerate(zip(first, second, strict=False), 1):
            if one != other and not (isnan(one) and isnan(other)):
                self.tell(
                    "differs", f"the loss of update {update} is {one:.6g}, then {other:.6g}", "the random numbers"
                )
                return
