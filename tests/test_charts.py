import math
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.page.charts import (
    COMPACT,
    DASHES,
    WIDE,
    Axis,
    LineChart,
    Mark,
    Position,
    Series,
    _line_path,
    integer_axis,
    line_chart,
    make_axis,
    number_text,
    spans_decades,
    thin,
)
from harness.page.run_page import page_environment

ANY_VALUE = st.one_of(st.none(), st.floats())


def chart_of(*series: Series, **settings: Any) -> LineChart:
    chart = line_chart("chart", "A title", series, y_label="loss", **settings)
    assert chart is not None
    return chart


def values(ys: list[float | None]) -> list[tuple[float, float | None]]:
    return list(enumerate(ys))


def drawn(chart: LineChart) -> ET.Element:
    macros: Any = page_environment().get_template("chart.html.j2").module
    return ET.fromstring(str(macros.figure(chart)))


def one(element: ET.Element, path: str) -> ET.Element:
    found = element.find(path)
    assert found is not None
    return found


@given(
    st.lists(st.lists(ANY_VALUE, max_size=30), max_size=4),
    st.sampled_from(["linear", "log", "auto"]),
)
def test_any_values_give_a_drawing_inside_its_frame(lines: list[list[float | None]], scale: Any) -> None:
    series = [Series(str(index), values(line), index, index) for index, line in enumerate(lines)]
    chart = line_chart("chart", "A title", series, y_label="loss", scale=scale)
    if chart is None:
        assert all(y is None for line in lines for y in line)
        return
    figure = drawn(chart)
    for x, _ in chart.x_ticks:
        assert WIDE.left <= x <= WIDE.right
    for y, _ in chart.y_ticks:
        assert WIDE.top <= y <= WIDE.bottom
    for path in figure.iter("path"):
        assert "nan" not in path.get("d", "")
        assert "inf" not in path.get("d", "")


def test_the_first_non_finite_step_is_marked_with_its_step_and_kind() -> None:
    chart = chart_of(Series("", values([2.0, 3.0, math.inf, math.nan, math.nan])), scale="log")
    assert [(mark.label, mark.x) for mark in chart.marks] == [
        ("first Infinity: step 2", (WIDE.left + WIDE.right) / 2)
    ]
    figure = drawn(chart)
    texts = [text.text for text in figure.iter("text")]
    assert "first Infinity: step 2" in texts
    assert "not finite, first Infinity: step 2" in (one(figure, "svg/desc").text or "")


def test_lines_that_fail_together_share_a_mark_and_others_get_their_own_row() -> None:
    together = chart_of(Series("a", values([1.0, math.nan])), Series("b", values([1.0, math.nan]), 1, 1))
    assert len(together.marks) == 1
    apart = chart_of(
        Series("a", values([1.0, math.nan, math.nan])), Series("b", values([1.0, 2.0, math.nan]), 1, 1)
    )
    assert len({mark.label_y for mark in apart.marks}) == 2


def test_only_non_finite_values_say_so() -> None:
    chart = chart_of(Series("", values([math.nan, math.nan])), scale="log")
    assert chart.message == "no finite value"
    assert [mark.label for mark in chart.marks] == ["first NaN: step 0"]


def test_nothing_recorded_is_no_chart() -> None:
    assert line_chart("chart", "A title", [], y_label="loss") is None
    assert line_chart("chart", "A title", [Series("", values([None, None]))], y_label="loss") is None


def test_missing_values_are_gaps_without_a_mark() -> None:
    chart = chart_of(Series("", values([1.0, 2.0, None, 1.0, 2.0])))
    assert chart.series[0].line.count("M") == 2
    assert chart.marks == ()


def test_lines_differ_by_dash_pattern_as_well_as_by_colour() -> None:
    series = [Series(f"s{index}", values([1.0, 2.0]), index, index) for index in range(8)]
    chart = chart_of(*series)
    assert len({drawn.dash for drawn in chart.series}) == len(DASHES) == 8
    assert len({drawn.tone for drawn in chart.series}) == 8
    keys = drawn(chart).findall("figcaption/ul/li")
    assert ["".join(key.itertext()).strip() for key in keys] == [f"s{index}" for index in range(8)]


