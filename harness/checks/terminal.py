"""Shows evidence on a terminal: what came out, what that rules in or out, and the next command."""

import base64
import math
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from harness.checks.evidence import Cell, Evidence, Line, Sheet, Table, short
from harness.checks.report import Reported, where_next

_SHADES = " .:-=+*#%@"
_WIDTH = 60
_IMAGES = 5
_COLUMNS, _ROWS = 14, 7  # of an image in characters, which are twice as high as wide


def show_reported(reported: Reported, heading: str) -> None:
    """Print one instrument's evidence in full."""
    console, evidence = Console(), reported.evidence
    _line(console, heading, style="bold")
    if reported.question:
        _line(console, reported.question)
    _line(console, f"  {evidence.what}")
    console.print()
    _outcome(console, evidence, sound=reported.outcome.sound)
    for name, value in evidence.figures.items():
        _line(console, f"  {name}: {short(value)}")
    for table in evidence.tables:
        for text in _table(table):
            _line(console, text)
    for plot in evidence.plots:
        _line(console, f"{plot.title}, by {plot.x_label}")
        for line in plot.lines:
            if len(line.points) > 2:  # a level needs no curve
                _line(console, f"  {_spark(line, log=plot.scale == 'log')}")
    if evidence.sheet is not None and evidence.sheet.pixels:
        _line(console, "The first images of the batch, as the network gets them, with their labels")
        for row in _pictures(evidence.sheet):
            _line(console, f"  {row}".rstrip())
    console.print()
    _line(console, reported.outcome.reading)
    show_next(console, [reported])


def show_triage(all_reported: Sequence[Reported], heading: str, page: str | None) -> None:
    """Print the walk on one screen: for each check its outcome, what it rules in or out, command and minutes."""
    console = Console()
    _line(console, heading, style="bold")
    width = max(len(reported.command) for reported in all_reported)
    for number, reported in enumerate(all_reported, 1):
        text = Text(f"{number:2} ")
        text.append(f"{reported.outcome.id:<14} ", style="green" if reported.outcome.sound else "bold red")
        text.append(f"{reported.command:<{width}}  {reported.minutes:g} min")
        console.print(text, highlight=False, soft_wrap=True)
        _line(console, f"     {reported.evidence.said}")
        _line(console, f"     {reported.outcome.reading}", style="dim")
    total = sum(reported.minutes for reported in all_reported)
    _line(console, f"{total:g} minutes, had each been run and read by hand.")
    if page is not None:
        _line(console, f"With curves and tables: {page}")
    show_next(console, all_reported)


def show_next(console: Console, reported: Sequence[Reported]) -> None:
    """Print where to look next."""
    lines = where_next(reported)
    if lines:
        console.print("Next:", style="bold")
    for line in lines:
        _line(console, f"  {line}")


def _outcome(console: Console, evidence: Evidence, *, sound: bool) -> None:
    text = Text(evidence.outcome, style="green" if sound else "bold red")
    text.append(f": {evidence.said}", style="default")
    console.print(text, highlight=False, soft_wrap=True)


def _line(console: Console, line: str, style: str = "") -> None:
    """Print a line as it is: a path or command in it must survive being copied."""
    console.print(line, markup=False, highlight=False, soft_wrap=True, style=style)


def _table(table: Table) -> Iterator[str]:
    """Yield the lines of a table: no frame, so that even ten columns fit a usual terminal."""
    yield table.caption
    cells = [table.columns, *(tuple(_digits(cell) for cell in row) for row in table.rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(table.columns))]
    for row in cells:
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        yield "  " + "  ".join((row[0].ljust(widths[0]), *rest)).rstrip()


def _digits(cell: Cell) -> str:
    return f"{cell:.3g}" if isinstance(cell, float) else short(cell)


def _spark(line: Line, *, log: bool) -> str:
    """Return a line as shades, from its least to its greatest value; `!` is a value that is not finite."""
    values = [y for _, y in line.points if y is not None]
    if not values:
        return f"{line.label}: nothing recorded"
    picked = (
        [values[index * len(values) // _WIDTH] for index in range(_WIDTH)] if len(values) > _WIDTH else values
    )
    heights = [_height(value, log=log) for value in picked]
    finite = [height for height in heights if math.isfinite(height)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    span = (high - low) or 1.0
    shades = "".join(
        _SHADES[round((height - low) / span * (len(_SHADES) - 1))] if math.isfinite(height) else "!"
        for height in heights
    )
    return f"{line.label}: {short(values[0])} |{shades}| {short(values[-1])}"


def _height(value: float, *, log: bool) -> float:
    if not math.isfinite(value):
        return math.nan
    return math.log10(max(abs(value), 1e-30)) if log else value


def _pictures(sheet: Sheet) -> list[str]:
    """Return the first images side by side, in shades of characters, and their labels below."""
    count, channels, height, width = sheet.shape
    pixels, size = base64.b64decode(sheet.pixels), channels * height * width
    shown = range(min(count, _IMAGES))
    rows = [
        "  ".join(
            "".join(
                _SHADES[
                    _grey(pixels, index * size, (channels, height, width), row, column) * len(_SHADES) // 256
                ]
                for column in range(_COLUMNS)
            )
            for index in shown
        )
        for row in range(_ROWS)
    ]
    if sheet.labels is None:
        return rows
    return [*rows, "  ".join(label[:_COLUMNS].center(_COLUMNS) for label in sheet.labels[: len(shown)])]


def _grey(pixels: bytes, start: int, shape: tuple[int, int, int], row: int, column: int) -> int:
    """Return the mean of the pixels under one character, over all channels."""
    channels, height, width = shape
    rows = range(row * height // _ROWS, max((row + 1) * height // _ROWS, row * height // _ROWS + 1))
    columns = range(
        column * width // _COLUMNS, max((column + 1) * width // _COLUMNS, column * width // _COLUMNS + 1)
    )
    found = [
        pixels[start + channel * height * width + y * width + x]
        for channel in range(channels)
        for y in rows
        for x in columns
    ]
    return sum(found) // len(found)
