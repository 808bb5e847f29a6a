"""One line of `make check`: what was checked, the outcome, and a sentence."""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["passed", "failed", "could not judge"]


@dataclass(frozen=True)
class CheckItem:
    """What was checked, the outcome, and a sentence that says what is wrong, where, and what to do.

    `blocks`: `make submit` refuses, because the tarball would be broken or contradict itself. It only warns of other
    failures.
    """

    id: str
    outcome: Outcome
    message: str
    blocks: bool = False


def passed(item: str, message: str) -> CheckItem:
    """Return an item that passed."""
    return CheckItem(item, "passed", message)


def failed(item: str, message: str, *, blocks: bool = False) -> CheckItem:
    """Return an item that the student has to fix."""
    return CheckItem(item, "failed", message, blocks)


def could_not_judge(item: str, message: str) -> CheckItem:
    """Return an item that could not be judged, through no fault of the student."""
    return CheckItem(item, "could not judge", message)
