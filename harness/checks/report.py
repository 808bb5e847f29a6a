"""Evidence with what is known of its instrument: the question, the command, what the outcome means, where to go on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.checks.checks import Outcome, find_check
from harness.checks.evidence import Evidence
from harness.checks.target import Target
from harness.run.metrics_log import to_strict

_READ = "read: "
SHOWN_NEXT = 3


@dataclass(frozen=True)
class Reported:
    """One instrument's evidence, ready to be shown; `next_lines` are commands and places to read."""

    id: str
    question: str
    command: str
    minutes: float
    evidence: Evidence
    outcome: Outcome
    next_lines: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain data for strict JSON."""
        found: dict[str, Any] = to_strict(
            {
                "instrument": self.id,
                "question": self.question,
                "command": self.command,
                "minutes": self.minutes,
                **self.evidence.to_json(),
                "sound": self.outcome.sound,
                "reading": self.outcome.reading,
                "next": self.next_lines,
            }
        )
        return found


def report(target: Target, found: Mapping[str, Evidence]) -> list[Reported]:
    """Return the evidence of checks with what `checks.toml` says of each, for the exercise that was looked at."""
    reported = []
    for check_id, evidence in found.items():
        check = find_check(check_id)
        outcome = check.outcome(evidence.outcome)
        reported.append(
            Reported(
                id=check.id,
                question=check.question,
                command=check.command_for(target.exercise),
                minutes=check.minutes,
                evidence=evidence,
                outcome=outcome,
                next_lines=next_lines(outcome, target.exercise),
            )
        )
    return reported


def where_next(reported: Sequence[Reported]) -> list[str]:
    """Return where to go on after these instruments: what the unsound ones say, less the commands just given.

    Of sound ones alone, what the last of them says.
    """
    given = {one.command for one in reported}
    telling = [one for one in reported if not one.outcome.sound] or list(reported[-1:])
    lines = dict.fromkeys(line for one in telling for line in one.next_lines)
    places = sorted(lines, key=lambda line: not line.startswith(_READ))
    return [line for line in places if line not in given][:SHOWN_NEXT]


def next_lines(outcome: Outcome, exercise: str) -> tuple[str, ...]:
    """Return where an outcome sends: first the place to read, then the commands of further checks."""
    place = () if outcome.look is None else (f"{_READ}{outcome.look}",)
    return (*place, *(find_check(check).command_for(exercise) for check in outcome.next))


def header(target: Target) -> dict[str, Any]:
    """Return what was looked at, for JSON."""
    return {
        "exercise": target.exercise,
        "edited": target.edited,
        "seed": target.settings.seed,
        "dataset": target.settings.dataset,
    }
