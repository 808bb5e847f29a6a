"""Line charts as SVG: geometry and words here, markup in `templates/chart.html.j2`, looks in `run.css`.

A chart needs no script. Lines differ by colour and by dash pattern; what is not finite is a gap, with a mark
at the first such place; and the words that a screen reader speaks say what the drawing shows.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.page.chart_axes import Axis, Scale, integer_axis, make_axis, number_text, wants_symlog
from harness.page.chart_paths import (
    Marker,
    Point,
    Position,
    line_path,
    marker_path,
    non_finite_runs,
    thin,
)

_MARK_ROW = 15

# Each line of a chart has its own. Past the last they start over, with other colours.
DASHES = ("", "5 4", "1.5 3", "9 3 1.5 3", "3 2", "12 4", "9 3 1.5 3 1.5 3", "1 5")
TONES = 8  # --tone-0 .. --tone-7 in run.css


@dataclass(frozen=True)
class Series:
    """One line: points sorted by x. `tone` and `dash` pick colour and pattern; `marker` draws each point too.

    `key` replaces the label in the legend, in a neutral colour; an empty one leaves the series out of it.
    """

    label: str
    points: Sequence[Point]
    tone: int = 0
    dash: int = 0
    marker: Marker | None = None
    line: bool = True
    key: str | None = None


@dataclass(frozen=True)
class Frame:
    """The sizes of a chart in user units of its viewBox, and the edges of the plot inside it."""

    width: int
    height: int
    left: int
    top: int
    right: int
    bottom: int

    def across(self, share: float) -> float:
        """Return the x of a place on the x axis, 0 to 1."""
        return round(self.left + share * (self.right - self.left), 1)

    def down(self, share: float) -> float:
        """Return the y of a place on the y axis, 0 to 1."""
        return round(self.bottom - share * (self.bottom - self.top), 1)


# A chart is about as wide on the screen, in pixels, as its frame: its text keeps a readable size.
WIDE = Frame(width=440, height=240, left=58, top=26, right=430, bottom=198)
COMPACT = Frame(width=340, height=210, left=56, top=26, right=330, bottom=168)
_NEUTRAL = 6


@dataclass(frozen=True)
class Mark:
    """A vertical line at an x of the chart, with words beside it."""

    x: float
    label: str
    tone: int


@dataclass(frozen=True)
class DrawnSeries:
    """What the template draws for a series: path data and looks, for the plot and for the legend (key)."""

    tone: int
    dash: str
    line: str
    markers: str
    hollow: bool
    key: str
    key_tone: int
    key_line: bool
    key_marker: str

    @property
    def solid(self) -> bool:
        """Whether the line has no gaps of its own."""
        return not self.dash


@dataclass(frozen=True)
class DrawnMark:
    """A mark, and where its words stand."""

    x: float
    label: str
    tone: int
    label_y: float
    before: bool  # the words stand to the left of the line


@dataclass(frozen=True)
class LineChart:
    """A chart ready to be drawn; coordinates are user units of its frame."""

    identifier: str
    title: str
    signal: str
    description: str
    x_label: str
    y_label: str
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    series: tuple[DrawnSeries, ...]
    marks: tuple[DrawnMark, ...]
    bands: tuple[tuple[float, float, int], ...]  # (left, width, tone) of the stretches that are not finite
    message: str
    frame: Frame


def line_chart(
    identifier: str,
    title: str,
    series: Sequence[Series],
    *,
    y_label: str,
    x_label: str = "step",
    signal: str = "",
    scale: Scale | Literal["auto"] = "linear",
    y_axis: Axis | None = None,
    log_x: bool = False,
    include: Iterable[float] = (),
    marks: Sequence[Mark] = (),
    frame: Frame = WIDE,
) -> LineChart | None:
    """Lay out a chart of `series` over whole-numbered x, or positive x; None if no series has a recorded value.

    identifier: unique in its page, of letters, digits and hyphens; ids in the markup start with it.
    signal: the name of the quantity in metrics.log, shown beside the title.
    scale: of the y axis; "auto" is linear unless a few values dwarf the rest, then symmetric log.
    y_axis: an axis shared with other charts, in place of one made from the values.
    log_x: x is any positive number, on a log axis, in place of a count.
    include: finite values that the y axis must show as well.
    marks: further vertical marks; the first non-finite value of each line is marked in any case.
    frame: its size, WIDE or COMPACT.
    """
    if not any(y is not None for one in series for _, y in one.points):
        return None
    finite = [y for one in series for _, y in one.points if y is not None and math.isfinite(y)]
    if y_axis is None:
        if scale == "auto":
            scale = "symlog" if wants_symlog(finite) else "linear"
        y_axis = make_axis([*finite, *include], scale)
    ends = [point[0] for one in series if one.points for point in (one.points[0], one.points[-1])]
    x_axis = make_axis(ends, "log") if log_x else integer_axis(int(min(ends)), int(max(ends)))
    all_marks = [*marks, *(mark for one in series if one.line for mark in _non_finite_mark(one, x_label))]
    return LineChart(
        identifier=identifier,
        title=title,
        signal=signal,
        description=" ".join(_describe(one, one.label or title, x_label) for one in series),
        x_label=x_label,
        y_label=_axis_label(y_label, y_axis),
        x_ticks=tuple((frame.across(tick.at), tick.label) for tick in x_axis.ticks),
        y_ticks=tuple((frame.down(tick.at), tick.label) for tick in y_axis.ticks),
        series=tuple(_draw(one, x_axis, y_axis, frame) for one in series),
        marks=_place_marks(all_marks, x_axis, frame),
        bands=_bands(series, x_axis, frame),
        message="" if finite else "no finite value",
        frame=frame,
    )


def non_finite_label(value: float, x_label: str, x: float) -> str:
    """Return the words beside the first non-finite value of a series."""
    return f"first {number_text(value)}: {x_label} {number_text(x)}"


def _axis_label(label: str, axis: Axis) -> str:
    kind = {"linear": axis.factor, "log": "log axis", "symlog": "symmetric log axis"}[axis.scale]
    return f"{label}, {kind}" if kind else label


def _draw(one: Series, x_axis: Axis, y_axis: Axis, frame: Frame) -> DrawnSeries:
    positions: list[Position] = [
        (frame.across(x_axis.position(x)), frame.down(y_axis.position(y)))
        if y is not None and math.isfinite(y)
        else None
        for x, y in one.points
    ]
    positions = thin(positions, frame.right - frame.left, frame.left, frame.right)
    return DrawnSeries(
        tone=one.tone % TONES,
        dash=DASHES[one.dash % len(DASHES)],
        line=line_path(positions) if one.line else "",
        markers=marker_path(one.marker, positions) if one.marker else "",
        hollow=one.marker != "dot",
        key=one.label if one.key is None else one.key,
        key_tone=one.tone % TONES if one.key is None else _NEUTRAL,
        key_line=one.line,
        key_marker=marker_path(one.marker, [(16, 8)]) if one.marker else "",
    )


def _non_finite_mark(one: Series, x_label: str) -> list[Mark]:
    for x, y in one.points:
        if y is not None and not math.isfinite(y):
            return [Mark(x, non_finite_label(y, x_label, x), one.tone)]
    return []


def _place_marks(marks: Sequence[Mark], x_axis: Axis, frame: Frame) -> tuple[DrawnMark, ...]:
    """Give each mark its own row for its words, on the side that has more room; equal ones become one."""
    distinct = {(mark.x, mark.label): mark for mark in reversed(marks)}
    placed = []
    for row, mark in enumerate(sorted(distinct.values(), key=lambda mark: (mark.x, mark.label))):
        share = x_axis.position(mark.x)
        label_y = frame.top + 12 + row % 5 * _MARK_ROW
        placed.append(DrawnMark(frame.across(share), mark.label, mark.tone % TONES, label_y, share > 0.5))
    return tuple(placed)


def _bands(series: Sequence[Series], x_axis: Axis, frame: Frame) -> tuple[tuple[float, float, int], ...]:
    """Return the stretches that are not finite, once where lines share them, joined where they touch."""
    bands: list[tuple[float, float, int]] = []
    seen: set[tuple[float, float]] = set()
    for one in (one for one in series if one.line):
        joined: list[tuple[float, float]] = []
        for first, last in non_finite_runs(one.points):
            left, right = frame.across(x_axis.position(first)), frame.across(x_axis.position(last))
            if joined and left - joined[-1][1] < 2:
                left = joined.pop()[0]
            joined.append((left, right))
        bands += [
            (left, round(right - left, 1), one.tone % TONES)
            for left, right in joined
            if (left, right) not in seen
        ]
        seen.update(joined)
    return tuple(bands)


def _describe(one: Series, label: str, x_label: str) -> str:
    """Say in words what a line shows: its ends, its extremes, and where it is not finite."""
    recorded = [(x, y) for x, y in one.points if y is not None]
    if not recorded:
        return f"{label}: not recorded."
    finite = [(x, y) for x, y in recorded if math.isfinite(y)]
    (first_x, first_y), (last_x, last_y) = recorded[0], recorded[-1]
    if len(recorded) == 1:
        return f"{label}: {number_text(first_y)} at {x_label} {number_text(first_x)}."
    words = (
        f"{label}: {len(recorded)} values, from {number_text(first_y)} at {x_label} {number_text(first_x)} "
        f"to {number_text(last_y)} at {x_label} {number_text(last_x)}"
    )
    if finite:
        low, high = min(finite, key=lambda point: point[1]), max(finite, key=lambda point: point[1])
        words += (
            f"; least {number_text(low[1])} at {x_label} {number_text(low[0])}, "
            f"greatest {number_text(high[1])} at {x_label} {number_text(high[0])}"
        )
    if len(finite) < len(recorded):
        bad_x, bad_y = next((x, y) for x, y in recorded if not math.isfinite(y))
        words += f"; {len(recorded) - len(finite)} not finite, {non_finite_label(bad_y, x_label, bad_x)}"
    return words + "."
