"""Read a student's report: front matter that contains the diagnosis as data, and a text for human readers.

The front matter is YAML. Numbers are kept as text, because the number of written digits shows the precision.
"""

import decimal
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from harness.errors import UserError, printable, suggestion
from harness.files import read_text
from harness.formats.plain_yaml import LIMIT, PlainYaml, read_plain_yaml
from harness.recipes.recipe import HEALTHY
from harness.submission.document import Body, read_body
from harness.submission.limits import REPORT_BYTES
from harness.workspace.workspace import Run, make_command

WORD_LIMIT = 500
PARTS = ("symptom", "root cause", "fix", "verification")
# A report must rule out two other causes. A report that finds nothing wrong must rule out causes from four areas, and
# in two areas by the outcome of a check, because the log shows only some faults.
RIVALS, AREAS, BY_CHECKS = 2, 4, 2
FENCE = "---"
_Word = Annotated[str, Field(min_length=1, max_length=200)]
_CheckName = Annotated[_Word, AfterValidator(lambda name: name.replace("-", "_"))]
# `Huge-LR` and `huge lr` also mean `huge_lr`.
_CauseName = Annotated[_Word, AfterValidator(lambda name: re.sub(r"[\s_-]+", "_", name.strip("`'\" ")).lower())]
# In YAML braces, a comma ends a value. Values with a comma, as in `where: experiment.py, load_data` and `value:
# 1,234.5`, are read as if they were in quotes.
_PIECE = r"[^\"'{}\[\],\n:]{1,80}"
_WITH_COMMAS = (
    re.compile(rf"(\bwhere: {{0,9}})({_PIECE},{_PIECE})(?=\}}|,[ a-z_]{{1,20}}:)"),
    re.compile(r"(\bvalue: {0,9})([+\-−]?[0-9.]{1,20},[0-9.,]{0,40}[0-9](?:[eE][+\-]?[0-9]{1,3})?(?: ?[%％])?)"),
)
# Maps each key of the front matter to the advice that a message gives if its value is missing.
_REMEDIES = {
    "diagnosis": "name the cause that you found; harness causes lists them",
    "ruled_out": "name two other causes, each with a fact that contradicts the cause",
    "evidence": "cite at least one value of each run, each on its own line; harness show prints such lines",
    "cause": "write the id of a cause; harness causes lists them",
    "where": "name the function of experiment.py that contains the fault",
    "first_wrong": "cite the first wrong value of runs/broken/metrics.log",
    "signal": "name a signal of metrics.log, such as loss or val_accuracy",
    "step": "write the step whose value you cite, counted from 0, or remove this key",
    "epoch": "write the epoch whose value you cite, counted from 0, or remove this key",
    "value": "write the number that metrics.log has at this step or epoch",
    "check": "name a check, such as first-loss; harness --help lists them",
    "outcome": "write the outcome that the check prints",
    "run": "write broken or fixed",
}
_LIMIT = 64  # the most characters of one number
_NON_FINITE = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}
_NUMBER = re.compile(
    r"(?P<digits>[+-]?(?:\d+(?:[.,]\d*)?|\d{1,3}(?:,\d{3})+\.\d*|\.\d+))"
    r"(?:[eE](?P<power>[+-]?\d{1,3}))?(?P<percent> ?%)?",
    re.ASCII,
)
# A float64 has at most 767 significant digits and exponents down to -324, so this context rounds no float64.
_EXACT = decimal.Context(prec=2000, Emax=10**6, Emin=-(10**6))


def _index(text: object) -> int:
    if not isinstance(text, str) or re.fullmatch(r"[0-9]{1,9}", text) is None:
        raise ValueError("write a whole number, counted from 0")
    return int(text)


def _number(text: object) -> str:
    try:
        read_number(text if isinstance(text, str) else "")
    except ValueError:
        raise ValueError("write a number such as 0.93 or 1.8e4, or NaN, Infinity or -Infinity") from None
    assert isinstance(text, str)
    return text.strip()


_ListIndex = Annotated[int, BeforeValidator(_index)]


