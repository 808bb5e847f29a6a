"""What an instructor decides instead of the rules: one TOML file beside the reports, applied by each `grader score`.

Each decision is one `[[override]]` table. `grader review` appends to the file; an instructor can also edit it.
"""

import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, model_validator

from grader.score.verdict import (
    Check,
    CriterionScore,
    Flag,
    RuleVerdict,
    Scores,
    SubmissionScore,
    criterion_score,
    rescored,
)
from harness.errors import UserError, printable
from harness.files import write_whole
from harness.recipe import suggestion
from harness.toml_file import StrictModel, read_table

_Text = Annotated[str, Field(min_length=1)]
_BEGINS = "# What you decided. Every `grader score` applies it; edit or delete entries as you like.\n"


class Decision(StrictModel):
    """`points` for a check, or the `total` of a submission that has no checks.

    `check` is `<criterion>.<check id>`. `grader review` also notes `who` decided, `when`, and the `sha256` of the
    tarball, if it was scored: the decision does not hold for another tarball.
    """

    submission: _Text
    check: _Text | None = None
    points: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    total: Annotated[float, Field(ge=0, le=100)] | None = None
    comment: _Text
    who: str | None = None
    when: str | None = None
    sha256: str | None = None

    @model_validator(mode="after")
    def _decides_one_thing(self) -> "Decision":
        if (self.check is None, self.points is None, self.total is None) not in (
            (False, False, True),
            (True, True, False),
        ):
            raise ValueError("needs a `check` and its `points`, or a `total` alone")
        return self

    @property
    def subject(self) -> tuple[str, str | None, str | None]:
        """What it decides: no two decisions may have the same."""
        return self.submission, self.check, self.sha256


def decisions_path(out: Path) -> Path:
    """Return the file of the decisions: beside the reports, which are replaced as a whole."""
    return out.with_name(f"{out.name}.decisions.toml")


def load_decisions(out: Path) -> tuple[Decision, ...]:
    """Return the decisions beside these reports, in the order of their file; none if there is no file.

    Raises `UserError` that names file and entry if the file is not TOML, has an unknown key or a wrong value, or
    decides one thing twice.
    """
    path = decisions_path(out)
    table = read_table(path) if path.exists() else {}
    entries = table.pop("override", [])
    if table or not isinstance(entries, list):
        raise UserError(
            f"{path}: begin each decision with a line [[override]], and write nothing else above it."
        )
    decisions: dict[tuple[str, str | None, str | None], Decision] = {}
    for number, entry in enumerate(entries, start=1):
        place = f"{path}, override {number}"
        try:
            decision = Decision.model_validate(entry)
        except ValidationError as error:
            raise UserError(f"{place}: {_problem(error)}") from None
        if decisions.setdefault(decision.subject, decision) is not decision:
            what = decision.check or "the total"
            raise UserError(
                f"{place}: {printable(what)} of {printable(decision.submission)} is decided twice: keep one entry."
            )
    return tuple(decisions.values())


def keep_decision(path: Path, decision: Decision) -> None:
    """Add a decision to the end of a file, whole or not at all; the file is made if it is missing."""
    values = decision.model_dump(exclude_none=True)
    # A string or a number of JSON is one of TOML, but for the delete character.
    entry = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())
    entry = entry.replace("\x7f", "\\u007f")
    before = path.read_text(encoding="utf-8") if path.exists() else _BEGINS
    write_whole({path: f"{before.rstrip()}\n\n[[override]]\n{entry}".encode()})


def apply_decisions(scores: Scores, decisions: Sequence[Decision]) -> Scores:
    """Return the scores with the decisions applied; each check keeps the rule's verdict.

    Criteria and totals are added up again; a submission without open checks is graded. What `grader review` kept is not
    applied, and flagged, if it was decided about another tarball, or before its checks could be judged. Raises
    `UserError` for a decision that matches nothing, and for points above what a check is worth.
    """
    by_name = {row.submission: row for row in scores.submissions}
    for decision in decisions:
        row = by_name.get(decision.submission)
        reviewed = decision.when is not None
        if row is None and reviewed:
            continue  # decided when the class had it
        if row is None:
            close = difflib.get_close_matches(decision.submission, by_name, n=1)
            hint = f"did you mean {printable(close[0])}?" if close else "the names are those in scores.json."
            raise _unfit(decision, f"there is no such submission: {hint}")
        other_tarball = decision.sha256 not in (None, row.provenance.get("tarball_sha256"))
        if other_tarball or (reviewed and decision.check is None and row.criteria):
            what = decision.check or "the total"
            message = (
                f"You decided about {what} before this tarball was scored; the decision was not applied."
            )
            by_name[row.submission] = row.model_copy(
                update={"flags": (*row.flags, Flag(id="old_decision", message=message))}
            )
        else:
            decide = _with_total if decision.check is None else _with_check
            by_name[row.submission] = decide(row, decision)
    return scores.model_copy(
        update={"submissions": tuple(by_name[row.submission] for row in scores.submissions)}
    )


def _with_check(row: SubmissionScore, decision: Decision) -> SubmissionScore:
    known = [f"{name}.{check.id}" for name, criterion in row.criteria.items() for check in criterion.checks]
    if not known:
        raise _unfit(decision, f"it is {row.status} and has no checks: give it a `total` instead.")
    if decision.check not in known:
        hint = suggestion(str(decision.check), known)
        raise _unfit(decision, f"there is no check {printable(decision.check)!r}: {hint}")

    def decided(name: str, criterion: CriterionScore) -> CriterionScore:
        return criterion_score(
            tuple(
                _decided(check, decision) if f"{name}.{check.id}" == decision.check else check
                for check in criterion.checks
            )
        )

    return rescored(row, {name: decided(name, criterion) for name, criterion in row.criteria.items()})


def _decided(check: Check, decision: Decision) -> Check:
    """Return the check with the instructor's points."""
    points = round(decision.points or 0, 2)
    if points > check.max:
        raise _unfit(decision, f"{decision.check} is worth 0 to {check.max:g}, not {points:g}.")
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
        raise _unfit(
            decision, "it has checks, and its total is their sum: set `points` of a `check` instead."
        )
    decided = f"The instructor decided: {decision.total:g} of 100. {decision.comment}"
    reason = f"{decided} (The grader: {row.status}. {row.reason})"
    return row.model_copy(update={"status": "graded", "total": decision.total, "reason": reason})


def _unfit(decision: Decision, problem: str) -> UserError:
    return UserError(f"Your decision about {printable(decision.submission)} does not fit: {problem}")


def _problem(error: ValidationError) -> str:
    """Return the first problem as a sentence; a misspelt key comes before the one that is missing for it."""
    problem = min(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    key = printable(problem["loc"][0]) if problem["loc"] else ""
    if problem["type"] == "extra_forbidden":
        return f"there is no key {key!r}: {suggestion(key, list(Decision.model_fields))}"
    if problem["type"] == "missing":
        return f"{key!r} is missing: every override needs a submission and a comment."
    words = problem["msg"].removeprefix("Value error, ")
    return f"{key}: {words}." if key else f"{words}."
