"""Shows findings on a terminal: what came out, what that rules in or out, and the next command."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from harness.checks import Finding
from harness.checks.cli.report import Report, verdict, where_next
from harness.checks.lab.finding import Cell, Line, Table, short

_SHADES = " .:-=+*#%@"
_WIDTH = 60
_LABELS = 12


def show(reports: Sequence[Report], heading: str, page: Path | None) -> None:
    """Print one finding in full, or several on one screen, and where to go on."""
    console = Console()
    _line(console, heading, style="bold")
    if len(reports) == 1:
        _show_whole(console, reports[0])
    else:
        _show_walk(console, reports)
    if page is not None:
        _line(console, f"With curves and tables: {page}")
    lines = where_next(reports)
    if lines:
        console.print("Next:", style="bold")
    for line in lines:
        _line(console, f"  {line}")


def _show_whole(console: Console, report: Report) -> None:
    finding = report.finding
    _line(console, report.question)
    _line(console, f"  {finding.what}")
    console.print()
    _outcome(console, finding, sound=report.outcome.sound)
    for name, value in finding.figures.items():
        _line(console, f"  {name}: {short(value)}")
    for table in finding.tables:
        for text in _table(table):
            _line(console, text)
    for plot in finding.plots:
        _line(console, f"{plot.title}, by {plot.x_label}")
        for line in plot.lines:
            if len(line.points) > 2:  # a level needs no curve
                _line(console, f"  {_spark(line, log=plot.scale == 'log')}")
    if finding.sheet is not None and finding.sheet.labels:
        _line(
            console,
            f"The first labels of the batch: {', '.join(finding.sheet.labels[:_LABELS])} (--html: the images)",
        )
    console.print()
    _line(console, report.outcome.reading)


def _show_walk(console: Console, reports: Sequence[Report]) -> None:
    width = max(len(report.command) for report in reports)
    for number, report in enumerate(reports, 1):
        text = Text(f"{number:2} ")
        text.append(f"{report.outcome.id:<14} ", style="green" if report.outcome.sound else "bold red")
        text.append(f"{report.command:<{width}}  {report.minutes:g} min")
        console.print(text, highlight=False, soft_wrap=True)
        _line(console, f"     {report.finding.summary}")
        _line(console, f"     {report.outcome.reading}", style="dim")
    sound = all(report.outcome.sound for report in reports)
    _line(console, verdict(reports), style="green" if sound else "bold red")
    minutes = sum(report.minutes for report in reports)
    _line(console, f"By hand, one after the other, these checks take about {minutes:g} minutes.")


def _outcome(console: Console, finding: Finding, *, sound: bool) -> None:
    text = Text(finding.outcome, style="green" if sound else "bold red")
    text.append(f": {finding.summary}", style="default")
    console.print(text, highlight=False, soft_wrap=True)


def _line(console: Console, line: str, style: str = "") -> None:
    """Print a line unwrapped and unstyled: a path or command in it must survive being copied."""
    console.print(line, markup=False, highlight=False, soft_wrap=True, style=style)


def _table(table: Table) -> Iterator[str]:
    """Yield the lines of a table, without a frame: even ten columns must fit a usual terminal."""
    yield table.caption
    cells = [table.columns, *(tuple(_digits(cell) for cell in row) for row in table.rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(table.columns))]
    for row in cells:
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        yield "  " + "  ".join((row[0].ljust(widths[0]), *rest)).rstrip()


def _digits(cell: Cell) -> str:
    return f"{cell:.3g}" if isinstance(cell, float) else short(cell)


def _spark(line: Line, *, log: bool) -> str:
    """Return a line as shades, from its least to its greatest value; `!` marks a value that is not finite."""
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
