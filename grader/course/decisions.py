"""What an instructor decides instead of the rules: read from TOML files, kept by `grader review`, applied to scores.

Each decision is one `[[override]]` table. `grader review` appends to the file beside the reports, and every later
`grader score` applies that file; `--overrides` names another one, written by hand.
"""

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from grader.score.verdict import (
    Check,
    Criterion,
    CriterionScore,
    Flag,
    RuleVerdict,
    Scores,
    SubmissionScore,
    criterion_score,
    rescored,
)
from harness.errors import UserError
from harness.files import write_whole
from harness.plain_yaml import shown
from harness.recipe import suggestion
from harness.toml_file import read_table

_HEADER = re.compile(r"[ \t]*\[\[[ \t]*override[ \t]*\]\]")
_Number = Annotated[float, Field(allow_inf_nan=False)]
_BEGINS = "# What `grader review` decided. Every later `grader score` applies it; edit or delete entries as you like.\n"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Decision(_Strict):
    """`points` for a check, `add` to a check, or the `total` of a submission that has no checks.

    `check` is `<criterion>.<check id>`. `grader review` also notes `who` decided, `when`, and the `sha256` of the
    tarball: the decision does not hold for another tarball. `place` is where the entry stands, for messages.
    """

    submission: Annotated[str, Field(min_length=1)]
    check: str | None = None
    points: Annotated[_Number, Field(ge=0)] | None = None
    add: _Number | None = None
    total: Annotated[_Number, Field(ge=0, le=100)] | None = None
    comment: Annotated[str, Field(min_length=1)]
    who: str | None = None
    when: str | None = None
    sha256: str | None = None
    place: str

    @model_validator(mode="after")
    def _decides_one_thing(self) -> "Decision":
        if [self.points, self.add, self.total].count(None) != 2:
            raise ValueError("needs exactly one of `points`, `add` and `total`")
        if (self.check is None) != (self.total is not None):
            raise ValueError("`points` and `add` need a `check`, and `total` stands without one")
        return self

    @property
    def subject(self) -> tuple[str, str | None, str | None]:
        """What it decides: no two decisions may have the same."""
        return self.submission, self.check, self.sha256


class _File(_Strict):
    override: Annotated[tuple[Decision, ...], Field(strict=False)] = ()


def decisions_path(out: Path) -> Path:
    """Return the file that keeps what `grader review` decided: beside the reports, which are replaced as a whole."""
    return out.with_name(f"{out.name}.decisions.toml")


def all_decisions(out: Path, by_hand: Path | None) -> tuple[Decision, ...]:
    """Return the decisions that `grader review` kept for these reports, and those of a file written by hand.

    If both decide one thing, the file written by hand wins. Raises `UserError` as `load_decisions` does.
    """
    kept = decisions_path(out)
    return (load_decisions(kept) if kept.exists() else ()) + (load_decisions(by_hand) if by_hand else ())


def load_decisions(path: Path) -> tuple[Decision, ...]:
    """Return the decisions in a file, in its order.

    Raises `UserError` that names file and place if the file is missing, is not TOML, has an unknown key or a wrong
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
        decisions = _File.model_validate({**table, "override": placed}).override
    except ValidationError as error:
        raise UserError(_message(error, path, places)) from None
    _refuse_twice(decisions)
    return decisions


def keep_decision(path: Path, decision: Decision) -> None:
    """Add a decision to the end of a file, whole or not at all; the file is made if it is missing."""
    values = decision.model_dump(exclude_none=True, exclude={"place"})
    # A string or a number of JSON is one of TOML, but for the delete character.
    entry = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())
    entry = entry.replace("\x7f", "\\u007f")
    before = path.read_text(encoding="utf-8") if path.exists() else _BEGINS
    write_whole({path: f"{before.rstrip()}\n\n[[override]]\n{entry}".encode()})


def apply_decisions(scores: Scores, decisions: Sequence[Decision]) -> Scores:
    """Return the scores with the decisions on top; each check keeps what its rule said.

    Criteria and totals are added up again; a submission without open checks is graded. A decision about another
    tarball of a submission is not applied, and flagged. Raises `UserError` for a decision that matches nothing, and for
    points above what a check is worth or below 0.
    """
    by_name = {row.submission: row for row in scores.submissions}
    for decision in decisions:
        row = by_name.get(decision.submission)
        if row is None and decision.sha256 is not None:
            continue  # kept by `grader review` for a class that had it
        if row is None:
            raise UserError(
                f"{decision.place}: there is no submission {shown(decision.submission)!r}:"
                f" {_near(decision.submission, sorted(by_name))}"
            )
        if decision.sha256 not in (None, row.provenance.get("tarball_sha256")):
            by_name[row.submission] = _outdated(row, decision)
            continue
        decide = _with_total if decision.check is None else _with_check
        by_name[decision.submission] = decide(row, decision)
    return scores.model_copy(
        update={"submissions": tuple(by_name[row.submission] for row in scores.submissions)}
    )


def _outdated(row: SubmissionScore, decision: Decision) -> SubmissionScore:
    what = decision.check or "the total"
    message = f"You decided about {what} of another tarball; the decision was not applied to this one."
    return row.model_copy(update={"flags": (*row.flags, Flag(id="other tarball", message=message))})


def _near(name: str, known: Sequence[str]) -> str:
    """Return a close match, or where to look: a class is too long to list."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {shown(close[0])}?" if close else "the names are those in scores.json."


