"""One judgement of `make check`."""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["passed", "failed", "could not judge"]


@dataclass(frozen=True)
class CheckItem:
    """What was looked at, the outcome, and a sentence: what is there or what is wrong, where and what to do.

    `blocks` says that a tarball would be broken or contradict itself with this failure in it: `make submit`
    refuses then, and otherwise only warns.
    """

    id: str
    outcome: Outcome
    message: str
    blocks: bool = False


def passed(item: str, message: str) -> CheckItem:
    """Return an item that is in order."""
    return CheckItem(item, "passed", message)


def failed(item: str, message: str, *, blocks: bool = False) -> CheckItem:
    """Return an item that the student has to mend."""
    return CheckItem(item, "failed", message, blocks)


def could_not_judge(item: str, message: str) -> CheckItem:
    """Return an item that stays open, through no mistake that could be named."""
    return CheckItem(item, "could not judge", message)
