"""Make the charts of a page interactive: the page contains data, a script and a style for them.

`templates/live_charts.js` draws each chart again with uPlot over the static picture, which stays for readers without
script and for paper. The package `youplot` provides the files of uPlot, and is never imported.
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
# The licence must be in every copy, and the minified file contains only its address.
_LICENCE = "uplot_licence.txt"


def charts_data(charts: Iterable[LineChart]) -> dict[str, Any]:
    """Return the data from which the script draws the charts. It fits into JSON: no number is NaN or infinite.

    The values of a line are one text, separated by spaces. Each has six digits, as a report cites it. NaN and Infinity
    are names, and a value that was not recorded is empty.
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
    """Return increasing whole numbers as ranges without gaps, each as (first number, count)."""
    rows = groupby(enumerate(numbers), key=lambda item: item[1] - item[0])
    return [(row[0][1], len(row)) for row in (list(items) for _, items in rows)]


def live_script() -> str:
    """Return the script of a page: uPlot with its licence, then our own.

    Raises `UserError` if uPlot is not installed.
    """
    licence = (TEMPLATES / _LICENCE).read_text(encoding="utf-8")
    return f"/*!\n{licence}*/\n{_uplot('uplot.iife.min.js')}\n{_own('live_charts.js')}"


def live_style() -> str:
    """Return the style of the live charts: uPlot's style, then our own. Raises as `live_script` does."""
    return f"{_uplot('uplot.min.css')}\n{_own('live_charts.css')}"


def _own(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _uplot(name: str) -> str:
    spec = find_spec("youplot")
    if spec is None or spec.origin is None:
        raise UserError("The package youplot, which contains uPlot, is missing: pip install -e . installs it.")
    return (Path(spec.origin).parent / "vendor" / name).read_text(encoding="utf-8")
