"""The records of a result: a finding, its level, the outcomes that a check can have, and the report of a run."""

from collections.abc import Iterable, Mapping, Sequence
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
    suite that teaches this fault, or "". symptom: whether many faults have this outcome, so that it may be the
    consequence of another one.
    """

    level: Level
    meaning: str
    cure: str
    exercise: str = ""
    symptom: bool = False


@dataclass(frozen=True)
class Finding:
    """What a check found: its outcome, the values that decided, and where.

    step: the number of updates that the optimizers had made, or None in the run with short epochs.
    """

    check: str
    outcome: str
    level: Level
    text: str
    place: Place
    step: int | None

    @property
    def when(self) -> str:
        """The moment of the finding, in words."""
        if self.step is None:
            return "in the run with short epochs"
        return f"after {self.step} update{'s' * (self.step > 1)}" if self.step else "before the first update"

    @property
    def name(self) -> str:
        """The check and its outcome: `gradients/stale`."""
        return f"{self.check}/{self.outcome}"

    def to_json(self) -> dict[str, Any]:
        """Return plain data: one entry for each field, and the place as an object with file, line and function."""
        return asdict(self)


def by_level(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings in another order: alarms first, then advice, then notes."""
    return sorted(findings, key=lambda finding: LEVELS.index(finding.level))


@dataclass(frozen=True)
class Report:
    """The result of watching one script. Text, pages and files for other programs are views of it.

    script: the path as the user gave it. errors: the traceback of each check that failed, by name. steps: the number of
    watched updates. failure: why the script did not end well, or "". suppressed: the number of findings that comments
    suppress. known: the number of findings that the baseline contains. losses: the loss of each watched update.
    """

    script: str
    findings: Sequence[Finding]
    errors: Mapping[str, str]
    steps: int
    failure: str = ""
    suppressed: int = 0
    known: int = 0
    losses: Sequence[float] = ()

    @property
    def is_complete(self) -> bool:
        """Whether the script made an update and did not fail."""
        return self.steps > 0 and not self.failure

    def counts(self) -> str:
        """Return the last line of a report, which counts the findings of each level."""
        words = []
        for level in LEVELS:
            count = len({one.name for one in self.findings if one.level == level})  # several lines may have one outcome
            plural = "s" if count > 1 and level != "advice" else ""
            words += [f"{count} {level}{plural}"] if count else []
        words += [
            f"{count} {name}" for count, name in ((self.known, "known"), (self.suppressed, "suppressed")) if count
        ]
        if not self.findings and self.is_complete:
            words.append("nothing else was found" if words else "nothing wrong was found")
        first = f"Watched {self.steps} update{'s' * (self.steps != 1)}{', then the script failed' * bool(self.failure)}"
        return f"{first}: {', '.join(words)}." if words else f"{first}."
