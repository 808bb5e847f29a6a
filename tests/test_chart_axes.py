import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.page.chart_axes import Axis, integer_axis, make_axis, number_text, wants_symlog

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def labels(axis: Axis) -> list[str]:
    return [tick.label.replace("\N{MINUS SIGN}", "-") for tick in axis.ticks]


@given(st.lists(FINITE, max_size=20), st.sampled_from(["linear", "log", "symlog"]))
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
        ([], ["0", "0.25", "0.50", "0.75", "1.00"]),
        ([0, 1], ["0", "0.25", "0.50", "0.75", "1.00"]),
        ([0, 0.11], ["0", "0.025", "0.050", "0.075", "0.100", "0.125"]),
        ([-3, 7], ["-5.0", "-2.5", "0", "2.5", "5.0", "7.5"]),
        ([0, 200], ["0", "50", "100", "150", "200"]),
        ([5], ["2", "4", "6", "8"]),
        ([0], ["-1.0", "-0.5", "0", "0.5", "1.0"]),
        ([0, 0.0011], ["0", "0.00025", "0.00050", "0.00075", "0.00100", "0.00125"]),
        ([0, 2e-6], ["0", "0.5", "1.0", "1.5", "2.0"]),
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


def test_a_log_axis_of_zeros_is_linear() -> None:
    assert make_axis([0.0, 0.0], "log").scale == "linear"


def test_symlog_shows_both_signs_and_zero() -> None:
    axis = make_axis([-1e8, -0.1, 0.0, 0.2, 1e9], "symlog")
    shown = labels(axis)
    assert "0" in shown
    assert any(label.startswith("-10") for label in shown)
    assert axis.position(0.2) - axis.position(0.0) > 0.005


def test_only_dwarfed_values_ask_for_symlog() -> None:
    assert wants_symlog([0.1, 0.2, -0.3, 1e6])
    assert not wants_symlog([0.1, 0.2, -0.3, 5.0])
    assert not wants_symlog([0.0, 0.0])
    assert not wants_symlog([])


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