def _with_check(row: SubmissionScore, decision: Decision) -> SubmissionScore:
    known = [f"{name}.{check.id}" for name, criterion in row.criteria.items() for check in criterion.checks]
    if decision.check not in known:
        if not known:
            raise UserError(
                f"{decision.place}: {shown(row.submission, 80)} is {row.status} and has no checks:"
                " give it a `total` instead."
            )
        raise UserError(
            f"{decision.place}: there is no check {shown(decision.check)!r}: {suggestion(str(decision.check), known)}"
        )
    criteria: dict[Criterion, CriterionScore] = {
        name: criterion_score(
            tuple(
                _decided(check, decision) if f"{name}.{check.id}" == decision.check else check
                for check in criterion.checks
            )
        )
        for name, criterion in row.criteria.items()
    }
    return rescored(row, criteria)


def _decided(check: Check, decision: Decision) -> Check:
    """Return the check with the instructor's points."""
    if decision.points is not None:
        points = decision.points
    elif check.points is None:
        raise UserError(
            f"{decision.place}: {decision.check} could not be judged, so there is nothing to add to:"
            " set `points` instead."
        )
    else:
        points = check.points + (decision.add or 0)
    points = round(points, 2)
    if not 0 <= points <= check.max:
        raise UserError(
            f"{decision.place}: {decision.check} would have {points:g} points, and is worth 0 to {check.max:g}:"
            " choose a number between them."
        )
    whole = points == check.max
    return check.model_copy(
        update={
            "outcome": "passed" if whole else "failed",
            "points": points,
            "reason": f"The instructor decided: {points:g} of {check.max:g}.",
            "remedy": "" if whole else check.remedy,
            "rule": check.rule
            or RuleVerdict(outcome=check.outcome, points=check.points, reason=check.reason),
            "comment": decision.comment,
        }
    )


def _with_total(row: SubmissionScore, decision: Decision) -> SubmissionScore:
    if row.criteria:
        raise UserError(
            f"{decision.place}: {shown(row.submission, 80)} has checks, and its total is their sum:"
            " set `points` of a `check` instead."
        )
    decided = f"The instructor decided: {decision.total:g} of 100. {decision.comment}"
    reason = f"{decided} (The grader: {row.status}. {row.reason})"
    return row.model_copy(update={"status": "graded", "total": decision.total, "reason": reason})


def _places(path: Path, text: str, count: int) -> list[str]:
    """Return a place for each decision: file, number, and the line of its header if that is certain."""
    lines = [number for number, line in enumerate(text.split("\n"), start=1) if _HEADER.match(line)]
    if len(lines) != count:
        return [f"{path}, override {index + 1}" for index in range(count)]
    return [f"{path}, override {index + 1} (line {line})" for index, line in enumerate(lines)]


def _refuse_twice(decisions: Sequence[Decision]) -> None:
    seen: dict[tuple[str, str | None, str | None], Decision] = {}
    for decision in decisions:
        before = seen.get(decision.subject)
        if before is not None:
            what = decision.check or "the total"
            raise UserError(
                f"{decision.place}: {what} of {shown(decision.submission, 80)} is already decided by"
                f" {before.place.rpartition(', ')[2]}: keep one of them."
            )
        seen[decision.subject] = decision


def _message(error: ValidationError, path: Path, places: Sequence[str]) -> str:
    # A misspelt key is also missing under its right name.
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
        known = [name for name in Decision.model_fields if name != "place"]
        return f"{place}: there is no key {key!r}: {suggestion(key, known)}"
    if problem["type"] == "missing":
        return f"{place}: {key!r} is missing: every override needs a submission and a comment."
    return f"{place}: {key}: {_cause(problem)}."


def _cause(problem: Mapping[str, object]) -> str:
    return str(problem["msg"]).removeprefix("Value error, ")
