"""Compute the layout of line charts that are drawn as static SVG.

The markup is in `templates/shared.html.j2`, the style in `run.css`. These charts work without a script; `live_charts`
adds a script that makes them interactive. Lines differ in colour and dash pattern. A value that is not finite leaves a
gap in its line, and a vertical mark shows the first such value. A text describes the chart for screen readers.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from harness.run.signals import number_text

Scale = Literal["linear", "log", "auto"]
Point = tuple[float, float | None]  # a y of None, NaN or infinity is a gap
Position = tuple[float, float] | None  # in user units of the drawing; None is a gap in the line
Tick = tuple[float, str]  # a position and a label
Extent = tuple[float, float | None, float]  # minimum, smallest positive value if any, maximum

DASHES = ("", "5 4", "1.5 3", "9 3 1.5 3", "3 2", "12 4", "9 3 1.5 3 1.5 3", "1 5")
TONES = 8  # --tone-0 .. --tone-7 in run.css

# Sizes in user units. On the screen, one unit is about one pixel, so text has a readable size.
WIDE, COMPACT = 440, 340
_HEIGHT, _LEFT, _TOP, _BOTTOM, _MARGIN = 240, 58, 26, 198, 10
_WIDTH, _DOT_WIDTH = 1.6, 6.0  # the width of a line and of a dot, unless another line hides it
_DOTS_UP_TO = 40  # a line with more points is drawn without dots
_COINCIDE = 0.5  # if another line hides this share of a line's points, the hidden line is drawn thicker

_HUGE = 1e300  # with larger values, the ends of an axis could overflow
_TINY = 1e-290  # with smaller values, the step between ticks could underflow


@dataclass(frozen=True)
class Axis:
    """Maps values to positions in [0, 1].

    `low` and `high` are the ends of the axis; on a log axis, base-10 logarithms.
    """

    low: float
    high: float
    ticks: tuple[Tick, ...]
    log: bool = False

    def position(self, value: float) -> float:
        """Return the position in [0, 1] of a finite value.

        A value outside the axis gets the position of the nearest end.
        """
        if self.log:
            value = math.log10(value) if value > 0 else -math.inf
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


def make_axis(values: Iterable[float], scale: Scale = "linear") -> Axis:
    """Return an axis that shows all `values`, which are finite numbers.

    If there are no values, the axis is from 0 to 1. If no value is positive, a log axis becomes linear. "auto" means a
    log axis if a linear axis would flatten most values.
    """
    numbers = sorted(min(max(value, -_HUGE), _HUGE) for value in values) or [0.0, 1.0]
    positive = [value for value in numbers if value > 0]
    if scale == "auto":
        dwarfed = positive and numbers[0] >= 0 and positive[-1] > 50 * positive[len(positive) // 4]
        scale = "log" if dwarfed else "linear"
    if scale == "log" and positive:
        return _log_axis(positive[0], positive[-1], numbers[0])
    return _linear_axis(numbers[0], numbers[-1])


def extent_of(values: Iterable[float]) -> Extent | None:
    """Return (minimum, smallest positive value, maximum) of finite values, or None if there are no values."""
    numbers = list(values)
    return (min(numbers), min((y for y in numbers if y > 0), default=None), max(numbers)) if numbers else None


def count_axis(low: int, high: int) -> Axis:
    """Return an axis for steps or epochs, with ticks at whole numbers.

    If `low` equals `high`, add a margin on both sides.
    """
    first, last = (low - 0.5, high + 0.5) if low == high else (low, high)
    step = max(1, round(_nice_step(max(high - low, 1) / 6)))
    numbers = range(math.ceil(low / step) * step, high + 1, step)
    return Axis(first, last, tuple(((number - first) / (last - first), str(number)) for number in numbers))


def _linear_axis(low: float, high: float) -> Axis:
    if high - low <= max(1e-9 * max(abs(low), abs(high)), _TINY):  # the values are practically equal, so add a margin
        margin = abs(high) / 2 if abs(high) > _TINY else 1.0
        low, high = low - margin, high + margin
    step = _nice_step((high - low) / 4.5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = max(6, len(str(abs(first))) + 1, len(str(abs(last))) + 1)  # neighbouring labels must differ
    ticks = (((index - first) / (last - first), f"{index * step:.{digits}g}") for index in range(first, last + 1))
    return Axis(first * step, last * step, tuple(ticks))


def _log_axis(smallest: float, largest: float, least: float) -> Axis:
    """Return a log axis from `smallest` to `largest`.

    If `least` <= 0, the low end of the axis stands for zero and negative values.
    """
    low, high = math.log10(smallest), math.log10(largest)
    margin = max(0.04 * (high - low), 0.2)
    low, high = low - margin, high + margin
    exponents = range(math.floor(low), math.floor(high) + 1)
    mantissas = (1,) if high - low > 2.2 else (1, 2, 5) if high - low > 1 else (1, 1.5, 2, 3, 5, 7)
    stride = max(1, math.ceil((high - low) / 6))
    marks = [
        (math.log10(mantissa) + exponent, _power_text(mantissa, exponent))
        for exponent in exponents
        if exponent % stride == 0
        for mantissa in mantissas
        if low <= math.log10(mantissa) + exponent <= high
    ]
    if least <= 0:
        low -= 0.1 * (high - low)
        marks.insert(0, (low, "0" if least == 0 else "≤ 0"))
    return Axis(low, high, tuple(((at - low) / (high - low), label) for at, label in marks), log=True)


def _power_text(mantissa: float, exponent: int) -> str:
    return f"{mantissa * 10.0**exponent:.6g}" if -4 < exponent < 4 else f"{mantissa:g}e{exponent}"


def _nice_step(rough: float) -> float:
    """Return the smallest number of the form 1, 2 or 5 times a power of ten that is at least `rough` (> 0)."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next((n * power for n in (1, 2, 5) if n * power >= rough * (1 - 1e-9)), 10 * power)


