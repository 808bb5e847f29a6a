"""The figures that a script prints follow its losses."""

from itertools import pairwise
from typing import Any, ClassVar

from torch import Tensor

from trainwreck.check import Check
from trainwreck.finding import Outcome
from trainwreck.places import Place

# figure (a script of tests/test_watch_checks.py, ten seeds)              | other column  | broken       | bound
# spread of (growth of the figure / sum of the losses since), of its mean | 0.22 to 0.27  | below 0.001  | EQUAL 0.02
# spread of the sums of losses between two lines, of their mean           | 0.22 to 0.27  | 0.22 to 0.27 | VARIES 0.1
# The other column is the number of the epoch. VARIES is an estimate.
EQUAL, VARIES = 0.02, 0.1
_LINES, _MOST = 4, 200


class Log(Check):
    """A printed training loss is one of the losses since the line before it, or their mean or their sum.

    The check compares the numbers of each call of `print` with the losses of the updates.
    """

    name = "log"
    question = "Do printed losses follow the losses of the updates?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "accumulates": Outcome(
            "advice",
            "A printed loss adds up all losses since the training began, so it grows while the network learns.",
            "Set the running loss to zero at the beginning of each epoch, or after each line.",
        )
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._lines: dict[Place, list[tuple[int, list[float]]]] = {}  # updates before the line, and its numbers

    def on_print(self, values: tuple[Any, ...], place: Place) -> None:
        """Note the numbers of a line that comes after further updates."""
        lines = self._lines.setdefault(place, [])
        if len(lines) < _MOST and (not lines or lines[-1][0] < self.watch.step):
            lines.append((self.watch.step, _numbers_in(values)))

    def at_end(self) -> None:
        """Look for a column of numbers that grows by the losses since the line before."""
        for place, lines in self._lines.items():
            if len(lines) < _LINES:
                continue
            steps = [step for step, _ in lines]
            sums = [sum(self.watch.losses[begin:end]) for begin, end in pairwise(steps)]
            for column in zip(*(numbers for _, numbers in lines), strict=False):
                growth = [last - first for first, last in pairwise(column)]
                if _spread(sums) > VARIES and min(sums) > 0 and min(growth) > 0:
                    ratios = [own / total for own, total in zip(growth, sums, strict=True)]
                    if _spread(ratios) < EQUAL:
                        text = f"from {column[0]:.3g} to {column[-1]:.3g} in {len(column)} lines"
                        self.tell("accumulates", text, place)


def _numbers_in(values: tuple[Any, ...]) -> list[float]:
    """Return the numbers of a printed line, in their order."""
    plain = [float(one) if isinstance(one, Tensor) and one.numel() == 1 else one for one in values]
    words = " ".join(str(one) for one in plain if isinstance(one, str | int | float))
    found = []
    for word in words.replace(",", " ").replace("=", " ").replace(":", " ").replace("|", " ").replace("%", " ").split():
        try:
            found.append(float(word.strip("()[]{};")))
        except ValueError:
            continue
    return found


def _spread(values: list[float]) -> float:
    """Return the largest distance from the mean, as a share of the mean."""
    mean = sum(values) / len(values)
    return max(abs(one - mean) for one in values) / abs(mean) if mean else float("inf")