class Sign(BaseModel):
    """A fact about a run: the value of a signal at a step or an epoch, or the outcome of a check.

    Unused fields are "" or None.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    signal: _Word = ""
    step: _ListIndex | None = None
    epoch: _ListIndex | None = None
    value: Annotated[str, BeforeValidator(_number)] = ""
    check: _CheckName = ""
    outcome: Annotated[_Word, AfterValidator(lambda name: name.replace("_", "-"))] = ""

    @model_validator(mode="after")
    def _is_one_fact(self) -> "Sign":
        places = [place for place in (self.step, self.epoch) if place is not None]
        is_check = self.check and self.outcome and not (self.signal or self.value or places)
        is_value = self.signal and self.value and len(places) == 1 and not (self.check or self.outcome)
        if not (is_check or is_value):
            raise ValueError("give a `check` and its `outcome`, or a `signal`, one `step` or `epoch`, and a `value`")
        return self

    @property
    def index(self) -> int:
        """The step or epoch of the cited value."""
        return (self.step if self.step is not None else self.epoch) or 0

    def __str__(self) -> str:
        """Return words for messages: the signal with its step or epoch, or the name of the check."""
        if self.check:
            return f"check {printable(self.check).replace('_', '-')}"
        place = f"step {self.step}" if self.step is not None else f"epoch {self.epoch}"
        return f"{printable(self.signal)} at {place}"


class Diagnosis(BaseModel):
    """A diagnosis: the cause, the function that contains the fault, and the first wrong value or a check's outcome.

    With the cause `healthy`, a report gives neither a function nor a value.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    cause: _CauseName
    where: _Word
    first_wrong: Sign

    @model_validator(mode="before")
    @classmethod
    def _healthy_is_nowhere(cls, given: object) -> object:
        if isinstance(given, dict) and str(given.get("cause")).strip("`'\" ").lower() == HEALTHY:
            return {"where": "-", "first_wrong": {"check": "none", "outcome": "sound"}, **given}
        return given


class RuledOut(Sign):
    """A ruled-out cause, and a fact about the broken run that contradicts this cause."""

    cause: _CauseName


class CitedValue(Sign):
    """A value that a report cites from the log of one of the two runs."""

    run: Run

    @model_validator(mode="after")
    def _is_a_value(self) -> "CitedValue":
        if self.check:
            raise ValueError("evidence must be a value from a log, not a check; move the check to `ruled_out`")
        return self


class Report(BaseModel):
    """A report with complete front matter. `body` is the text under the front matter."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    diagnosis: list[Diagnosis]
    ruled_out: list[RuledOut]
    evidence: list[CitedValue]
    body: Body

    def cited_signs(self, run: Run) -> tuple[Sign, ...]:
        """Return all values from a run's log that the report cites under evidence or in the diagnosis."""
        found: list[Sign] = [item for item in self.evidence if item.run == run]
        if run == "broken":
            found += [item.first_wrong for item in self.diagnosis if not item.first_wrong.check]
        return tuple(found)


@lru_cache(maxsize=8)  # several functions read the same report
def parse_report(text: str, source: str = "report.md") -> Report:
    """Parse a report and return it. `source` is the name of the file in messages.

    Raises `UserError` if the front matter is missing, is not YAML, is not filled in, or has an unknown key or a wrong
    value.
    """
    matter, body = split_report(text, source)
    for text_with_comma in _WITH_COMMAS:
        matter = text_with_comma.sub(r'\1"\2"', matter)
    front = read_plain_yaml(matter, source, "the front matter", first_line=2)
    try:
        return Report.model_validate({**front.values, "body": read_body(body)})
    except ValidationError as error:
        # Report misspelt keys first, because pydantic also reports a misspelt key as missing.
        problems = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
        raise UserError(_message(problems[0], front, source)) from None


def read_report(path: Path) -> Report:
    """Read and return the report in a file. Raises `UserError` as `parse_report` and `harness.files.read_text` do."""
    missing = f"{make_command('exercise', path.parent)} writes an empty one"
    too_large = "shorten it, or shrink the pictures in it"
    return parse_report(read_text(path, REPORT_BYTES, missing=missing, too_large=too_large), str(path))


