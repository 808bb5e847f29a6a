"""`overrides.toml`: what an instructor decides in place of the rules, and its place on top of the scores."""

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from grader.score.verdict import (
    Check,
    Criterion,
    CriterionScore,
    RuleVerdict,
    Scores,
    SubmissionScore,
    criterion_score,
    rescored,
)
from grader.toml_file import read_table
from harness.errors import UserError
from harness.plain_yaml import shown
from harness.recipe import suggestion

_HEADER = re.compile(r"[ \t]*\[\[[ \t]*override[ \t]*\]\]")
_Number = Annotated[float, Field(allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Override(_Strict):
    """One decision: `points` for a check, `add` to a check, or the `total` of what has no checks.

    `check` is `<criterion>.<check id>`. `place` says where in the file it stands, for messages.
    """

    submission: Annotated[str, Field(min_length=1)]
    check: str | None = None
    points: Annotated[_Number, Field(ge=0)] | None = None
    add: _Number | None = None
    total: Annotated[_Number, Field(ge=0, le=100)] | None = None
    comment: Annotated[str, Field(min_length=1)]
    place: str

    @model_validator(mode="after")
    def _decides_one_thing(self) -> "Override":
        if [self.points, self.add, self.total].count(None) != 2:
            raise ValueError("needs exactly one of `points`, `add` and `total`")
        if (self.check is None) != (self.total is not None):
            raise ValueError("`points` and `add` need a `check`, and `total` stands without one")
        return self


class _File(_Strict):
    override: Annotated[tuple[Override, ...], Field(strict=False)] = ()


def load_overrides(path: Path) -> tuple[Override, ...]:
    """Return the overrides in a file, in its order.

    Raises `UserError` that names file and place where it is missing, not TOML, has an unknown key or a wrong
    value, or decides one thing twice.
    """
    try:
        table = read_table(path)
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"There is no file {path}: check the name after --overrides.") from None
    entries = table.get("override", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UserError(f"{path}: begin each override with a line [[override]], in double brackets.")
    places = _places(path, text, len(entries))
    for place, entry in zip(places, entries, strict=True):
        if "place" in entry:
            raise UserError(f"{place}: there is no key `place`: take it out.")
    placed = [{**entry, "place": place} for place, entry in zip(places, entries, strict=True)]
    try:
        overrides = _File.model_validate({**table, "override": placed}).override
    except ValidationError as error:
        raise UserError(_message(error, path, places)) from None
    _refuse_twice(overrides)
    return overrides


def apply_overrides(scores: Scores, overrides: Sequence[Override]) -> Scores:
    """Return the scores with the overrides on top; each check keeps what its rule said.

    Criteria and totals are added up again, and a submission that has no open check left is graded. Raises
    `UserError` for an override that matches nothing, and for points above what a check is worth or below 0.
    """
    by_name = {row.submission: row for row in scores.submissions}
    for override in overrides:
        row = by_name.get(override.submission)
        if row is None:
            raise UserError(
                f"{override.place}: there is no submission {shown(override.submission)!r}:"
                f" {_near(override.submission, sorted(by_name))}"
            )
        decide = _with_total if override.check is None else _with_check
        by_name[override.submission] = decide(row, override)
    return scores.model_copy(
        update={"submissions": tuple(by_name[row.submission] for row in scores.submissions)}
    )


def _near(name: str, known: Sequence[str]) -> str:
    """Return a close match, or where to look: a class is too long to be listed."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {shown(close[0])}?" if close else "the names are those in scores.json."


def _with_check(row: SubmissionScore, override: Override) -> SubmissionScore:
    known = [f"{name}.{check.id}" for name, criterion in row.criteria.items() for check in criterion.checks]
    if override.check not in known:
        if not known:
            raise UserError(
                f"{override.place}: {shown(row.submission, 80)} is {row.status} and has no checks:"
                " give it a `total` instead."
            )
        raise UserError(
            f"{override.place}: there is no check {shown(override.check)!r}: {suggestion(str(override.check), known)}"
        )
    criteria: dict[Criterion, CriterionScore] = {
        name: criterion_score(
            tuple(
                _decided(check, override) if f"{name}.{check.id}" == override.check else check
                for check in criterion.checks
            )
        )
        for name, criterion in row.criteria.items()
    }
    return rescored(row, criteria)


def _decided(check: Check, override: Override) -> Check:
    """Return the check with the instructor's points."""
    if override.points is not None:
        points = override.points
    elif check.points is None:
        raise UserError(
            f"{override.place}: {override.check} could not be judged, so there is nothing to add to:"
            " set `points` instead."
        )
    else:
        points = check.points + (override.add or 0)
    points = round(points, 2)
    if not 0 <= points <= check.max:
        raise UserError(
            f"{override.place}: {override.check} would have {points:g} points, and is worth 0 to {check.max:g}:"
            " choose a number between them."
        )
    whole = points == check.max
    return check.model_copy(
        update={
            "outcome": "passed" if whole else "failed",
            "points": points,
            "reason": f"The instructor decided: {points:g} of {check.max:g}.",
            "remedy": "" if whole else check.remedy,
            "rule": RuleVerdict(outcome=check.outcome, points=check.points, reason=check.reason),
            "comment": override.comment,
        }
    )


def _with_total(row: SubmissionScore, override: Override) -> SubmissionScore:
    if row.criteria:
        raise UserError(
            f"{override.place}: {shown(row.submission, 80)} has checks, and its total is their sum:"
            " set `points` of a `check` instead."
        )
    decided = f"The instructor decided: {override.total:g} of 100. {override.comment}"
    reason = f"{decided} (The grader: {row.status}. {row.reason})"
    return row.model_copy(update={"status": "graded", "total": override.total, "reason": reason})


def _places(path: Path, text: str, count: int) -> list[str]:
    """Return a place for each override: file, number, and the line of its header where that is certain."""
    lines = [number for number, line in enumerate(text.split("\n"), start=1) if _HEADER.match(line)]
    if len(lines) != count:
        return [f"{path}, override {index + 1}" for index in range(count)]
    return [f"{path}, override {index + 1} (line {line})" for index, line in enumerate(lines)]


def _refuse_twice(overrides: Sequence[Override]) -> None:
    seen: dict[tuple[str, str | None], Override] = {}
    for override in overrides:
        key = (override.submission, override.check)
        if key in seen:
            what = override.check or "the total"
            raise UserError(
                f"{override.place}: {what} of {shown(override.submission, 80)} is already decided by"
                f" {seen[key].place.rpartition(', ')[2]}: keep one of them."
            )
        seen[key] = override


def _message(error: ValidationError, path: Path, places: Sequence[str]) -> str:
    # A misspelt key is missing under its right name, too.
    problems = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    problem = problems[0]
    location = problem["loc"]
    if len(location) == 1:
        return f"{path}: there is no key {shown(location[0])!r}: {suggestion(str(location[0]), ['override'])}"
    place = places[location[1]] if isinstance(location[1], int) else str(path)
    if len(location) == 2:
        return f"{place}: {_cause(problem)}."
    key = shown(location[2])
    if problem["type"] == "extra_forbidden":
        known = [name for name in Override.model_fields if name != "place"]
        return f"{place}: there is no key {key!r}: {suggestion(key, known)}"
    if problem["type"] == "missing":
        return f"{place}: {key!r} is missing: every override needs a submission and a comment."
    return f"{place}: {key}: {_cause(problem)}."


def _cause(problem: Mapping[str, object]) -> str:
    return str(problem["msg"]).removeprefix("Value error, ")
