"""What an explanation with a label must earn, of 15 points, and in which order the labels come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.score.solutions import Label
from grader.score.verdict import Check


@dataclass(frozen=True)
class Band:
    """The points that a label must earn: at least, at most; its place in the order, the best highest.

    `cause_and_chain` and `numbers` are what these checks must earn, where that is fixed.
    """

    least: float
    most: float
    place: int
    cause_and_chain: float | None = None
    numbers: float | None = None

    def __str__(self) -> str:
        return f"{self.least:g} to {self.most:g}" if self.least < self.most else f"{self.most:g}"


# Right is right: clumsy English costs nothing, and few words cost only what they leave out. So the three right labels,
# whose bands overlap, have one place.
# A text that is labelled `open` waits for the instructor: it has no band and no place.
BANDS: Mapping[Label, Band] = {
    "excellent": Band(15, 15, 5),
    "terse": Band(12, 15, 5, cause_and_chain=10),
    "clumsy": Band(12, 15, 5, cause_and_chain=10),
    "rival beside": Band(0, 11, 4),
    "false numbers": Band(0, 12, 4, numbers=0),
    "vague": Band(0, 7, 3),
    "wrong cause": Band(0, 5, 2, cause_and_chain=0),
    "keyword list": Band(0, 2, 1, cause_and_chain=0),
    "every bug": Band(0, 2, 1, cause_and_chain=0),
    "prompt": Band(0, 2, 1, cause_and_chain=0),
    "empty": Band(0, 0, 1),
}
RIGHT: tuple[Label, ...] = ("excellent", "terse", "clumsy")
# None of these may earn more than the poorest vague text of its recipe, which is honest.
HOLLOW: tuple[Label, ...] = ("keyword list", "every bug", "prompt")


def points_of(checks: Sequence[Check], *ids: str) -> float | None:
    """Return the points of all checks, or of those named; None while one of them is open."""
    points = [check.points for check in checks if not ids or check.id in ids]
    known = [p for p in points if p is not None]
    return sum(known) if len(known) == len(points) else None


def complaint(label: Label, checks: Sequence[Check]) -> str:
    """Return what is wrong with the points of a text with this label, "" where nothing is.

    A text that waits for the instructor has no points yet, and so nothing wrong with them.
    """
    earned = points_of(checks)
    if label not in BANDS:
        return "" if earned is None else f"{earned:g} points, and it should wait for the instructor"
    if earned is None:
        return ""
    band = BANDS[label]
    if not band.least <= earned <= band.most:
        return f"{earned:g} points, not {band}"
    named, numbers = points_of(checks, "cause", "chain"), points_of(checks, "numbers")
    if band.cause_and_chain not in (None, named):
        return f"{named:g} points for cause and chain, not {band.cause_and_chain:g}"
    if band.numbers not in (None, numbers):
        return f"{numbers:g} points for its numbers, not {band.numbers:g}"
    return ""
