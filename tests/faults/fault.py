"""What a fault is: something that befalls the grader, and what must come of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from faults.lab import Lab, Place


@dataclass(frozen=True)
class Fault:
    """`play` does it and returns what was seen; it raises `NotHeld` where that is not what must come of it.

    in_suite: whether the tests do it too.
    """

    id: str
    says: str
    expected: str
    play: Callable[[Lab, Place], str]
    in_suite: bool = True


@dataclass(frozen=True)
class Outcome:
    """What came of a fault, and whether that is what must come of it."""

    fault: Fault
    held: Literal["yes", "NO", "not tried"]
    seen: str