def split_report(text: str, source: str) -> tuple[str, str]:
    """Split a report into its front matter and the text under the front matter, and return both.

    Raises `UserError` if the front matter does not begin on line 1, does not end, or is too long.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != FENCE:
        raise UserError(
            f"{source}, line 1: a report begins with a line of three dashes (---), then diagnosis, ruled_out and"
            " evidence, then three dashes again; put these lines above your text."
        )
    end = next((index for index, line in enumerate(lines) if index and line.rstrip() == FENCE), None)
    if end is None:
        advice = "put a line of three dashes (---) under the evidence"
        raise UserError(f"{source}: the end of the front matter is missing: {advice}.")
    matter = "\n".join(lines[1:end])
    if len(matter) > LIMIT:
        size = f"{len(matter)} characters, but at most {LIMIT} are allowed"
        raise UserError(f"{source}, line {end + 1}: the front matter has {size}: cite fewer values.")
    return matter, "\n".join(lines[end + 1 :])


def body_of(text: str) -> Body:
    """Parse and return the text under the front matter of a report, or the whole report if it has no front matter."""
    try:
        return read_body(split_report(text, "report.md")[1])
    except UserError:
        return read_body(text)


def _message(problem: ErrorDetails, front: PlainYaml, source: str) -> str:
    location, given = problem["loc"], problem["input"]
    where, key = f"{source}, line {front.line(location)}", printable(location[-1])
    if len(location) > 1 and isinstance(location[1], int):
        where += f", {location[0]} {location[1] + 1}"
    if problem["type"] == "extra_forbidden":
        known = [name for name in _REMEDIES if name != key]
        return f"{where}: there is no key `{key}` here: {suggestion(key, known)}"
    if problem["type"] == "missing" or given is None:
        what = "missing" if problem["type"] == "missing" else "not filled in yet"
        return f"{where}: `{key}` is {what}: {_REMEDIES.get(key, 'write it as PROMPT.md shows')}."
    reason = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "model_type":
        reason = "write a value in the form {signal: ..., step: ..., value: ...}, as PROMPT.md shows"
    elif isinstance(given, str) or problem["type"] != "value_error":
        reason = f"`{key}`{f' is {printable(given)!r}' if isinstance(given, str) else ''}: {reason}"
    return f"{where}: {reason}."


@dataclass(frozen=True)
class Reading:
    """One way to read a number: its value, and the place value of its last written digit (0.01 for "0.93")."""

    value: decimal.Decimal
    unit: decimal.Decimal


@lru_cache(maxsize=4096)
def read_number(text: str) -> tuple[Reading, ...] | float:
    """Return all possible meanings of a written number, or a float for NaN and the infinities.

    `0.93`, `31,84`, `1,234.5`, `3.2e-7` and `93.1 %` are numbers; `1,234` is either 1234 or 1.234. A number with a
    percent sign is divided by 100. Raises `ValueError` if the text is not one number.
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
            # 18000 may be 18,234 rounded to two digits. A number with only one digit before its zeros, such as 2000, is
            # exact.
            significant = written.strip("+-").rstrip("0")
            last = len(written.strip("+-")) - len(significant) if len(significant) >= 2 else 0
        value = mantissa.scaleb(shift, _EXACT)
        last = last + shift if value else min(last + shift, 0)  # 0e9 is as precise as 0
        found.append(Reading(value, decimal.Decimal(1).scaleb(last, _EXACT)))
    return tuple(found)


def agrees(written: str | float, true: float, *, fraction: bool = False) -> bool:
    """Return whether a written number is the true number, rounded or truncated to the written digits.

    `0.93` agrees with 0.9312 and with 0.9388; `0.930` agrees with neither of them. NaN agrees with NaN, and an infinity
    agrees with itself. If `fraction`, `93.1` may also stand for 0.931. A text that is not a number agrees with no
    number.
    """
    try:
        number = read_number(written if isinstance(written, str) else repr(written))
    except ValueError:
        return False
    if isinstance(number, float):
        return number == true or (math.isnan(number) and math.isnan(true))
    if not math.isfinite(true):
        return False
    # People round the printed decimal number, but programs round the binary number. These differ in the 16th digit, so
    # both are accepted.
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
