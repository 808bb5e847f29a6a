"""What a check declares and what it reports: `Check` and its outcomes, `Finding` with its tables and curves."""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True)
class Limit:
    """A bound on a signal of the log: the run is sound only if every value stays below it."""

    signal: str
    below: float


@dataclass(frozen=True)
class Outcome:
    """One result that a check can have.

    `reading` is the sentence that says what the result means. `next` names checks to make next, `look` a place to
    read when no further check is needed. `mechanism` marks an unsound outcome that shows the fault itself rather
    than a consequence of it; `in_log` bounds the same quantity over the whole run, of which a check sees some steps.
    """

    id: str
    reading: str
    sound: bool = False
    mechanism: bool = False
    next: tuple[str, ...] = ()
    look: str = ""
    in_log: Limit | None = None


@dataclass(frozen=True)
class Option:
    """A whole number of at least 1 that a person may choose; the check has a default of its own."""

    name: str
    help: str


@dataclass(frozen=True)
class Check:
    """What a check module declares in `CHECK`.

    `place` orders the checks, cheapest and most telling first. `minutes` is an estimate of what a person needs to
    run the check and read it. The loader fills in `name` (the module's) and `documentation` (its docstring).
    """

    place: int
    question: str
    minutes: float
    outcomes: tuple[Outcome, ...]
    in_triage: bool = False
    options: tuple[Option, ...] = ()
    name: str = ""
    documentation: str = ""

    @property
    def mechanism(self) -> bool:
        """Whether the check measures a mechanism directly: then a fix can be judged by it."""
        return any(outcome.mechanism for outcome in self.outcomes)

    def outcome(self, id: str) -> Outcome:
        """Return the outcome of this id. Raises `KeyError` for one that the check cannot have."""
        return {outcome.id: outcome for outcome in self.outcomes}[id]

    def command(self, target: str) -> str:
        """Return the command that makes this check of an exercise or a script."""
        return f"harness {self.name.replace('_', '-')} {target}"


Cell = str | bool | int | float | None
"""A figure or a word of a table."""


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Table(_Frozen):
    """Rows under named columns."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


class Line(_Frozen):
    """One line of a plot. A y of None is a gap; a y that is not finite is marked."""

    label: str
    points: tuple[tuple[float, float | None], ...]

    @classmethod
    def over_steps(cls, label: str, values: "list[float]") -> "Line":
        """Return the line of one value a step, counted from 0."""
        return cls(label=label, points=tuple(enumerate(values)))


class Plot(_Frozen):
    """Lines over a common x; `marks` are (x, words) at places of interest."""

    title: str
    y_label: str
    lines: tuple[Line, ...]
    x_label: str = "step"
    marks: tuple[tuple[float, str], ...] = ()
    scale: Literal["linear", "log", "auto"] = "log"
    log_x: bool = False


class Sheet(_Frozen):
    """Images with their labels, as `harness.run.input_sheet` makes them."""

    shape: tuple[int, ...]
    pixels: str
    labels: tuple[str, ...] | None


class Finding(_Frozen):
    """What one check did (`what`) and found: its outcome, a summary in a few words, and the figures that decided."""

    what: str
    outcome: str
    summary: str
    figures: dict[str, Cell]
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()
    sheet: Sheet | None = None


def short(value: Cell) -> str:
    """Return a figure in four digits, a word as it is, a dash for None."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
