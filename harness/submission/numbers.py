"""Numbers as people write them, and whether one is a given value by any usual rounding or truncation."""

import decimal
import math
import re
from dataclasses import dataclass
from functools import lru_cache

_LIMIT = 64  # characters of one number
_NON_FINITE = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}
_NUMBER = re.compile(
    r"(?P<digits>[+-]?(?:\d+(?:[.,]\d*)?|\d{1,3}(?:,\d{3})+\.\d*|\.\d+))"
    r"(?:[eE](?P<power>[+-]?\d{1,3}))?(?P<percent> ?%)?",
    re.ASCII,
)
# A float64 has at most 767 significant digits and exponents down to -324: nothing here is ever rounded.
_EXACT = decimal.Context(prec=2000, Emax=10**6, Emin=-(10**6))


@dataclass(frozen=True)
class Reading:
    """One way to read a number: its value, and the unit of the last digit that was written."""

    value: decimal.Decimal
    unit: decimal.Decimal


@lru_cache(maxsize=4096)
def read_number(text: str) -> tuple[Reading, ...] | float:
    """Return every way to read a number, or the float that NaN or an infinity names.

    `0.93`, `31,84`, `1,234.5`, `3.2e-7` and `93.1 %` are numbers; `1,234` is one thousand or a bit more than one. A per
    cent sign divides by 100. Raises `ValueError` if the text is not one number.
    """
    if len(text) > _LIMIT:
        raise ValueError(f"a number of more than {_LIMIT} characters")
    words = text.strip()
    name = words[1:] if words[:1] in ("+", "-") else words
    non_finite = _NON_FINITE.get(name.lower().removeprefix("."))
    if non_finite is not None:
        return -non_finite if words.startswith("-") else non_finite
    match = _NUMBER.fullmatch(words.replace("−", "-"))
    if match is None:
        raise ValueError("not a number")
    return _readings(match)


def _readings(match: re.Match[str]) -> tuple[Reading, ...]:
    digits, power = match["digits"], match["power"]
    shift = int(power or 0) - (2 if match["percent"] else 0)
    ways = {digits.replace(",", "" if "." in digits else ".")}
    if re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", digits):
        ways.add(digits.replace(",", ""))
    found = []
    for written in ways:
        mantissa = decimal.Decimal(written)
        last = int(mantissa.as_tuple().exponent)
        if last == 0 and not power:
            # 18000 may be 18,234 rounded to two digits; a single digit and zeros is exact.
            significant = written.strip("+-").rstrip("0")
            last = len(written.strip("+-")) - len(significant) if len(significant) >= 2 else 0
        value = mantissa.scaleb(shift, _EXACT)
        last = last + shift if value else min(last + shift, 0)  # 0e9 is not less precise than 0
        found.append(Reading(value, decimal.Decimal(1).scaleb(last, _EXACT)))
    return tuple(found)


def agrees(written: str | float, true: float, *, fraction: bool = False) -> bool:
    """Return whether a number as written is the true one, rounded or truncated to the digits that were written.

    `0.93` agrees with 0.9312 and with 0.9388, `0.930` with neither. NaN agrees with NaN, an infinity with the same
    one. With `fraction`, `93.1` may also stand for 0.931. A text that is not a number agrees with nothing.
    """
    try:
        number = read_number(written if isinstance(written, str) else repr(written))
    except ValueError:
        return False
    if isinstance(number, float):
        return number == true or (math.isnan(number) and math.isnan(true))
    if not math.isfinite(true):
        return False
    # People round what the log prints, programs round the number itself: they differ in the 16th digit.
    values = (decimal.Decimal(repr(float(true))), decimal.Decimal(float(true)))
    shares = [reading for reading in number if fraction and reading.value > 1]
    hundredth = decimal.Decimal("0.01")
    readings = [*number, *(Reading(r.value * hundredth, r.unit * hundredth) for r in shares)]
    return any(_agrees(reading, value) for reading in readings for value in values)


def _agrees(reading: Reading, true: decimal.Decimal) -> bool:
    distance = _EXACT.subtract(reading.value, true).copy_abs()
    if _EXACT.multiply(distance, decimal.Decimal(2)) <= reading.unit:
        return True
    truncated = reading.value and reading.value.is_signed() == true.is_signed()
    return bool(truncated and reading.value.copy_abs() <= true.copy_abs() and distance < reading.unit)
