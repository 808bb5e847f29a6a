"""Make the charts of a page interactive: add their data, a script and a style sheet to the page.

`templates/live_charts.js` draws each chart with the library uPlot over the static picture. The static picture remains
for browsers without scripts and for printing. The package `youplot` contains the files of uPlot; its Python code is
never imported.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.page.charts import DrawnLine, LineChart, Series
from harness.run.signals import evidence_line, number_text

TEMPLATES = Path(__file__).parent / "templates"
# Every copy of uPlot must contain the licence, but the minified file contains only a link to it.
_LICENCE = "uplot_licence.txt"


def charts_data(charts: Iterable[LineChart]) -> dict[str, Any]:
    """Return the data from which the script draws the charts. They fit into JSON: no number is NaN or infinite.

    The values of a line are one string, separated by spaces. Each value has six digits, as a report cites it. NaN and
    infinite values are the words NaN and Infinity; a value that was not recorded is an empty string.
    """
    return {
        "evidence": evidence_line("%run%", "%signal%", "%kind%", "%place%", "%value%"),
        "charts": {chart.identifier: _chart_data(chart) for chart in charts},
    }


def _chart_data(chart: LineChart) -> Mapping[str, Any]:
    source = chart.source
    xs = sorted({int(x) for one in source.series for x, _ in one.points})
    return {
        "kind": chart.x_label,
        "y": source.y_label,
        "log": source.log,
        "extent": source.extent,
        "x": _ranges(xs),
        "marks": [(mark.x, mark.label, mark.tone) for mark in source.marks],
        "lines": [_line_data(one, line, xs) for one, line in zip(source.series, chart.lines, strict=True)],
    }


def _line_data(one: Series, line: DrawnLine, xs: Sequence[int]) -> Mapping[str, Any]:
    values = {int(x): "" if y is None else number_text(y) for x, y in one.points}
    return {
        "label": line.label,
        "tone": line.tone,
        "layer": line.layer,
        "dash": [float(length) for length in line.dash.split()],
        "width": line.width,
        "dot": line.dot_width,
        "below": line.below > 0,
        "run": one.run,
        "signal": one.signal,
        "values": " ".join(values.get(x, "") for x in xs),
    }


def _ranges(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Split increasing whole numbers into ranges without gaps. Return (first number, count) for each range."""
    rows = groupby(enumerate(numbers), key=lambda item: item[1] - item[0])
    return [(row[0][1], len(row)) for row in (list(items) for _, items in rows)]


def live_script() -> str:
    """Return the script of a page: uPlot with its licence, then `live_charts.js`.

    Raises `UserError` if uPlot is not installed.
    """
    return f"{uplot_script()}\n{_own('live_charts.js')}"


def uplot_script() -> str:
    """Return uPlot with its licence. Raises `UserError` if uPlot is not installed."""
    licence = (TEMPLATES / _LICENCE).read_text(encoding="utf-8")
    return f"/*!\n{licence}*/\n{_uplot('uplot.iife.min.js')}"


def live_style() -> str:
    """Return the style sheet of the charts: uPlot's style, then `live_charts.css`. Raises as `live_script` does."""
    return f"{uplot_style()}\n{_own('live_charts.css')}"


def uplot_style() -> str:
    """Return the style sheet of uPlot. Raises `UserError` if uPlot is not installed."""
    return _uplot("uplot.min.css")


def _own(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _uplot(name: str) -> str:
    spec = find_spec("youplot")
    if spec is None or spec.origin is None:
        raise UserError("The package youplot, which contains uPlot, is missing: install it with pip install -e .")
    return (Path(spec.origin).parent / "vendor" / name).read_text(encoding="utf-8")
