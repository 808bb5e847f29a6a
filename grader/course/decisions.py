"""What an instructor decides instead of the rules: one TOML file beside the reports, applied by each `grader score`.

Each decision is one `[[override]]` table. `grader review` appends to the file; an instructor can also edit it.
"""

import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from grader.score.identity import decided_student
from grader.score.verdict import Check, Flag, RuleVerdict, Scores, SubmissionScore, criterion_score, rescored
from harness.errors import UserError, printable
from harness.files import write_whole
from harness.recipe import suggestion
from harness.toml_file import StrictModel, read_record

_Text = Annotated[str, Field(min_length=1)]
_BEGINS = "# What you decided. Every `grader score` applies it; edit or delete entries as you like.\n"


class Decision(StrictModel):
    """`points` for a check, the `total` of a submission that has no checks, or the `student` whose it is.

    `check` is `<criterion>.<check id>`. `grader review` also notes `who` decided, `when`, and the `sha256` of the
    tarball, if it was scored: the decision does not hold for another tarball.
    """

    submission: str
    check: _Text | None = None
    points: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    total: Annotated[float, Field(ge=0, le=100)] | None = None
    student: _Text | None = None
    comment: _Text
    who: str | None = None
    when: str | None = None
    sha256: str | None = None

    @model_validator(mode="after")
    def _decides_one_thing(self) -> "Decision":
        given = {name for name in ("check", "points", "total", "student") if getattr(self, name) is not None}
        if given not in ({"check", "points"}, {"total"}, {"student"}):
            raise ValueError("needs a `check` and its `points`, or a `total` alone, or a `student` alone")
        return self

    @property
    def what(self) -> str:
        """What it decides: a check, the total, or the student."""
        return self.check or ("the student" if self.student else "the total")

    @property
    def subject(self) -> tuple[str, str, str | None]:
        """What it decides about which tarball: no two decisions may have the same."""
        return self.submission, self.what, self.sha256


class _Decisions(StrictModel):
    override: Annotated[tuple[Decision, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _decides_once(self) -> "_Decisions":
        subjects = [item.subject for item in self.override]
        for item in self.override:
            if subjects.count(item.subject) > 1:
                raise ValueError(
                    f"{printable(item.what)} of {printable(item.submission)} is decided twice: keep one entry"
                )
        return self


def decisions_path(out: Path) -> Path:
    """Return the file of the decisions: beside the reports, which are replaced as a whole."""
    return out.with_name(f"{out.name}.decisions.toml")


def load_decisions(out: Path) -> tuple[Decision, ...]:
    """Return the decisions beside these reports, in the order of their file; none if there is no file.

    Raises `UserError` that names file and entry, counted from 0, if the file is not TOML, has an unknown key or a wrong
    value, or decides one thing twice.
    """
    path = decisions_path(out)
    return read_record(path, _Decisions).override if path.exists() else ()


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
    rows = {row.submission: row for row in scores.submissions}
    for decision in decisions:
        row, reviewed = rows.get(decision.submission), decision.when is not None
        if row is not None:
            rows[row.submission] = _applied(row, decision, reviewed)
        elif not reviewed:  # else it was decided when the class had it
            close = difflib.get_close_matches(decision.submission, rows, n=1)
            hint = f"did you mean {printable(close[0])}?" if close else "the names are those in scores.json."
            raise _unfit(decision, f"there is no such submission: {hint}")
    return scores.model_copy(update={"submissions": tuple(rows.values())})


def _applied(row: SubmissionScore, decision: Decision, reviewed: bool) -> SubmissionScore:
    other_tarball = decision.sha256 not in (None, row.provenance.get("tarball_sha256"))
    if other_tarball or (reviewed and decision.total is not None and row.criteria):
        message = f"You decided about {decision.what} before this tarball was scored; the decision was not applied."
        return row.model_copy(update={"flags": (*row.flags, Flag(id="old_decision", message=message))})
    if decision.student is not None:
        return decided_student(row, decision.student, decision.comment)
    return _with_total(row, decision) if decision.check is None else _with_check(row, decision.check, decision)


def _with_check(row: SubmissionScore, name: str, decision: Decision) -> SubmissionScore:
    known = [f"{name}.{check.id}" for name, criterion in row.criteria.items() for check in criterion.checks]
    if not known:
        raise _unfit(decision, f"it is {row.status} and has no checks: give it a `total` instead.")
    if name not in known:
        raise _unfit(decision, f"there is no check {printable(name)!r}: {suggestion(name, known)}")
    criterion, _, id = name.partition(".")
    checks = row.criteria[criterion].checks
    decided = criterion_score(tuple(_decided(one, decision) if one.id == id else one for one in checks))
    return rescored(row, {**row.criteria, criterion: decided})


def _decided(check: Check, decision: Decision) -> Check:
    """Return the check with the instructor's points."""
    points = round(decision.points or 0, 2)
    if points > check.max:
        raise _unfit(decision, f"{decision.check} is worth 0 to {check.max:g}, not {points:g}.")
    whole = points == check.max
    rule = RuleVerdict(outcome=check.outcome, points=check.points, reason=check.reason)
    return check.model_copy(
        update={
            "outcome": "passed" if whole else "failed",
            "points": points,
            "reason": f"The instructor decided: {points:g} of {check.max:g}.",
            "remedy": "" if whole else check.remedy,
            "rule": check.rule or rule,
            "comment": decision.comment,
        }
    )


def _with_total(row: SubmissionScore, decision: Decision) -> SubmissionScore:
    if row.criteria:
        raise _unfit(decision, "it has checks, and its total is their sum: set `points` of a `check` instead.")
    decided = f"The instructor decided: {decision.total:g} of 100. {decision.comment}"
    reason = f"{decided} (The grader: {row.status}. {row.reason})"
    return row.model_copy(update={"status": "graded", "total": decision.total, "reason": reason})


def _unfit(decision: Decision, problem: str) -> UserError:
    return UserError(f"Your decision about {printable(decision.submission)} does not fit: {problem}")