def test_solid_lines_are_drawn_first_so_that_dashes_stay_visible_on_them() -> None:
    chart = chart_of(Series("dashed", values([1.0, 2.0]), 1, 1), Series("solid", values([1.0, 2.0]), 0, 0))
    lines = [path for path in drawn(chart).findall("svg/g/path") if path.get("class") == "line"]
    assert [line.get("stroke-dasharray") for line in lines] == ["", DASHES[1]]


def test_the_drawing_is_named_and_described() -> None:
    svg = one(drawn(chart_of(Series("broken", values([2.5, 0.5, 1.0])))), "svg")
    assert svg.get("role") == "img"
    assert one(svg, f"title[@id='{svg.get('aria-labelledby')}']").text == "A title"
    description = one(svg, f"desc[@id='{svg.get('aria-describedby')}']").text
    assert description == (
        "broken: 3 values, from 2.5 at step 0 to 1 at step 2; least 0.5 at step 1, greatest 2.5 at step 0."
    )


HOSTILE = "</title><script>alert('\"')</script>&amp;"


def test_all_text_is_escaped() -> None:
    chart = line_chart(
        "chart",
        HOSTILE,
        [Series(HOSTILE, values([1.0, 2.0]))],
        y_label=HOSTILE,
        x_label=HOSTILE,
        signal=HOSTILE,
        marks=[Mark(1, HOSTILE, 0)],
    )
    assert chart is not None
    figure = drawn(chart)
    assert list(figure.iter("script")) == []
    assert one(figure, "svg/title").text == HOSTILE
    assert [text.text for text in figure.iter("text")].count(HOSTILE) == 3


@pytest.mark.parametrize(("scale", "words"), [("log", "loss, log axis"), ("linear", "loss")])
def test_the_axis_says_what_it_is(scale: Any, words: str) -> None:
    assert words in chart_of(Series("", values([1.0, 2.0])), scale=scale).y_label


def test_auto_is_a_log_axis_if_one_value_dwarfs_the_rest() -> None:
    assert "log" not in chart_of(Series("", values([1.0, 2.0, 3.0])), scale="auto").y_label
    assert "log" in chart_of(Series("", values([1.0, 2.0, 3.0, 1e9])), scale="auto").y_label


def test_a_shared_axis_and_a_small_frame_are_used() -> None:
    axis = make_axis([1.0, 1000.0], "log")
    first = chart_of(Series("", values([1.0, 2.0])), y_axis=axis, frame=COMPACT)
    second = chart_of(Series("", values([900.0, 1000.0])), y_axis=axis, frame=COMPACT)
    assert first.y_ticks == second.y_ticks
    assert one(drawn(first), "svg").get("viewBox") == f"0 0 {COMPACT.width} {COMPACT.height}"


def test_thousands_of_points_stay_a_small_drawing_with_their_spike() -> None:
    ys: list[float | None] = [1.0 + 0.1 * math.sin(step) for step in range(20_000)]
    ys[12_345] = 50.0
    chart = chart_of(Series("", values(ys)))
    assert len(chart.series[0].line) < 30_000
    spike = f" {WIDE.down(make_axis([0.9, 50.0]).position(50.0)):.1f}"
    assert spike in chart.series[0].line


FINITE = st.floats(allow_nan=False, allow_infinity=False)


def labels(axis: Axis) -> list[str]:
    return [tick.label.replace("\N{MINUS SIGN}", "-") for tick in axis.ticks]


