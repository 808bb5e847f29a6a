"""Data classes for checks: a `Check` with its possible `Outcome`s, and a `Finding` with its `Table`s."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from harness.run.metrics_log import to_strict


@dataclass(frozen=True)
class LogLimit:
    """An upper bound for a signal in the log: in a correct run, the signal is below the bound at every step."""

    signal: str
    below: float


@dataclass(frozen=True)
class Outcome:
    """One possible result of a check.

    `kind` says what the outcome means. "sound": the check finds nothing wrong, so some causes are excluded. "unjudged":
    the check does not apply, or cannot judge. "mechanism": the check sees the fault itself, so it can also judge
    whether a fix is correct. "consequence": something is wrong, but the fault may be in another part of the experiment.

    `reading` explains the outcome in a sentence. `next` names the checks to run next, and `look` names the place in the
    code to read next. A check sees only some steps of a run; `in_log` is a bound for the same quantity in the log of
    the whole run.
    """

    id: str
    kind: Literal["sound", "unjudged", "mechanism", "consequence"]
    reading: str
    next: tuple[str, ...] = ()
    look: str = ""
    in_log: LogLimit | None = None

    @property
    def sound(self) -> bool:
        """Whether the check finds nothing wrong."""
        return self.kind in ("sound", "unjudged")

    @property
    def judged(self) -> bool:
        """Whether the check could judge the experiment."""
        return self.kind != "unjudged"

    @property
    def mechanism(self) -> bool:
        """Whether the result shows the fault itself, not a consequence."""
        return self.kind == "mechanism"


@dataclass(frozen=True)
class Check:
    """A check as its TOML file describes it.

    `name` is the name of the module of the check, and `documentation` is the docstring of this module. Triage runs the
    checks in ascending `order`. `minutes` is an estimate of the time that a person needs to run the check and read the
    result. `of_scripts` are the outcomes for scripts, if the check has others for experiments with functions.
    """

    name: str
    documentation: str
    order: int
    question: str
    minutes: float
    outcomes: tuple[Outcome, ...]
    in_triage: bool = True
    of_scripts: tuple[Outcome, ...] = ()

    @property
    def mechanism(self) -> bool:
        """Whether the check can see a fault itself, and therefore judge a fix."""
        return any(outcome.mechanism for outcome in self.every_outcome)

    @property
    def every_outcome(self) -> tuple[Outcome, ...]:
        """All outcomes: those for experiments with functions, and those for scripts."""
        return (*self.outcomes, *self.of_scripts)

    @property
    def summary(self) -> str:
        """The first line of the documentation, which says what the check does."""
        return self.documentation.partition("\n")[0]

    def outcome(self, id: str) -> Outcome:
        """Return the outcome with this id. Raises `KeyError` if the check has no such outcome."""
        return {outcome.id: outcome for outcome in self.every_outcome}[id]

    @property
    def verb(self) -> str:
        """The subcommand of `harness` that runs this check."""
        return _OTHER_VERBS.get(self.name, self.name.replace("_", "-"))

    def command(self, target: str) -> str:
        """Return the command that runs this check on an exercise or a script."""
        return f"harness {self.verb} {shlex.quote(target)}"


# `harness progress` shows the progress of the student.
_OTHER_VERBS = {"progress": "constant-answer"}
PLACE = "place"
"""The name of a figure: the line of the script, or the part of its training, to which a finding belongs."""
_WIDTH = 80  # width of a usual terminal, in columns

Cell = str | bool | int | float | None
"""A value or a word in a table."""


@dataclass(frozen=True)
class Table:
    """A caption, named columns, and rows."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the table: the caption, then headings and rows in aligned columns.

        If the lines are too wide for a usual terminal, each word of a heading gets its own line. If they are still too
        wide, the gaps between the columns become narrower.
        """
        yield self.caption
        rows = [tuple(short(cell, digits=3) for cell in row) for row in self.rows]
        high = max(len(name.split()) for name in self.columns)
        words = [[""] * (high - len(name.split())) + name.split() for name in self.columns]
        stacked = [tuple(line) for line in zip(*words, strict=True)]
        for heading, gap in (([self.columns], 2), (stacked, 2), (stacked, 1)):
            cells = [*heading, *rows]
            widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
            if 2 + sum(widths) + gap * (len(widths) - 1) <= _WIDTH:
                break
        for row in cells:
            rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
            yield "  " + (" " * gap).join((row[0].ljust(widths[0]), *rest)).rstrip()


@dataclass(frozen=True)
class Finding:
    """The result of one check: its outcome, a short summary, the measured values, and tables."""

    outcome: str
    summary: str
    figures: Mapping[str, Cell]
    tables: tuple[Table, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data for strict JSON: a number that is not finite becomes a string, such as "NaN"."""
        found: dict[str, Any] = to_strict(asdict(self))
        return found

    @classmethod
    def from_json(cls, data: Any) -> "Finding":
        """Return the finding that `to_json` converted; values that are not finite remain strings."""
        from pydantic import TypeAdapter  # imported late: commands that measure nothing must start fast

        return TypeAdapter(cls).validate_python(data)


def short(value: Cell, digits: int = 4) -> str:
    """Return a value as text: a number with few digits, a word unchanged, a dash for None."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def percent(share: float) -> str:
    """Return a share from 0 to 1 as a percentage, such as `98.2 %`."""
    return f"{100 * share:.3g} %"
