"""The records of a result: a finding, its level, and the outcomes that a check can have."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from trainwreck.places import Place

Level = Literal["alarm", "advice", "note"]
DEFAULT_STEPS = 12
"""The number of updates that are watched by default."""
LEVELS: tuple[Level, ...] = ("alarm", "advice", "note")


@dataclass(frozen=True)
class Outcome:
    """A result that a check may have, other than "sound".

    level: "alarm" if a sound training cannot have this outcome, "advice" for statistics and for what is legal but odd,
    "note" for a remark. meaning: the explanation, in a sentence. cure: the usual repair. exercise: the exercise of the
    suite that teaches this fault, or "".
    """

    level: Level
    meaning: str
    cure: str
    exercise: str = ""


@dataclass(frozen=True)
class Finding:
    """What a check found: its outcome, the values that decided, and where.

    step: the number of updates that the optimizers had made.
    """

    check: str
    outcome: str
    level: Level
    text: str
    place: Place
    step: int

    def to_json(self) -> dict[str, Any]:
        """Return plain data: one entry for each field, and the place as an object with file, line and function."""
        return asdict(self)
