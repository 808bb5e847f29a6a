"""Writes docs/checks.md from what the checks declare and document; `harness checks --write docs/checks.md`."""

from collections.abc import Iterator
from pathlib import Path

import harness
from harness.checks import Check, check_names, load_check

_INTRODUCTION = Path(harness.__file__).parent / "templates" / "checks.md"


def documentation() -> str:
    """Return docs/checks.md."""
    checks = [load_check(name) for name in check_names()]
    glance = [
        f"- [ ] `{check.command('huge_lr')}` {check.question} {check.minutes:g} min" for check in checks
    ]
    introduction = _INTRODUCTION.read_text(encoding="utf-8")
    return "\n".join([introduction, *glance, *(line for check in checks for line in _section(check))]) + "\n"


def _section(check: Check) -> Iterator[str]:
    marks = [mark for mark, set in (("in triage", check.in_triage), ("mechanism", check.mechanism)) if set]
    unit = "minute" if check.minutes == 1 else "minutes"
    yield f"\n## {check.name.replace('_', '-')}\n"
    yield f"**{check.question}** About {check.minutes:g} {unit}{''.join(f', {mark}' for mark in marks)}.\n"
    yield f"{check.documentation}\n"
    yield "| outcome | | what it means | next |"
    yield "| --- | --- | --- | --- |"
    for outcome in check.outcomes:
        further = [f"`{name.replace('_', '-')}`" for name in outcome.next]
        place = [f"read {outcome.look}"] if outcome.look else []
        sound = "sound" if outcome.sound else "**unsound**"
        yield f"| `{outcome.id}` | {sound} | {outcome.reading} | {'; '.join((*place, *further))} |"
