"""Axes of a chart: where a value lies between the two ends, and the ticks a person would have chosen."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Scale = Literal["linear", "log", "symlog"]

_MINUS, _TIMES = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_STRIDES = (1, 2, 3, 5, 10, 20, 50, 100, 200)  # decades from tick to tick
_ZERO_STRIP = 0.08  # share of a log axis kept below its range for values that have no logarithm
_TINY = 1e-290  # below it a step between ticks would underflow
_HUGE = 1e300  # above it the ends of a linear axis could overflow
_PLAIN_EXPONENTS = range(-3, 4)  # 0.001 to 9000 are written out, the rest as powers of ten


@dataclass(frozen=True)
class Tick:
    """A label and its place: 0 is the low end of the axis, 1 the high end."""

    at: float
    label: str


@dataclass(frozen=True)
class Axis:
    """Maps values to [0, 1]. `low` and `high` are in the scale's own coordinate (log10 for a log axis)."""

    scale: Scale
    low: float
    high: float
    ticks: tuple[Tick, ...]
    unit: float = 1.0  # of a symlog axis: below it the axis is about linear
    strip: float = 0.0  # of a log axis: share at the low end where zero and negative values lie
    factor: str = ""  # what the labels of a linear axis are to be multiplied by, in words for the axis label

    def position(self, value: float) -> float:
        """Return the place of a finite value; what lies outside the range is put on its border."""
        if self.scale == "log" and value <= 0:
            return 0.0
        share = (_coordinate(value, self.scale, self.unit) - self.low) / (self.high - self.low)
        return self.strip + (1 - self.strip) * min(max(share, 0.0), 1.0)


def make_axis(values: Iterable[float], scale: Scale = "linear") -> Axis:
    """Return an axis that shows all of `values` (finite numbers; none at all gives 0 to 1).

    A log axis without a positive value becomes linear; a linear one too wide for a float becomes symlog.
    """
    numbers = list(values)
    if scale == "log":
        positive = [value for value in numbers if value > 0]
        if positive:
            return _log_axis(min(positive), max(positive), min(numbers))
        scale = "linear"
    low, high = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
    if scale == "symlog" or max(abs(low), abs(high)) > _HUGE:
        return _symlog_axis(numbers)
    return _linear_axis(low, high)


def integer_axis(low: int, high: int) -> Axis:
    """Return an axis for counts (steps, epochs) with ticks at whole numbers; a single count gets a margin."""
    first, last = (low - 0.5, high + 0.5) if low == high else (float(low), float(high))
    step = max(1, round(_nice_step((high - low) / 6))) if high > low else 1
    numbers = range(math.ceil(low / step) * step, high + 1, step)
    ticks = tuple(Tick((number - first) / (last - first), str(number)) for number in numbers)
    return Axis("linear", first, last, ticks)


