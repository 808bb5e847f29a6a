"""Show findings: as text for a terminal, and as JSON."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trainwreck.check import Check
from trainwreck.finding import Finding


def text_lines(findings: Iterable[Finding], checks: Mapping[str, type[Check]]) -> Iterator[str]:
    """Yield the lines of a paragraph for each finding: what, the values, the line, what to do, and an exercise."""
    for finding in findings:
        outcome = checks[finding.check].outcomes[finding.outcome]
        yield f"{finding.level}: {finding.check}/{finding.outcome}"
        yield f"  {outcome.meaning}"
        yield f"  Found: {finding.text}."
        yield f"  Where: {finding.place} (update {finding.step})"
        yield f"  Fix: {outcome.cure}"
        if outcome.exercise:
            yield f"  Practise: make exercise BREAK={outcome.exercise}"
        yield ""


def to_json(findings: Iterable[Finding], errors: Mapping[str, str], steps: int, version: str) -> str:
    """Return strict JSON: the version, the watched updates, the findings, and checks that failed."""
    found: dict[str, Any] = {
        "version": version,
        "steps": steps,
        "findings": [finding.to_json() for finding in findings],
        "errors": dict(errors),
    }
    return json.dumps(found, allow_nan=False)