@dataclass(frozen=True)
class Series:
    """One line of a chart: its points, sorted by x. A line without a label has no entry in the legend.

    tone, dash: the number of the colour, and the number of the dash pattern. Lines with a higher `dash` are drawn above
    lines with a lower one. run, signal: the names with which a report cites a value of the line, or "" if reports
    cannot cite its values.
    """

    label: str
    points: Sequence[Point]
    tone: int = 0
    dash: int = 0
    run: str = ""
    signal: str = ""


@dataclass(frozen=True)
class Mark:
    """A vertical line with a label. `x` is in user units of the drawing or, in a `ChartSource`, in steps or epochs."""

    x: float
    label: str
    tone: int


@dataclass(frozen=True)
class DrawnLine:
    """A series as the template draws it: the path data of the line and its dots, and their style."""

    label: str
    tone: int
    dash: str
    layer: int  # lines of a higher layer are drawn above lines of a lower layer
    below: int  # the number of lines above this line that hide most of its points
    path: str
    dots: str
    dots_below: int  # the number of lines above this line that hide at least one of its dots

    @property
    def width(self) -> float:
        """The width of the line. A line that other lines cover is wider, so that it stays visible."""
        return _WIDTH * (1 + 1.5 * min(self.below, 2))

    @property
    def dot_width(self) -> float:
        """The diameter of the dots. Dots that other lines cover are larger, so that they stay visible."""
        return _DOT_WIDTH * (1 + 0.7 * min(self.dots_below, 2))


@dataclass(frozen=True)
class LineChart:
    """A chart as the template draws it.

    All coordinates, including those in ticks and marks, are in user units of the drawing. `source` contains the
    original values, from which a script draws the interactive chart.
    """

    identifier: str
    title: str
    signal: str
    description: str
    x_label: str
    y_label: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[DrawnLine, ...]
    marks: tuple[Mark, ...]
    message: str
    width: int
    source: "ChartSource"
    height: int = _HEIGHT
    left: int = _LEFT
    top: int = _TOP
    bottom: int = _BOTTOM

    @property
    def right(self) -> int:
        """The right edge of the plot."""
        return self.width - _MARGIN


@dataclass(frozen=True)
class ChartSource:
    """The original values of a chart. The x of each mark is a step or an epoch.

    `extent` is the range of values on the y axis.
    """

    series: Sequence[Series]
    marks: tuple[Mark, ...]
    y_label: str
    log: bool
    extent: Extent | None


