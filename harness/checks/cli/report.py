"""A finding together with what its check says of the outcome: the record that terminal, page and JSON show."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.checks import Finding, Outcome, load_check

_READ = "read: "
_MOST_NEXT = 3


@dataclass(frozen=True)
class Report:
    """One check's finding, ready to be shown; `next_lines` are commands, and places to read."""

    name: str
    question: str
    command: str
    minutes: float
    finding: Finding
    outcome: Outcome
    next_lines: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain data for strict JSON."""
        return {
            "check": self.name,
            "question": self.question,
            "command": self.command,
            "minutes": self.minutes,
            **self.finding.to_json(),
            "sound": self.outcome.sound,
            "reading": self.outcome.reading,
            "next": self.next_lines,
        }


def report(target: str, findings: Mapping[str, Finding]) -> list[Report]:
    """Return the reports of findings; `target` is the exercise or the script that commands name."""
    reports = []
    for name, finding in findings.items():
        check = load_check(name)
        outcome = check.outcome(finding.outcome)
        further = tuple(load_check(other).command(target) for other in outcome.next)
        place = (f"{_READ}{outcome.look}",) if outcome.look else ()
        reports.append(
            Report(
                name, check.question, check.command(target), check.minutes, finding, outcome, place + further
            )
        )
    return reports


def where_next(reports: Sequence[Report]) -> list[str]:
    """Return where to go on: what unsound outcomes say, less the checks just made; places to read come first.

    If one check was made and is sound, return what it says; if several were made and all are sound, nothing.
    """
    unsound = [one for one in reports if not one.outcome.sound]
    made = {one.command for one in reports}
    lines = dict.fromkeys(line for one in unsound or reports for line in one.next_lines)
    if not unsound and len(reports) > 1:
        return []
    ordered = sorted(lines, key=lambda line: not line.startswith(_READ))
    return [line for line in ordered if line not in made][:_MOST_NEXT]


def verdict(reports: Sequence[Report]) -> str:
    """Return in a sentence whether everything is sound."""
    unsound = [one.name.replace("_", "-") for one in reports if not one.outcome.sound]
    if not unsound:
        return f"Everything is sound: {len(reports)} checks found nothing wrong."
    return f"{len(unsound)} of {len(reports)} checks are not sound: {', '.join(unsound)}."


def print_json(header: Mapping[str, Any], reports: Sequence[Report], *, whole: bool) -> None:
    """Print one object of strict JSON: a single report, or the `whole` walk of several."""
    if whole:
        body: dict[str, Any] = {
            "minutes": sum(one.minutes for one in reports),
            "sound": all(one.outcome.sound for one in reports),
            "checks": [one.to_json() for one in reports],
        }
    else:
        body = reports[0].to_json()
    print(json.dumps({**header, **body}, allow_nan=False))
