import math

from hypothesis import given
from hypothesis import strategies as st

from harness.page.chart_paths import Position, line_path, marker_path, non_finite_runs, thin

HEIGHTS = st.one_of(st.none(), st.floats(0, 200))


def placed(heights: list[float | None]) -> list[Position]:
    return [None if y is None else (100 * x / len(heights), y) for x, y in enumerate(heights)]


def test_a_gap_lifts_the_pen_and_a_lone_point_is_a_dot() -> None:
    assert line_path([(0, 1), (1, 2), None, (3, 4), None, (5, 6), (6, 7)]) == (
        "M0.0 1.0L1.0 2.0M3.0 4.0h1.5M5.0 6.0L6.0 7.0"
    )
    assert line_path([]) == ""
    assert line_path([None, None]) == ""
    assert line_path([(0, 1)]) == "M0.0 1.0h1.5"


def test_markers_stand_at_points_only() -> None:
    assert marker_path("dot", [(10, 20), None, (30, 40)]).count("M") == 2
    assert marker_path("square", [(10, 20)]) == "M3.0 13.0h14v14h-14z"


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


def test_a_single_spike_among_thousands_is_kept() -> None:
    heights: list[float | None] = [1.0] * 5000
    heights[3217] = 150.0
    assert (100 * 3217 / 5000, 150.0) in thin(placed(heights), 350, 0, 100)


def test_stretches_that_are_not_finite() -> None:
    points = [(0, 1.0), (1, math.nan), (2, math.inf), (3, 1.0), (4, None), (5, -math.inf)]
    assert list(non_finite_runs(points)) == [(1, 2), (5, 5)]
    assert list(non_finite_runs([])) == []
