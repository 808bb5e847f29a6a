"""`report.md`: the evidence in its front matter and the explanation under it; neither is trusted."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from harness.errors import UserError
from harness.plain_yaml import Location, PlainYaml, shown
from harness.recipe import Area, suggestion
from harness.submission.cited_numbers import written_number
from harness.submission.front_matter import parse_front_matter, split_report
from harness.submission.report_body import WORD_LIMIT, read_body
from harness.workspace import REPORT_TEMPLATE

SIZE_LIMIT = 1024 * 1024  # bytes; a report is 500 words, but a picture may be written into it


def _index(text: object) -> int:
    if not isinstance(text, str) or re.fullmatch(r"[0-9]{1,9}", text) is None:
        raise ValueError("must be a whole number, counted from 0")
    return int(text)


def _number(text: object) -> str:
    try:
        written_number(text if isinstance(text, str) else "")
    except ValueError:
        raise ValueError("must be a number such as 0.93 or 1.8e4, or NaN, Infinity or -Infinity") from None
    assert isinstance(text, str)
    return text.strip()


class Evidence(BaseModel):
    """One number that the report cites from a log, as it was written: its digits say how precise it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: Literal["broken", "fixed"]
    signal: Annotated[str, Field(min_length=1, max_length=200)]
    step: Annotated[int, BeforeValidator(_index)] | None = None
    epoch: Annotated[int, BeforeValidator(_index)] | None = None
    value: Annotated[str, BeforeValidator(_number)]

    @model_validator(mode="after")
    def _stands_in_one_place(self) -> "Evidence":
        if (self.step is None) == (self.epoch is None):
            raise ValueError("needs either `step` or `epoch`, and not both")
        return self

    @property
    def place(self) -> str:
        """Where the number stands, in words."""
        return f"step {self.step}" if self.step is not None else f"epoch {self.epoch}"


class _Matter(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    root_cause_layer: Area
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class StudentReport:
    """A report whose front matter is whole. `word_count` may be above the limit: `require_length` says so."""

    layer: Area
    evidence: tuple[Evidence, ...]
    body: str
    word_count: int
    prose_words: int
    snippets: int
    images: tuple[str, ...]

    def require_length(self, source: str) -> None:
        """Raise `UserError` if the report has more words than it may."""
        if self.word_count > WORD_LIMIT:
            excess = self.word_count - WORD_LIMIT
            raise UserError(
                f"{source}: the report has {self.word_count} words, and {WORD_LIMIT} are allowed: leave out"
                f" {excess} (front matter, code blocks and tables do not count)."
            )


def parse_report(text: str, source: str = "report.md") -> StudentReport:
    """Return the report in a text; `source` names it in messages.

    Raises `UserError` for a front matter that is missing, not YAML, not filled in, has an unknown key or a
    wrong value, and for a code block that does not end.
    """
    if text.replace("\r\n", "\n").strip() == REPORT_TEMPLATE.strip():
        raise UserError(
            f"{source} is still the empty template: name the layer of the cause after root_cause_layer:, give"
            " each piece of evidence a signal, a step or epoch and a value from metrics.log, then tell what"
            " you found."
        )
    matter, body_text, first_line = split_report(text, source)
    parsed = _parse_matter(matter, source)
    body = read_body(body_text, source, first_line)
    return StudentReport(
        layer=parsed.root_cause_layer,
        evidence=parsed.evidence,
        body=body.text,
        word_count=body.words,
        prose_words=body.prose_words,
        snippets=body.snippets,
        images=body.images,
    )


@lru_cache(maxsize=32)
def _parse_matter(matter: str, source: str) -> _Matter:
    """Parse once what several rules of a grader read one after the other."""
    front = parse_front_matter(matter, source)
    _refuse_empty(front, source)
    try:
        return _Matter.model_validate(front.values)
    except ValidationError as error:
        # A misspelt key is missing under its right name, too.
        problems = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
        raise UserError(_message(problems[0], front, source)) from None


def read_report_text(path: Path) -> str:
    """Return the text of a report. Raises `UserError` if it is missing, too large, or not UTF-8."""
    try:
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT + 1)
    except FileNotFoundError:
        raise UserError(f"There is no report at {path}: make exercise puts an empty one there.") from None
    if len(data) > SIZE_LIMIT:
        raise UserError(f"{path} is larger than {SIZE_LIMIT // 1024} KiB: shrink the pictures in it.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line}: not UTF-8 text: save the report as UTF-8.") from None