def wants_symlog(values: Iterable[float]) -> bool:
    """Say whether a linear axis would flatten most of these finite values: one is 1000 x their quartile."""
    sizes = sorted(abs(value) for value in values if value)
    return bool(sizes) and sizes[-1] / 1000 > sizes[len(sizes) // 4]


def _coordinate(value: float, scale: Scale, unit: float) -> float:
    if scale == "log":
        return math.log10(value)
    if scale == "symlog":
        ratio = abs(value) / unit
        # The quotient of two floats can be infinite where the difference of their logarithms is not.
        size = math.log10(1 + ratio) if math.isfinite(ratio) else math.log10(abs(value)) - math.log10(unit)
        return math.copysign(size, value)
    return value


def _linear_axis(low: float, high: float) -> Axis:
    if high - low <= max(1e-9 * max(abs(low), abs(high)), _TINY):  # in effect one value: give it room
        margin = abs(high) * 0.5 if abs(high) > _TINY else 1.0
        low, high = low - margin, high + margin
    step = _nice_step((high - low) / 4.5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if last == first:
        last += 1
    size = math.floor(math.log10(max(abs(first), abs(last)) * step) + 1e-9)
    shift = 0 if size in _PLAIN_EXPONENTS else size
    ticks = tuple(
        Tick((index - first) / (last - first), _linear_label(index, step, shift))
        for index in range(first, last + 1)
    )
    factor = f"{_TIMES}10{str(shift).translate(_SUPERSCRIPTS)}" if shift else ""
    return Axis("linear", first * step, last * step, ticks, factor=factor)


def _log_axis(smallest: float, largest: float, overall_smallest: float) -> Axis:
    low, high = math.log10(smallest), math.log10(largest)
    margin = max(0.04 * (high - low), (0.3 - (high - low)) / 2)
    low, high = low - margin, high + margin
    strip = _ZERO_STRIP if overall_smallest <= 0 else 0.0
    marks = _log_marks(low, high)
    plain = all(exponent in _PLAIN_EXPONENTS for _, exponent in marks)
    ticks = [
        Tick(strip + (1 - strip) * (math.log10(mantissa) + exponent - low) / (high - low), label)
        for mantissa, exponent in marks
        for label in [_power_label(mantissa, exponent, plain)]
    ]
    if strip:
        ticks.insert(0, Tick(0.0, "0" if overall_smallest == 0 else "≤ 0"))
    return Axis("log", low, high, tuple(ticks), strip=strip)


def _log_marks(low: float, high: float) -> list[tuple[float, int]]:
    """Return (mantissa, exponent) of the ticks of a log axis between two base-10 logarithms."""
    exponents = range(math.ceil(low), math.floor(high) + 1)
    if len(exponents) > 2:
        stride = next((stride for stride in _STRIDES if len(exponents) / stride <= 6), _STRIDES[-1])
        return [(1.0, exponent) for exponent in exponents if exponent % stride == 0]
    around = range(math.floor(low), math.floor(high) + 1)
    for mantissas in ((1, 2, 5), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)):
        marks = [
            (float(mantissa), exponent)
            for exponent in around
            for mantissa in mantissas
            if low <= math.log10(mantissa) + exponent <= high
        ]
        if len(marks) >= 3:
            break
    return marks


def _symlog_axis(values: list[float]) -> Axis:
    sizes = sorted(abs(value) for value in values if value) or [1.0]
    decade = math.floor(math.log10(sizes[len(sizes) // 4]))
    unit = max(10.0**decade, 1e-300)
    coordinates = [_coordinate(value, "symlog", unit) for value in values] or [0.0]
    low, high = min(0.0, *coordinates), max(0.0, *coordinates)
    margin = 0.04 * (high - low) or 0.5
    low, high = low - margin, high + margin
    stride = next((stride for stride in _STRIDES if (high - low) / stride <= 6), _STRIDES[-1])
    marks = [(0.0, "0")] + [
        (
            sign * max(power, math.log10(1 + 10.0 ** min(power, 300))),
            prefix + _power_label(1.0, decade + power, plain=False),
        )
        for power in range(stride, math.floor(max(high, -low)) + 1, stride)
        for sign, prefix in ((1, ""), (-1, _MINUS))
    ]
    ticks = [Tick((at - low) / (high - low), label) for at, label in marks if low <= at <= high]
    return Axis("symlog", low, high, tuple(sorted(ticks, key=lambda tick: tick.at)), unit=unit)


def _nice_step(rough: float) -> float:
    """Return the smallest of 1, 2, 2.5, 5 times a power of ten that is not below `rough` (> 0)."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(
        (factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9)), 10 * power
    )


def _linear_label(index: int, step: float, shift: int) -> str:
    """Return the label of `index` steps in units of 10 to the power of `shift`."""
    if index == 0:
        return "0"
    exponent = math.floor(math.log10(step) + 1e-9)
    exponent -= not math.isclose(
        step, round(step / 10.0**exponent) * 10.0**exponent
    )  # 2.5 has one digit more
    return f"{index * step / 10.0**shift:.{max(0, shift - exponent)}f}".replace("-", _MINUS)


def _power_label(mantissa: float, exponent: int, plain: bool) -> str:
    if plain:
        digits = max(0, -exponent) + (mantissa % 1 > 0 and exponent <= 0)
        return f"{mantissa * 10.0**exponent:.{digits}f}"
    power = f"10{str(exponent).translate(_SUPERSCRIPTS)}"
    return power if mantissa == 1 else f"{mantissa:g}{_TIMES}{power}"


def number_text(value: float) -> str:
    """Return six significant digits in plain ASCII, as a student may cite them; NaN and Infinity by name."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:.6g}"
