"""What a check is and what it reports: `Check` and its outcomes, `Finding` with its tables."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from harness.run.metrics_log import to_strict


@dataclass(frozen=True)
class LogLimit:
    """A bound on a signal of the log: the run is sound only if every value stays below it."""

    signal: str
    below: float


@dataclass(frozen=True)
class Outcome:
    """One result that a check can have.

    `kind` is "sound" (it rules something out), "unjudged" (there was nothing to measure, or no way to judge it),
    "mechanism" (it shows the fault itself, so that a fix can be judged by it) or "consequence" (something is wrong, and
    the fault may be elsewhere). `reading` is the sentence that says what the result means. `next` names checks to make
    next, `look` a place to read when no further check is needed. `in_log` bounds the same quantity over the whole run,
    of which a check sees some steps.
    """

    id: str
    kind: Literal["sound", "unjudged", "mechanism", "consequence"]
    reading: str
    next: tuple[str, ...] = ()
    look: str = ""
    in_log: LogLimit | None = None

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong, as far as the check can tell."""
        return self.kind in ("sound", "unjudged")

    @property
    def judged(self) -> bool:
        """Whether the check found something to judge."""
        return self.kind != "unjudged"

    @property
    def mechanism(self) -> bool:
        """Whether the result shows the fault itself."""
        return self.kind == "mechanism"


@dataclass(frozen=True)
class Check:
    """A check, as its TOML file describes it.

    `name` is the name of its module, `documentation` the docstring there. `order` sorts the checks: triage makes
    them in this order. `minutes` is an estimate of the time that a person needs to run the check and to read it.
    """

    name: str
    documentation: str
    order: int
    question: str
    minutes: float
    outcomes: tuple[Outcome, ...]
    in_triage: bool = True

    @property
    def mechanism(self) -> bool:
        """Whether the check measures a mechanism directly: then a fix can be judged by it."""
        return any(outcome.mechanism for outcome in self.outcomes)

    @property
    def summary(self) -> str:
        """What the check does: the first line of its documentation."""
        return self.documentation.partition("\n")[0]

    def outcome(self, id: str) -> Outcome:
        """Return the outcome of this id. Raises `KeyError` for one that the check cannot have."""
        return {outcome.id: outcome for outcome in self.outcomes}[id]

    def command(self, target: str) -> str:
        """Return the command that makes this check of an exercise or a script."""
        return f"harness {self.name.replace('_', '-')} {shlex.quote(target)}"


_WIDTH = 80  # characters of a usual terminal

Cell = str | bool | int | float | None
"""A figure or a word of a table."""


@dataclass(frozen=True)
class Table:
    """Rows under named columns."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def lines(self) -> Iterator[str]:
        """Yield the caption and the rows in aligned columns, without a frame.

        If they do not fit a usual terminal, headings are set one word below the other, then columns closer.
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
    """What one check found: its outcome, a summary in a few words, and the figures that decided."""

    outcome: str
    summary: str
    figures: Mapping[str, Cell]
    tables: tuple[Table, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data for strict JSON: a number that is not finite becomes its name."""
        found: dict[str, Any] = to_strict(asdict(self))
        return found

    @classmethod
    def from_json(cls, data: Any) -> "Finding":
        """Undo `to_json`, but for figures that are not finite: they stay names."""
        from pydantic import TypeAdapter  # commands that measure nothing start without it

        return TypeAdapter(cls).validate_python(data)


def short(value: Cell, digits: int = 4) -> str:
    """Return a figure in a few digits, a word as it is, a dash for None."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def percent(share: float) -> str:
    """Return a share of 0 to 1 in words: `98.2 %`."""
    return f"{100 * share:.3g} %"