def read_report(path: Path) -> StudentReport:
    """Return the report in a file. Raises `UserError` as `read_report_text` and `parse_report` do."""
    return parse_report(read_report_text(path), str(path))


def _refuse_empty(front: PlainYaml, source: str) -> None:
    """Raise `UserError` for a key that waits for its value, as in the template."""
    evidence = front.values.get("evidence")
    places: list[tuple[Location, Any]] = [((key,), value) for key, value in front.values.items()]
    for index, item in enumerate(evidence if isinstance(evidence, list) else []):
        if isinstance(item, Mapping):
            places += [(("evidence", index, key), value) for key, value in item.items()]
    for location, value in places:
        key = str(location[-1])
        if value is None and key in _REMEDIES:
            raise UserError(
                f"{_where(location, front, source)}: `{key}` is not filled in yet: {_REMEDIES[key]}."
            )


_REMEDIES = {
    "root_cause_layer": f"name the layer that holds the cause ({', '.join(get_args(Area))})",
    "evidence": "cite at least one number of each run, one to a line, as PROMPT.md shows",
    "signal": "name a quantity of metrics.log, such as loss or val_accuracy",
    "step": "write the step whose number you cite, counted from 0, or take it out",
    "epoch": "write the epoch whose number you cite, counted from 0, or take it out",
    "value": "write the number that metrics.log holds there",
}


def _where(location: Location, front: PlainYaml, source: str) -> str:
    """Return file, line and, within the evidence, the number of the piece, counted from 1."""
    piece = f", evidence {location[1] + 1}" if len(location) > 1 and isinstance(location[1], int) else ""
    return f"{source}, line {front.line(location)}{piece}"


def _message(problem: ErrorDetails, front: PlainYaml, source: str) -> str:
    location = problem["loc"]
    where, key = _where(location, front, source), shown(location[-1]) if location else ""
    if problem["type"] == "extra_forbidden":
        if re.fullmatch(r"[0-9.]+", key):
            return f"{where}: a comma ends a value, so `{key}` stands alone: write numbers without commas."
        known = list(_Matter.model_fields if len(location) == 1 else Evidence.model_fields)
        return f"{where}: there is no key `{key}`: {suggestion(key, known)}"
    if problem["type"] == "missing":
        remedy = _REMEDIES.get(key, "write it as PROMPT.md shows")
        return f"{where}: `{key}` is missing: {remedy}."
    if problem["type"] == "literal_error" and isinstance(given := problem["input"], str):
        choices = list(get_args(Area)) if key == "root_cause_layer" else ["broken", "fixed"]
        return f"{where}: `{key}` is {shown(given)!r}: {suggestion(given, choices)}"
    if problem["type"] == "value_error":
        reason = str(problem["ctx"]["error"])
        given = f", not {shown(problem['input'])!r}" if isinstance(location[-1], str) else ""
        name = f"`{key}` " if isinstance(location[-1], str) else ""
        return f"{where}: {name}{reason}{given}."
    wanted = _EXPECTED.get(problem["type"], "one word")
    name = f"`{key}`" if isinstance(location[-1], str) else "it"
    return f"{where}: {name} must be {wanted}."


_EXPECTED = {
    "tuple_type": "a list, one piece of evidence to a line",
    "model_type": "of the form {run: ..., signal: ..., step: ..., value: ...}",
    "string_too_long": "the name of one signal",
}
