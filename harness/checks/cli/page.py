"""One self-contained page of findings: the walk as a table, then figures, curves, tables and images of each check."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.checks.cli.report import Report, verdict, where_next
from harness.checks.lab.finding import Cell, Plot
from harness.errors import naming
from harness.page.charts import LineChart, Mark, Series, line_chart, number_text
from harness.page.run_data import InputImage, read_images
from harness.page.run_page import page_environment


def write_page(path: Path, title: str, subject: str, reports: Sequence[Report]) -> None:
    """Write the page; equal findings give equal bytes. Raises `OSError`, which names the file, on failure."""
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render_page(title, subject, reports), encoding="utf-8", newline="\n")


def render_page(title: str, subject: str, reports: Sequence[Report]) -> str:
    """Return the page as HTML; all text is escaped."""
    template = page_environment().get_template("findings.html.j2")
    return template.render(
        title=title,
        subject=subject,
        shown=[_shown(report) for report in reports],
        minutes=f"{sum(report.minutes for report in reports):g}",
        verdict=verdict(reports),
        next_lines=where_next(reports),
    )


def _shown(report: Report) -> dict[str, Any]:
    """Return what the template draws of one check."""
    finding, size = report.finding, (0, 0)
    images: Sequence[InputImage] = ()
    if finding.sheet is not None and finding.sheet.pixels:
        labels = None if finding.sheet.labels is None else list(finding.sheet.labels)
        sheet = {"shape": list(finding.sheet.shape), "pixels": finding.sheet.pixels, "labels": labels}
        images, size, _ = read_images(sheet)
    charts = [
        _chart(f"{report.name.replace('_', '-')}-{index}", plot) for index, plot in enumerate(finding.plots)
    ]
    return {
        "report": report,
        "figures": [(name, _text(value)) for name, value in finding.figures.items()],
        "tables": [
            {
                "caption": table.caption,
                "columns": table.columns,
                "rows": [[_text(cell) for cell in row] for row in table.rows],
            }
            for table in finding.tables
        ],
        "charts": [chart for chart in charts if chart is not None],
        "images": images,
        "image_size": size,
    }


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
