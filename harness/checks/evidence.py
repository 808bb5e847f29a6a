"""What an instrument saw, as data: to be shown on a terminal, in a page or as JSON. It names no cause."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

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
    """One line of a plot; a y of None is a gap, one that is not finite is marked."""

    label: str
    points: tuple[tuple[float, float | None], ...]


class Plot(_Frozen):
    """Lines over a common x; `marks` are (x, words) at places of interest."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    marks: tuple[tuple[float, str], ...] = ()
    scale: Literal["linear", "log", "auto"] = "auto"
    log_x: bool = False


class Sheet(_Frozen):
    """Images with their labels, as `harness.run.input_sheet` has them."""

    shape: tuple[int, ...]
    pixels: str
    labels: tuple[str, ...] | None


def short(value: Cell) -> str:
    """Return a figure in four digits, a word as it is, a dash for nothing."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class Evidence(_Frozen):
    """What one instrument did and saw.

    `outcome` is one of the instrument's closed set of words; `checks.toml` says what each rules in or out, and what
    to look at next. `said` is what came out, in a few words, and `figures` are the numbers that decided.
    """

    what: str
    outcome: str
    said: str
    figures: dict[str, Cell]
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()
    sheet: Sheet | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain data; numbers that are not finite as such."""
        return self.model_dump(mode="python")