@given(st.lists(FINITE, max_size=20), st.sampled_from(["linear", "log"]))
def test_every_finite_value_has_its_place(values: list[float], scale: str) -> None:
    axis = make_axis(values, scale)  # type: ignore[arg-type]
    places = [axis.position(value) for value in sorted(values)]
    assert all(0 <= place <= 1 for place in places)
    assert places == sorted(places)
    assert all(-1e-9 <= tick.at <= 1 + 1e-9 for tick in axis.ticks)
    assert 1 <= len(axis.ticks) <= 12
    assert labels(axis) == list(dict.fromkeys(labels(axis)))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], ["0", "0.25", "0.5", "0.75", "1"]),
        ([0, 1], ["0", "0.25", "0.5", "0.75", "1"]),
        ([0, 0.11], ["0", "0.025", "0.05", "0.075", "0.1", "0.125"]),
        ([-3, 7], ["-5", "-2.5", "0", "2.5", "5", "7.5"]),
        ([0, 200], ["0", "50", "100", "150", "200"]),
        ([5], ["2", "4", "6", "8"]),
        ([0], ["-1", "-0.5", "0", "0.5", "1"]),
        ([0, 0.0011], ["0", "0.00025", "0.0005", "0.00075", "0.001", "0.00125"]),
        ([0, 2e-6], ["0", "0.5", "1", "1.5", "2"]),
        ([0, 3e7], ["0", "1", "2", "3"]),
    ],
)
def test_linear_ticks(values: list[float], expected: list[str]) -> None:
    assert labels(make_axis(values)) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.05, 2.3], ["0.05", "0.1", "0.2", "0.5", "1", "2"]),
        ([0.001, 100], ["0.001", "0.01", "0.1", "1", "10", "100"]),
        ([1, 1e20], ["10⁰", "10⁵", "10¹⁰", "10¹⁵", "10²⁰"]),
        ([2.3, 2.31], ["2", "2.5", "3"]),
        ([0, 1e-8, 1e-4], ["0", "10⁻⁸", "10⁻⁷", "10⁻⁶", "10⁻⁵", "10⁻⁴"]),
        ([-1, 1, 10, 100], ["≤ 0", "1", "10", "100"]),
    ],
)
def test_log_ticks(values: list[float], expected: list[str]) -> None:
    assert labels(make_axis(values, "log")) == expected


def test_a_factor_stands_for_what_the_labels_leave_out() -> None:
    assert make_axis([0, 2e-6]).factor == "\N{MULTIPLICATION SIGN}10⁻⁶"
    assert make_axis([0, 3e7]).factor == "\N{MULTIPLICATION SIGN}10⁷"
    assert make_axis([0, 0.0011]).factor == ""


def test_a_log_axis_keeps_zero_apart_from_small_values() -> None:
    axis = make_axis([0.0, 1e-6, 1.0], "log")
    assert axis.position(0.0) == 0.0
    assert axis.position(1e-6) > 0.05


def test_only_dwarfed_positive_values_span_decades() -> None:
    assert spans_decades([0.1, 0.0, 0.2, 0.3, 1e6])
    assert not spans_decades([0.1, 0.2, -0.3, 1e6])
    assert not spans_decades([0.1, 0.2, -0.3, 5.0])
    assert not spans_decades([0.0, 0.0])
    assert not spans_decades([])


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_counts_have_whole_ticks(low: int, width: int) -> None:
    axis = integer_axis(low, low + width)
    assert all(low <= int(label) <= low + width for label in labels(axis))
    assert 1 <= len(axis.ticks) <= 9


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (1 / 3, "0.333333"), (200.0, "200"), (1e20, "1e+20"), (-2.0, "-2"), (0.0, "0")],
)
def test_numbers_read_as_in_the_log(value: float, text: str) -> None:
    assert number_text(value) == text


def test_non_finite_numbers_have_their_names_of_the_log() -> None:
    assert [number_text(value) for value in (math.nan, math.inf, -math.inf)] == [
        "NaN",
        "Infinity",
        "-Infinity",
    ]


HEIGHTS = st.one_of(st.none(), st.floats(0, 200))


def placed(heights: list[float | None]) -> list[Position]:
    return [None if y is None else (100 * x / len(heights), y) for x, y in enumerate(heights)]


def test_a_gap_lifts_the_pen_and_a_lone_point_is_a_dot() -> None:
    assert _line_path([(0, 1), (1, 2), None, (3, 4), None, (5, 6), (6, 7)]) == (
        "M0.0 1.0L1.0 2.0M3.0 4.0h1.5M5.0 6.0L6.0 7.0"
    )
    assert _line_path([]) == ""
    assert _line_path([None, None]) == ""
    assert _line_path([(0, 1)]) == "M0.0 1.0h1.5"


@given(st.lists(HEIGHTS, min_size=1, max_size=3000))
def test_thinning_keeps_ends_and_extremes_and_order(heights: list[float | None]) -> None:
    positions = placed(heights)
    kept = thin(positions, 20, 0, 100)
    assert len(kept) <= max(40, 5 * 20)
    points = [position for position in positions if position is not None]
    kept_points = [position for position in kept if position is not None]
    assert kept_points == sorted(kept_points)
    assert set(kept_points) <= set(points)
    if points:
        assert kept_points[0] == points[0]
        assert kept_points[-1] == points[-1]
        for pick in (min, max):
            assert pick(y for _, y in kept_points) == pick(y for _, y in points)
    assert (None in positions) == (None in kept)
