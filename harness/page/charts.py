"""Line charts as static SVG: geometry and words here, markup in `templates/chart.html.j2`, looks in `run.css`.

A chart needs no script. Lines differ by colour and by dash pattern. A value that is not finite is a gap, with a mark
at the first one. The words that a screen reader speaks say what the drawing shows.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Scale = Literal["linear", "log"]
Marker = Literal["dot", "ring", "square"]
Point = tuple[float, float | None]  # a y of None, NaN or infinity is a gap
Position = tuple[float, float] | None  # in user units of the drawing; None lifts the pen

# Each line of a chart has its own dash pattern. Past the last they start over, with other colours.
DASHES = ("", "5 4", "1.5 3", "9 3 1.5 3", "3 2", "12 4", "9 3 1.5 3 1.5 3", "1 5")
TONES = 8  # --tone-0 .. --tone-7 in run.css
NEUTRAL_TONE = 6

_MINUS, _TIMES = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLAIN_EXPONENTS = range(-3, 4)  # 0.001 to 9000 are written out, the rest as powers of ten
_ZERO_STRIP = 0.08  # share of a log axis kept below its range for values that have no logarithm
_TINY = 1e-290  # below it a step between ticks would underflow
_HUGE = 1e300  # above it the ends of a linear axis could overflow
_MARK_ROW = 15


@dataclass(frozen=True)
class Tick:
    """A label and its place: 0 is the low end of the axis, 1 the high end."""

    at: float
    label: str


@dataclass(frozen=True)
class Axis:
    """Maps values to [0, 1]. `low` and `high` are logarithms (base 10) for a log axis.

    `strip` is the share at the low end of a log axis where zero and negative values lie. `factor`, such as "×10⁷",
    belongs in the label of a linear axis whose ticks are in that unit.
    """

    scale: Scale
    low: float
    high: float
    ticks: tuple[Tick, ...]
    strip: float = 0.0
    factor: str = ""

    def position(self, value: float) -> float:
        """Return the place of a finite value; a value outside the range lies on its border."""
        if self.scale == "log":
            if value <= 0:
                return 0.0
            value = math.log10(value)
        share = (value - self.low) / (self.high - self.low)
        return self.strip + (1 - self.strip) * min(max(share, 0.0), 1.0)


def make_axis(values: Iterable[float], scale: Scale = "linear") -> Axis:
    """Return an axis that shows all of `values` (finite numbers; without any, 0 to 1).

    A log axis without a positive value becomes linear.
    """
    numbers = list(values) or [0.0, 1.0]
    positive = [value for value in numbers if value > 0]
    if scale == "log" and positive:
        return _log_axis(min(positive), max(positive), min(numbers))
    low, high = (min(max(end, -_HUGE), _HUGE) for end in (min(numbers), max(numbers)))
    return _linear_axis(low, high)


def integer_axis(low: int, high: int) -> Axis:
    """Return an axis for counts (steps, epochs) with ticks at whole numbers; a single count gets a margin."""
    first, last = (low - 0.5, high + 0.5) if low == high else (float(low), float(high))
    step = max(1, round(_nice_step((high - low) / 6))) if high > low else 1
    numbers = range(math.ceil(low / step) * step, high + 1, step)
    ticks = tuple(Tick((number - first) / (last - first), str(number)) for number in numbers)
    return Axis("linear", first, last, ticks)


def spans_decades(values: Iterable[float]) -> bool:
    """Return whether a linear axis would flatten most of these finite values, none of them negative.

    It would if the largest is 1000 times their lower quartile.
    """
    numbers = sorted(values)
    sizes = [value for value in numbers if value]
    return bool(sizes) and numbers[0] >= 0 and sizes[-1] / 1000 > sizes[len(sizes) // 4]


def _linear_axis(low: float, high: float) -> Axis:
    if high / 2 - low / 2 <= max(1e-9 * max(abs(low), abs(high)), _TINY):  # in effect one value: give it room
        margin = abs(high) * 0.5 if abs(high) > _TINY else 1.0
        low, high = low - margin, high + margin
    step = _nice_step((high / 4.5) - (low / 4.5))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    size = math.floor(math.log10(max(abs(first), abs(last)) * step) + 1e-9)
    shift = 0 if size in _PLAIN_EXPONENTS else size
    digits = max(0, shift - math.floor(math.log10(step) + 1e-9)) + 1  # 2.5 has one digit more than 2
    ticks = tuple(
        Tick((index - first) / (last - first), _label(f"{index * (step / 10.0**shift):.{digits}f}"))
        for index in range(first, last + 1)
    )
    return Axis("linear", first * step, last * step, ticks, factor=_power(1, shift) if shift else "")


def _log_axis(smallest: float, largest: float, overall_smallest: float) -> Axis:
    low, high = math.log10(smallest), math.log10(largest)
    margin = max(0.04 * (high - low), (0.3 - (high - low)) / 2)
    low, high = low - margin, high + margin
    strip = _ZERO_STRIP if overall_smallest <= 0 else 0.0
    marks = _log_marks(low, high)
    plain = all(exponent in _PLAIN_EXPONENTS for _, exponent in marks)
    ticks = [
        Tick(
            strip + (1 - strip) * (math.log10(mantissa) + exponent - low) / (high - low),
            f"{mantissa * 10.0**exponent:.6g}" if plain else _power(mantissa, exponent).removeprefix(_TIMES),
        )
        for mantissa, exponent in marks
    ]
    if strip:
        ticks.insert(0, Tick(0.0, "0" if overall_smallest == 0 else "≤ 0"))
    return Axis("log", low, high, tuple(ticks), strip=strip)


def _log_marks(low: float, high: float) -> list[tuple[float, int]]:
    """Return (mantissa, exponent) of the ticks of a log axis between two base-10 logarithms."""
    exponents = range(math.ceil(low), math.floor(high) + 1)
    if len(exponents) > 2:
        stride = next(n for n in (1, 2, 3, 5, 10, 20, 50, 100, 200) if len(exponents) / n <= 6)
        return [(1.0, exponent) for exponent in exponents if exponent % stride == 0]
    marks: list[tuple[float, int]] = []
    for mantissas in ((1, 2, 5), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)):
        marks = [
            (float(mantissa), exponent)
            for exponent in range(math.floor(low), math.floor(high) + 1)
            for mantissa in mantissas
            if low <= math.log10(mantissa) + exponent <= high
        ]
        if len(marks) >= 3:
            break
    return marks


def _nice_step(rough: float) -> float:
    """Return the smallest of 1, 2, 2.5, 5 times a power of ten that is not below `rough` (> 0)."""
    power = 10.0 ** math.floor(math.log10(rough))
    fitting = (factor * power for factor in (1, 2, 2.5, 5) if factor * power >= rough * (1 - 1e-9))
    return next(fitting, 10 * power)


def _label(digits: str) -> str:
    """Return the digits without trailing zeros, with a minus sign that is as wide as a digit."""
    return digits.rstrip("0").rstrip(".").replace("-", _MINUS)


def _power(mantissa: float, exponent: int) -> str:
    digits = "" if mantissa == 1 else f"{mantissa:g}"
    return f"{digits}{_TIMES}10{str(exponent).translate(_SUPERSCRIPTS)}"


def number_text(value: float) -> str:
    """Return six significant digits in plain ASCII, as a student may cite them; NaN and Infinity by name."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:.6g}"


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
    """A mark and the place of its words; `before` puts them to the left of the line."""

    x: float
    label: str
    tone: int
    label_y: float
    before: bool


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
    scale: of the y axis; "auto" is linear unless `spans_decades`.
    y_axis: an axis shared with other charts, instead of one made from the values.
    log_x: x is any positive number, on a log axis, instead of a count.
    include: finite values that the y axis must show as well.
    marks: further vertical marks; the first non-finite value of each line is marked in any case.
    frame: its size, WIDE or COMPACT.
    """
    if not any(y is not None for one in series for _, y in one.points):
        return None
    finite = [y for one in series for _, y in one.points if y is not None and math.isfinite(y)]
    if scale == "auto":
        scale = "log" if spans_decades(finite) else "linear"
    y_axis = y_axis or make_axis([*finite, *include], scale)
    ends = [point[0] for one in series if one.points for point in (one.points[0], one.points[-1])]
    x_axis = make_axis(ends, "log") if log_x else integer_axis(int(min(ends)), int(max(ends)))
    all_marks = [*marks, *(mark for one in series if one.line for mark in _non_finite_mark(one, x_label))]
    kind = "log axis" if y_axis.scale == "log" else y_axis.factor
    return LineChart(
        identifier=identifier,
        title=title,
        signal=signal,
        description=" ".join(_describe(one, one.label or title, x_label) for one in series),
        x_label=x_label,
        y_label=f"{y_label}, {kind}" if kind else y_label,
        x_ticks=tuple((frame.across(tick.at), tick.label) for tick in x_axis.ticks),
        y_ticks=tuple((frame.down(tick.at), tick.label) for tick in y_axis.ticks),
        series=tuple(_draw(one, x_axis, y_axis, frame) for one in series),
        marks=_place_marks(all_marks, x_axis, frame),
        message="" if finite else "no finite value",
        frame=frame,
    )


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
        line=_line_path(positions) if one.line else "",
        markers=_marker_path(one.marker, positions) if one.marker else "",
        hollow=one.marker != "dot",
        key=one.label if one.key is None else one.key,
        key_tone=one.tone % TONES if one.key is None else NEUTRAL_TONE,
        key_line=one.line,
        key_marker=_marker_path(one.marker, [(16, 8)]) if one.marker else "",
    )


def thin(positions: Sequence[Position], columns: int, low: float, high: float) -> list[Position]:
    """Return at most five entries for each of `columns` equal slices of [low, high], in the same order.

    A slice keeps its first, lowest, highest and last point, and one gap if it has any, so that no spike and no join
    is lost. A gap belongs to the slice of the point before it. Short series come back whole.
    """
    if len(positions) <= 2 * columns:
        return list(positions)
    kept: list[Position] = []
    piece: list[Position] = []
    current = 0
    for position in positions:
        if position is not None:
            column = min(int((position[0] - low) / (high - low) * columns), columns - 1)
            if column != current:
                kept += _thin_slice(piece)
                piece, current = [], column
        piece.append(position)
    return kept + _thin_slice(piece)


def _thin_slice(positions: list[Position]) -> list[Position]:
    points = [(index, position) for index, position in enumerate(positions) if position is not None]
    if not points:
        return positions[:1]
    chosen = {points[0][0], points[-1][0]}
    chosen |= {pick(points, key=lambda item: item[1][1])[0] for pick in (min, max)}
    if len(points) < len(positions):
        chosen.add(positions.index(None))
    return [positions[index] for index in sorted(chosen)]


def _line_path(positions: Sequence[Position]) -> str:
    """Return path data for a polyline with gaps; a point between two gaps becomes a dot."""
    pieces: list[str] = []
    length = 0  # points since the pen went down
    for position in (*positions, None):
        if position is not None:
            pieces.append(f"{'L' if length else 'M'}{position[0]:.1f} {position[1]:.1f}")
            length += 1
            continue
        if length == 1:
            pieces.append("h1.5")
        length = 0
    return "".join(pieces)


def _marker_path(marker: Marker, positions: Sequence[Position]) -> str:
    """Return path data with a marker at each point; ring and square are outlines, larger than a dot."""
    return "".join(_marker(marker, *position) for position in positions if position is not None)


def _marker(marker: Marker, x: float, y: float) -> str:
    if marker == "square":
        return f"M{x - 7:.1f} {y - 7:.1f}h14v14h-14z"
    radius = 3 if marker == "dot" else 5.5
    arc = f"a{radius} {radius} 0 1 0 "
    return f"M{x - radius:.1f} {y:.1f}{arc}{2 * radius} 0{arc}{-2 * radius} 0z"


def _non_finite_mark(one: Series, x_label: str) -> list[Mark]:
    bad = ((x, y) for x, y in one.points if y is not None and not math.isfinite(y))
    return [Mark(x, f"first {number_text(y)}: {x_label} {number_text(x)}", one.tone) for x, y in bad][:1]


def _place_marks(marks: Sequence[Mark], x_axis: Axis, frame: Frame) -> tuple[DrawnMark, ...]:
    """Give each mark its own row for its words, on the side that has more room; equal ones become one."""
    distinct = {(mark.x, mark.label): mark for mark in reversed(marks)}
    placed = []
    for row, mark in enumerate(sorted(distinct.values(), key=lambda mark: (mark.x, mark.label))):
        share = x_axis.position(mark.x)
        label_y = frame.top + 12 + row % 5 * _MARK_ROW
        placed.append(DrawnMark(frame.across(share), mark.label, mark.tone % TONES, label_y, share > 0.5))
    return tuple(placed)


def _describe(one: Series, label: str, x_label: str) -> str:
    """Say in words what a line shows: its ends, its extremes, and where it is not finite."""

    def point(x: float, y: float) -> str:
        return f"{number_text(y)} at {x_label} {number_text(x)}"

    recorded = [(x, y) for x, y in one.points if y is not None]
    finite = [(x, y) for x, y in recorded if math.isfinite(y)]
    if not recorded:
        return f"{label}: not recorded."
    if len(recorded) == 1:
        return f"{label}: {point(*recorded[0])}."
    words = f"{label}: {len(recorded)} values, from {point(*recorded[0])} to {point(*recorded[-1])}"
    if finite:
        low, high = min(finite, key=lambda point: point[1]), max(finite, key=lambda point: point[1])
        words += f"; least {point(*low)}, greatest {point(*high)}"
    if len(finite) < len(recorded):
        words += f"; {len(recorded) - len(finite)} not finite, {_non_finite_mark(one, x_label)[0].label}"
    return words + "."