def line_chart(
    identifier: str,
    title: str,
    series: Sequence[Series],
    *,
    y_label: str,
    x_label: str = "step",
    signal: str = "",
    scale: Scale = "linear",
    include: Iterable[float] = (),
    width: int = WIDE,
    widen: bool = True,
) -> LineChart | None:
    """Return a chart of `series`, whose x values are whole numbers, or None if no series has a recorded value.

    identifier: the start of all ids in the markup. It is unique in the page and has only letters, digits and hyphens.
    signal: the name of the quantity in metrics.log, shown next to the title.
    include: finite values that the y axis must show as well. widen: whether a line is wider if other lines cover it.
    """
    recorded = [y for one in series for _, y in one.points if y is not None]
    if not recorded:
        return None
    finite = [y for y in recorded if math.isfinite(y)]
    shown = [*finite, *include]
    y_axis = make_axis(shown, scale)
    ends = [point[0] for one in series if one.points for point in (one.points[0], one.points[-1])]
    x_axis = count_axis(int(min(ends)), int(max(ends)))

    def across(share: float) -> float:
        return round(_LEFT + share * (width - _MARGIN - _LEFT), 1)

    def down(share: float) -> float:
        return round(_BOTTOM - share * (_BOTTOM - _TOP), 1)

    def place(x: float, y: float | None) -> Position:
        if y is None or not math.isfinite(y):
            return None
        return across(x_axis.position(x)), down(y_axis.position(y))

    found = [mark for one in series for mark in _non_finite_marks(one, x_label)]
    distinct = {(mark.x, mark.label): mark.tone % TONES for mark in reversed(found)}
    places = [{point[0]: place(*point) for point in one.points} for one in series]
    marks = tuple(Mark(x, label, tone) for (x, label), tone in sorted(distinct.items()))
    return LineChart(
        identifier=identifier,
        title=title,
        signal=signal,
        description=" ".join(_describe(one, one.label or title, x_label) for one in series),
        x_label=x_label,
        y_label=f"{y_label}, log axis" if y_axis.log else y_label,
        x_ticks=tuple((across(at), label) for at, label in x_axis.ticks),
        y_ticks=tuple((down(at), label) for at, label in y_axis.ticks),
        lines=tuple(
            _draw_line(
                one, own, [line for other, line in zip(series, places, strict=True) if widen and other.dash > one.dash]
            )
            for one, own in zip(series, places, strict=True)
        ),
        marks=tuple(Mark(across(x_axis.position(mark.x)), mark.label, mark.tone) for mark in marks),
        message="" if finite else "no finite value",
        width=width,
        source=ChartSource(series, marks, y_label, y_axis.log and bool(shown), extent_of(shown)),
    )


def _hidden(places: Mapping[float, Position], above: Mapping[float, Position], distance: float) -> float:
    """Return the share of a line's points that lie within `distance` of the other line's point at the same x."""
    at = [(place, above.get(x)) for x, place in places.items() if place]
    return sum(there is not None and abs(place[1] - there[1]) <= distance for place, there in at) / max(len(at), 1)


def _draw_line(one: Series, places: Mapping[float, Position], above: Sequence[Mapping[float, Position]]) -> DrawnLine:
    """Return a line as the template draws it.

    `above` contains the points of all lines that are drawn above this line.
    """
    few = len(places) <= _DOTS_UP_TO
    return DrawnLine(
        one.label,
        one.tone % TONES,
        DASHES[one.dash % len(DASHES)],
        layer=one.dash,
        below=sum(_hidden(places, line, _WIDTH / 2) >= _COINCIDE for line in above),
        path=line_path(thin(list(places.values()))),
        dots="".join(f"M{place[0]} {place[1]}h0" for place in places.values() if place and few),
        dots_below=sum(_hidden(places, line, _DOT_WIDTH / 2) > 0 for line in above) if few else 0,
    )


def thin(places: Sequence[Position], parts: int = 350) -> list[Position]:
    """Cut a line into `parts` equal parts. Return the first, last, highest and lowest point and one gap of each part.

    So every spike stays visible, and the size of the drawing is limited. A short line is returned unchanged.
    """
    size = math.ceil(len(places) / parts)
    if size <= 5:
        return list(places)
    kept: list[Position] = []
    for start in range(0, len(places), size):
        part = places[start : start + size]
        points = [(place[1], index) for index, place in enumerate(part) if place is not None]
        chosen = {points[0][1], points[-1][1], min(points)[1], max(points)[1]} if points else set()
        if None in part:
            chosen.add(part.index(None))
        kept += [part[index] for index in sorted(chosen)]
    return kept


def line_path(places: Sequence[Position]) -> str:
    """Return SVG path data for a line with gaps. A single point between two gaps becomes a dot."""
    path = ""
    for drawn, run in groupby(places, key=lambda place: place is not None):
        if drawn:
            points = [f"{place[0]:.1f} {place[1]:.1f}" for place in run if place is not None]
            path += "M" + "L".join(points) + ("h1.5" if len(points) == 1 else "")
    return path


def _non_finite_marks(one: Series, x_label: str) -> list[Mark]:
    bad = ((x, y) for x, y in one.points if y is not None and not math.isfinite(y))
    return [Mark(x, f"first {number_text(y)}: {x_label} {number_text(x)}", one.tone) for x, y in bad][:1]


def _describe(one: Series, label: str, x_label: str) -> str:
    """Describe a line in words: its first and last value, its minimum and maximum, and its first non-finite value."""

    def at(point: tuple[float, float]) -> str:
        return f"{number_text(point[1])} at {x_label} {number_text(point[0])}"

    recorded = [(x, y) for x, y in one.points if y is not None]
    finite = [point for point in recorded if math.isfinite(point[1])]
    if not recorded:
        return f"{label}: not recorded."
    words = [f"{label}: {len(recorded)} values, from {at(recorded[0])} to {at(recorded[-1])}"]
    if finite:
        low, high = (pick(finite, key=lambda point: point[1]) for pick in (min, max))
        words.append(f"minimum {at(low)}, maximum {at(high)}")
    return "; ".join([*words, *(mark.label for mark in _non_finite_marks(one, x_label))]) + "."
