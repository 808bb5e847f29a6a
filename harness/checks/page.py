"""One self-contained page of evidence: the walk as a table, then curves, tables and images of each instrument."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.checks.evidence import Cell, Evidence, Plot, Sheet, Table
from harness.checks.report import Reported, where_next
from harness.page.charts import LineChart, Mark, Series, line_chart, number_text
from harness.page.run_data import InputImage, read_images
from harness.page.run_page import page_environment

TEMPLATE = "evidence.html.j2"


@dataclass(frozen=True)
class ShownTable:
    """A table as text."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class ShownEvidence:
    """What the page draws of one instrument."""

    reported: Reported
    figures: tuple[tuple[str, str], ...]
    tables: tuple[ShownTable, ...]
    charts: tuple[LineChart, ...]
    images: tuple[InputImage, ...]
    image_size: tuple[int, int]


def write_page(path: Path, title: str, subject: str, reported: Sequence[Reported]) -> None:
    """Write the page; equal evidence gives equal bytes. Raises `OSError` where it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_page(title, subject, reported), encoding="utf-8", newline="\n")


def render_page(title: str, subject: str, reported: Sequence[Reported]) -> str:
    """Return the page as HTML; all text is escaped."""
    shown = [_shown(one) for one in reported]
    minutes = sum(one.minutes for one in reported)
    return (
        page_environment()
        .get_template(TEMPLATE)
        .render(
            title=title, subject=subject, shown=shown, minutes=f"{minutes:g}", next_lines=where_next(reported)
        )
    )


def _shown(reported: Reported) -> ShownEvidence:
    evidence = reported.evidence
    images, size = _images(evidence)
    return ShownEvidence(
        reported=reported,
        figures=tuple((name, _text(value)) for name, value in evidence.figures.items()),
        tables=tuple(_table(table) for table in evidence.tables),
        charts=tuple(
            chart
            for index, plot in enumerate(evidence.plots)
            if (chart := _chart(f"{reported.id.replace('_', '-')}-{index}", plot)) is not None
        ),
        images=tuple(images),
        image_size=size,
    )


def _images(evidence: Evidence) -> tuple[Sequence[InputImage], tuple[int, int]]:
    sheet: Sheet | None = evidence.sheet
    if sheet is None or not sheet.pixels:
        return [], (0, 0)
    labels = None if sheet.labels is None else list(sheet.labels)
    images, size, _ = read_images({"shape": list(sheet.shape), "pixels": sheet.pixels, "labels": labels})
    return images, size


def _table(table: Table) -> ShownTable:
    rows = tuple(tuple(_text(cell) for cell in row) for row in table.rows)
    return ShownTable(table.caption, table.columns, rows)


def _text(value: Cell) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number_text(value) if isinstance(value, float) else str(value)


def _chart(identifier: str, plot: Plot) -> LineChart | None:
    alone = len(plot.lines) == 1
    return line_chart(
        identifier,
        plot.title,
        [
            Series(label="" if alone else line.label, points=line.points, tone=index, dash=index)
            for index, line in enumerate(plot.lines)
        ],
        x_label=plot.x_label,
        y_label=plot.y_label,
        scale=plot.scale,
        log_x=plot.log_x,
        marks=[Mark(x, words, 6) for x, words in plot.marks if x > 0 and math.isfinite(x)],
    )
