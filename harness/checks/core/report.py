"""Describe findings in lines of text for a terminal, and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from harness.checks.core.finding import PLACE, Check, Finding, Outcome, short
from harness.checks.core.library import load_check

READ = "read: "
_MOST_NEXT = 3


@dataclass(frozen=True)
class Line:
    """A line of text, with its indentation and its tone (colour) on a terminal.

    `indent` is the number of spaces before the text. `hang` is the number of further spaces before the rest of a
    wrapped line. `wraps` says whether a terminal may wrap the line; table rows and commands must not be wrapped.
    """

    text: str
    indent: int = 0
    hang: int = 0
    wraps: bool = True
    tone: Literal["plain", "heading", "good", "bad", "aside"] = "plain"

    def __str__(self) -> str:
        """Return the indented line, neither wrapped nor coloured."""
        return f"{' ' * self.indent}{self.text}".rstrip()


@dataclass(frozen=True)
class CheckReport:
    """The finding of a check, with the target (exercise, script or runs) and the options of the command."""

    check: Check
    target: str
    finding: Finding
    options: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name of the check as in its command."""
        return self.check.name.replace("_", "-")

    @property
    def outcome(self) -> Outcome:
        """The outcome, with the sentence that explains it."""
        return self.check.outcome(self.finding.outcome)

    @property
    def command(self) -> str:
        """The command that runs this check."""
        return self._command(self.check)

    @property
    def next_lines(self) -> list[str]:
        """The next steps: a place in the code to read, then commands to run."""
        look = self.outcome.look or (self.finding.figures.get(PLACE, "") if not self.outcome.sound else "")
        place = [f"{READ}{look}"] if look else []
        return [*place, *(self._command(load_check(name)) for name in self.outcome.next)]

    def _command(self, check: Check) -> str:
        return " ".join([check.command(self.target), *self.options])

    def lines(self, indent: int = 0, most_rows: int | None = None) -> Iterator[Line]:
        """Yield the outcome and its meaning, the measured values, and up to `most_rows` rows of each table.

        If `most_rows` is 0, no table is shown; if it is None, whole tables are shown.
        """
        tone: Literal["good", "bad"] = "good" if self.outcome.sound else "bad"
        yield Line(f"{self.outcome.id}: {self.finding.summary}", indent, 2, tone=tone)
        yield Line(self.outcome.reading, indent)
        yield from self.measured_lines(indent, most_rows)

    def measured_lines(self, indent: int = 0, most_rows: int | None = None) -> Iterator[Line]:
        """Yield the measured values and the tables, without the outcome."""
        for name, value in self.finding.figures.items():
            yield Line(f"{name}: {short(value)}", indent + 2, 2)
        for table in self.finding.tables if most_rows != 0 else ():
            heads = len(list(table.lines())) - len(table.rows)
            whole = None if most_rows is None else heads + most_rows
            yield from (Line(line, indent, wraps=False) for line in islice(table.lines(), whole))
            if most_rows is not None and len(table.rows) > most_rows:
                yield Line(f"... and {len(table.rows) - most_rows} more", indent + 2)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for strict JSON."""
        check, outcome = self.check, self.outcome
        return {
            "check": check.name,
            "question": check.question,
            "command": self.command,
            "minutes": check.minutes,
            **self.finding.to_json(),
            "sound": outcome.sound,
            "reading": outcome.reading,
            "next": self.next_lines,
        }


def unsound(reports: Sequence[CheckReport]) -> list[CheckReport]:
    """Return the reports that found something wrong: first the fault itself, then its possible consequences."""
    return sorted((one for one in reports if not one.outcome.sound), key=lambda one: not one.outcome.mechanism)


def where_next(reports: Sequence[CheckReport]) -> list[str]:
    """Return the next steps that outcomes with a fault suggest, without the checks that were just run.

    Places in the code to read come before commands, and outcomes that show the fault itself come before consequences.
    If there is only one report, its next steps are returned even if it found nothing wrong.
    """
    read = list(reports) if len(reports) == 1 else unsound(reports)
    made = {one.command for one in reports}
    lines = dict.fromkeys(line for one in read for line in one.next_lines if line not in made)
    return sorted(lines, key=lambda line: not line.startswith(READ))[:_MOST_NEXT]


def verdict(reports: Sequence[CheckReport]) -> str:
    """Return a sentence that says that nothing is wrong, or names the checks that found something wrong."""
    wrong = [one.title for one in unsound(reports)]
    if not wrong:
        judged = sum(one.outcome.judged for one in reports)
        return f"Everything is sound: {judged} checks found nothing wrong."
    return f"{len(wrong)} of {len(reports)} checks found something wrong: {', '.join(wrong)}."


def walk_lines(reports: Sequence[CheckReport]) -> Iterator[Line]:
    """Yield the lines of several findings: the verdict, likely causes, possible consequences, then sound checks."""
    wrong = unsound(reports)
    yield Line(verdict(reports), hang=2, tone="bad" if wrong else "good")
    faults = sum(one.outcome.mechanism for one in wrong)
    shown = "Likely causes, perhaps the same bug seen twice:" if faults > 1 else "Likely cause:"
    others = "Perhaps consequences:" if faults else "No check shows the cause yet. Perhaps consequences of it:"
    for title, is_fault in ((shown, True), (others, False)):
        found = [one for one in wrong if one.outcome.mechanism == is_fault]
        if found:
            yield Line(title, tone="heading")
        for one in found:
            yield Line(f"{one.outcome.id:<14} {one.command}", 2, wraps=False, tone="bad")
            yield Line(one.finding.summary, 4)
            yield Line(one.outcome.reading, 4, tone="aside")
    sound = [one for one in reports if one.outcome.sound]
    for title, judged in (("Found nothing wrong", True), ("Had nothing to judge", False)):
        words = [
            one.title if one.outcome.id == "sound" else f"{one.title} ({one.outcome.id})"
            for one in sound
            if one.outcome.judged == judged
        ]
        if words:
            yield Line(f"{title}: {', '.join(words)}.", hang=2)


def choice_lines(check: Check) -> Iterator[Line]:
    """Yield all outcomes of a check, for a student who must choose the right outcome."""
    yield Line("Its possible outcomes: which one do the measurements show?", tone="heading")
    for outcome in check.outcomes:
        yield Line(f"{outcome.id}: {outcome.reading}", 2, 2)
