"""Show a report as text."""

from collections.abc import Iterable, Iterator
from importlib.util import find_spec

from trainwreck.catalogue import outcome_of
from trainwreck.finding import Finding, Outcome, Report
from trainwreck.terminal import wrap

CONSEQUENCE = "An alarm may be the cause of this: repair the alarms first."


def text_lines(findings: Iterable[Finding], width: int | None = None) -> Iterator[str]:
    """Yield the lines of a paragraph for each finding: what, the values, the line, what to do, and an exercise."""
    for finding, others, is_consequence in grouped(findings):
        middle = [f"Found: {finding.text}.", f"Where: {finding.place} ({finding.when})"]
        middle += [f"Also: {other.place}: {other.text}." for other in others]
        middle += [CONSEQUENCE] * is_consequence
        yield from outcome_lines(finding.name, outcome_of(finding), width, middle)


def grouped(findings: Iterable[Finding]) -> Iterator[tuple[Finding, list[Finding], bool]]:
    """Yield the first finding of each outcome, those at other lines, and whether an alarm may be its cause."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.name, []).append(finding)
    has_alarm = any(first.level == "alarm" for first, *_ in groups.values())
    for first, *others in groups.values():
        yield first, others, has_alarm and first.level != "alarm" and outcome_of(first).symptom


def outcome_lines(name: str, outcome: Outcome, width: int | None, middle: Iterable[str] = ()) -> Iterator[str]:
    """Yield the lines of a paragraph for an outcome, with other lines between its meaning and its cure."""
    yield f"{outcome.level}: {name}"
    yield from wrap(outcome.meaning, width, "  ", "  ")
    practise = practise_command(outcome)
    for line in (*middle, f"Fix: {outcome.cure}", *([f"Practise: {practise}"] if practise else [])):
        yield from wrap(line, width, "  ", "    ")
    yield ""


def practise_command(outcome: Outcome) -> str:
    """Return the command that starts the exercise about an outcome, or "" without one, or without the course."""
    is_installed = find_spec("harness") is not None  # the course, in whose folder `make` works
    return f"make exercise BREAK={outcome.exercise}" if outcome.exercise and is_installed else ""


def report_lines(report: Report, width: int | None = None) -> Iterator[str]:
    """Yield the findings, the checks that failed, and a line that counts the findings. Wrap them to a width."""
    yield from text_lines(report.findings, width)
    for name, error in report.errors.items():
        yield from wrap(f"The check {name} failed and was left out; this is a bug in trainwreck:", width)
        yield from error.splitlines()
    yield from wrap(report.counts(), width)
