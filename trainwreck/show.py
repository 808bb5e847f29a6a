"""Show findings: as text for a terminal, and as JSON."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trainwreck.checks import ALL
from trainwreck.finding import LEVELS, Finding

_OUTCOMES = {check.name: check.outcomes for check in ALL}


def text_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield the lines of a paragraph for each finding: what, the values, the line, what to do, and an exercise."""
    for finding in findings:
        outcome = _OUTCOMES[finding.check][finding.outcome]
        yield f"{finding.level}: {finding.check}/{finding.outcome}"
        yield f"  {outcome.meaning}"
        yield f"  Found: {finding.text}."
        yield f"  Where: {finding.place} (update {finding.step})"
        yield f"  Fix: {outcome.cure}"
        if outcome.exercise:
            yield f"  Practise: make exercise BREAK={outcome.exercise}"
        yield ""


def report_lines(findings: Sequence[Finding], errors: Mapping[str, str], steps: int) -> Iterator[str]:
    """Yield the findings, the checks that failed, and a line that counts the findings of each level."""
    yield from text_lines(findings)
    for name, error in errors.items():
        yield f"The check {name} failed and was left out; this is a bug in trainwreck:\n{error}"
    counts = {level: sum(finding.level == level for finding in findings) for level in LEVELS}
    words = ", ".join(f"{count} {level}" for level, count in counts.items() if count)
    yield f"Watched {steps} updates: {words or 'nothing wrong was found'}."


def to_json(findings: Iterable[Finding], errors: Mapping[str, str], steps: int, version: str) -> str:
    """Return strict JSON: the version, the watched updates, the findings, and checks that failed."""
    found: dict[str, Any] = {
        "version": version,
        "steps": steps,
        "findings": [finding.to_json() for finding in findings],
        "errors": dict(errors),
    }
    return json.dumps(found, allow_nan=False)
