import math
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.page.charts import DASHES, Axis, LineChart, Series, line_chart, make_axis
from harness.page.run_page import TEMPLATES, page_environment

ANY_VALUE = st.one_of(st.none(), st.floats())
HOSTILE = "</title><script>alert('\"')</script>&amp;"


def chart_of(*series: Series, **settings: Any) -> LineChart:
    chart = line_chart("chart", "A title", series, **{"y_label": "loss", **settings})
    assert chart is not None
    return chart


def values(ys: list[float | None]) -> list[tuple[float, float | None]]:
    return list(enumerate(ys))


def drawn(chart: LineChart) -> ET.Element:
    macros: Any = page_environment(TEMPLATES).get_template("shared.html.j2").module
    return ET.fromstring(str(macros.figure(chart)))


def labels(axis: Axis) -> list[str]:
    return [label for _, label in axis.ticks]


@given(st.lists(st.lists(ANY_VALUE, max_size=30), max_size=4), st.sampled_from(["linear", "log", "auto"]))
def test_any_values_give_a_drawing_inside_its_frame(lines: list[list[float | None]], scale: Any) -> None:
    series = [Series(str(index), values(line), index, index) for index, line in enumerate(lines)]
    chart = line_chart("chart", "A title", series, y_label="loss", scale=scale)
    if chart is None:
        assert all(y is None for line in lines for y in line)
        return
    assert all(chart.left <= x <= chart.right for x, _ in chart.x_ticks)
    assert all(chart.top <= y <= chart.bottom for y, _ in chart.y_ticks)
    assert drawn(chart).find("svg") is not None
    for line in chart.lines:
        for x, y in re.findall(r"([^\sMLh]+) ([^\sMLh]+)", line.path):
            assert chart.left <= float(x) <= chart.right and chart.top <= float(y) <= chart.bottom


def test_the_first_non_finite_step_of_each_line_is_marked_and_described() -> None:
    ys: list[float | None] = [2.0, 3.0, math.inf, math.nan]
    chart = chart_of(Series("a", values(ys)), Series("b", values(ys), 1, 1), Series("c", values([1.0, math.nan])))
    assert [mark.label for mark in chart.marks] == ["first NaN: step 1", "first Infinity: step 2"]
    assert "b: 4 values, from 2 at step 0 to NaN at step 3; minimum 2 at step 0" in chart.description
    assert "first Infinity: step 2" in chart.description
    texts = [text.text for text in drawn(chart).iter("text")]
    assert "first Infinity: step 2" in texts


def test_values_that_are_missing_or_never_finite() -> None:
    assert chart_of(Series("", values([math.nan]))).message == "no finite value"
    assert line_chart("chart", "A title", [Series("", values([None]))], y_label="loss") is None
    gap = chart_of(Series("", values([1.0, 2.0, None, 1.0])))
    assert (gap.lines[0].path.count("M"), gap.marks) == (2, ())


def test_lines_differ_by_dash_pattern_as_well_as_by_colour_and_solid_ones_lie_below() -> None:
    series = [Series(f"s{index}", values([1.0, 2.0]), index, index) for index in range(8)][::-1]
    chart = chart_of(*series)
    assert len({(line.dash) for line in chart.lines}) == len({line.tone for line in chart.lines}) == 8
    figure = drawn(chart)
    keys = figure.findall("figcaption/ul/li")
    assert ["".join(key.itertext()).strip() for key in keys] == [one.label for one in series]
    first = next(path for path in figure.findall("svg/g/path") if path.get("class") == "line")
    assert first.get("stroke-dasharray") == DASHES[0] == ""


def test_a_covered_line_is_wider_unless_the_chart_has_too_many_lines() -> None:
    series = [Series("below", values([1.0, 2.0]), 0, 0), Series("above", values([1.0, 2.0]), 1, 1)]
    widths = [[line.width for line in chart_of(*series, widen=widen).lines] for widen in (True, False)]
    assert widths[0][0] > widths[0][1] == widths[1][0] == widths[1][1]


def test_the_drawing_is_named_and_all_text_is_escaped() -> None:
    series = [Series(HOSTILE, values([1.0, 2.0]))]
    chart = line_chart("c", HOSTILE, series, y_label=HOSTILE, x_label=HOSTILE, signal=HOSTILE)
    assert chart is not None
    svg = drawn(chart).find("svg")
    assert svg is not None
    assert svg.get("role") == "img"
    title = svg.find(f"title[@id='{svg.get('aria-labelledby')}']")
    assert title is not None and title.text == HOSTILE
    assert svg.find(f"desc[@id='{svg.get('aria-describedby')}']") is not None
    assert [text.text for text in svg.iter("text")].count(HOSTILE) == 2
    assert list(svg.iter("script")) == []


def test_auto_is_a_log_axis_if_one_value_dwarfs_the_rest() -> None:
    for ys, log in (([1.0, 2.0, 3.0], False), ([1.0, 2.0, 3.0, 1e9], True), ([-1.0, 2.0, 1e9], False)):
        assert ("log axis" in chart_of(Series("", values([*ys])), scale="auto").y_label) == log


def test_thousands_of_points_stay_a_small_drawing_with_their_spike() -> None:
    ys: list[float | None] = [1.0 + 0.1 * math.sin(step) for step in range(20_000)]
    ys[12_345] = 50.0
    chart = chart_of(Series("", values(ys)))
    assert len(chart.lines[0].path) < 30_000
    highest = min(float(place.split()[1]) for place in chart.lines[0].path[1:].split("L"))
    assert highest < chart.top + 0.2 * (chart.bottom - chart.top)


@pytest.mark.parametrize(
    ("values", "scale", "expected"),
    [
        ([], "linear", ["0", "0.5", "1"]),
        ([0, 0.11], "linear", ["0", "0.05", "0.1", "0.15"]),
        ([-3, 7], "linear", ["-5", "0", "5", "10"]),
        ([1000, 1001], "linear", ["1000", "1000.5", "1001"]),
        ([0.05, 2.3], "log", ["0.05", "0.1", "0.2", "0.5", "1", "2"]),
        ([1, 1e20], "log", ["1", "1e4", "1e8", "1e12", "1e16", "1e20"]),
        ([0, 1e-8, 1e-4], "log", ["0", "1e-8", "1e-7", "1e-6", "1e-5", "1e-4"]),
        ([-1, 1, 10, 100], "log", ["≤ 0", "1", "10", "100"]),
    ],
)
def test_ticks(values: list[float], scale: Any, expected: list[str]) -> None:
    assert labels(make_axis(values, scale)) == expected
