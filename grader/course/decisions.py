"""Read, store and apply the instructor's decisions, which are in a TOML file next to the reports.

Each decision is one `[[override]]` table. `grader review` appends decisions to the file, and an instructor can edit the
file. `grader score` applies the last decision about each item. Earlier decisions are kept as the history of the item.
"""

import difflib
import json
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from grader.private import path_beside, write_private
from grader.report.text import clip, points
from grader.score.identity import decided_student
from grader.score.verdict import (
    BY_RULE,
    Change,
    Decided,
    RubricItem,
    RuleTotal,
    RuleVerdict,
    Scores,
    SubmissionScore,
    criterion_score,
    with_criteria,
)
from grader.session import lock_folder
from harness.errors import UserError, printable, suggestion
from harness.formats.toml_file import StrictModel, read_record
from harness.recipes.personal import login

TOTAL = "the total"
_NonEmptyText = Annotated[str, Field(min_length=1)]
_BEGINS = "# Your decisions, which every `grader score` applies. If several are about one item, the last one counts.\n"
_FORMS = (
    "needs exactly one of `points`, `add` and `withdrawn` if it has a `check`, and exactly one of `total`, `add`,"
    " `withdrawn` and `student` if it has no `check`"
)
_REASONS = 4  # the maximum number of reasons in a line about a change
_REASON = 200  # the maximum number of characters of a reason


class Decision(StrictModel):
    """A decision about one item, about the total, or about the student to whom a submission belongs.

    check: the item, as `<criterion>.<item id>`; None for the total or the student. points, total: the new points of the
    item, or the new total. add: the points to add (or, if negative, to subtract). withdrawn: restores the points that
    the grader gave. student: the login of the student to whom the submission belongs. who, when: the person and the
    time of the decision. sha256: the hash of the tarball; "" if the tarball could not be read. If it is given, the
    decision does not apply to another tarball.
    """

    submission: str
    check: _NonEmptyText | None = None
    points: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    add: Annotated[float, Field(ge=-1000, le=1000)] | None = None
    total: Annotated[float, Field(ge=0, le=100)] | None = None
    withdrawn: Literal[True] | None = None
    student: _NonEmptyText | None = None
    comment: _NonEmptyText
    who: str | None = None
    when: str | None = None
    sha256: str | None = None

    @model_validator(mode="after")
    def _decides_one_thing(self) -> "Decision":
        verbs = ("points", "add", "withdrawn") if self.check else ("total", "add", "withdrawn", "student")
        given = {name for name in ("points", "add", "total", "withdrawn", "student") if getattr(self, name) is not None}
        if len(given) != 1 or not given <= set(verbs):
            raise ValueError(_FORMS)
        return self

    @property
    def about(self) -> str:
        """What the decision is about: the name of an item, "the total" or "the student"."""
        return self.check or ("the student" if self.student else TOTAL)

    @property
    def says(self) -> str:
        """The content of the decision, in a few words."""
        if self.student is not None:
            return f"the submission belongs to {printable(self.student)}"
        if self.withdrawn:
            return "withdrawn: the original points count again"
        return f"{self.add:+g} points" if self.add is not None else f"{self.points or self.total or 0:g} points"

    def fits(self, row: SubmissionScore) -> bool:
        """Return whether the decision is about the tarball that was scored in this row."""
        return self.sha256 in (None, tarball_of(row))


class _Decisions(StrictModel):
    override: Annotated[tuple[Decision, ...], Field(strict=False)] = ()


def tarball_of(row: SubmissionScore) -> str:
    """Return the SHA-256 of the tarball that was scored in this row, or "" if the tarball could not be read."""
    return str(row.provenance.get("tarball_sha256") or "")


def decisions_path(out: Path) -> Path:
    """Return the path of the file with the decisions. It is not in the reports, because each scoring replaces them."""
    return path_beside(out, "decisions.toml")


def load_decisions(out: Path) -> tuple[Decision, ...]:
    """Return the decisions about these reports, in the order of their file; () if there is no file.

    If the file is not TOML, or has an unknown key or a bad value, raises a `UserError` that names the file and the
    entry.
    """
    path = decisions_path(out)
    return read_record(path, _Decisions).override if path.exists() else ()


class DecidedMeanwhile(UserError):
    """Raised if somebody else has decided an item while the instructor looked at it."""


def keep_decision(out: Path, decision: Decision, *, after: int | None = None) -> None:
    """Append a decision to the file, completely or not at all. A lock lets only one process write at a time.

    after: the number of decisions about the same item that the instructor has seen. Raises `DecidedMeanwhile` if the
    number is different now, and `UserError` if the file cannot be read. After an error, the file is unchanged.
    """
    path = decisions_path(out)
    values = decision.model_dump(exclude_none=True)
    # A string, a number or `true` in JSON is also valid TOML, except that TOML forbids the character DEL in strings.
    entry = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())
    entry = entry.replace("\x7f", "\\u007f")
    with lock_folder(path.parent, wait=True):
        earlier = [one for one in load_decisions(out) if _target_of(one) == _target_of(decision)]
        if after is not None and len(earlier) != after:
            raise DecidedMeanwhile(_meanwhile(earlier))
        before = path.read_text(encoding="utf-8") if path.exists() else _BEGINS
        text = f"{before.rstrip()}\n\n[[override]]\n{entry}"
        try:
            tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise UserError(f"{path}: write each entry as an [[override]] table, not as a list ({error}).") from None
        write_private(path, text.encode())


def _target_of(decision: Decision) -> tuple[str, str]:
    return decision.submission, decision.about


def _meanwhile(entries: Sequence[Decision]) -> str:
    """Return sentences about the decision that somebody else has made."""
    if not entries:
        return "The earlier decisions about this item have disappeared from the file."
    last = entries[-1]
    who = printable(last.who) if last.who else "Somebody"
    return f"{who} has made another decision in the meantime: {last.says}. {printable(last.comment, 600)}"


def entries_about(decisions: Sequence[Decision], submission: str, about: str) -> int:
    """Return the number of decisions about an item, including decisions about other tarballs."""
    return sum(_target_of(one) == (submission, about) for one in decisions)


def decisions_about(decisions: Sequence[Decision], row: SubmissionScore, about: str) -> list[Decision]:
    """Return the decisions about an item that are about the scored tarball. The last of these decisions counts."""
    return [one for one in decisions if (one.submission, one.about) == (row.submission, about) and one.fits(row)]


def apply_decisions(scores: Scores, decisions: Sequence[Decision]) -> Scores:
    """Return the scores with the decisions applied, and with the state of each decision.

    Points of criteria and totals are recomputed. A submission without open items gets the status `graded`. Each decided
    item or total also keeps the points that the grader gave, so that applying the decisions twice changes nothing. If a
    decision does not fit (another tarball, an unknown submission or item, too many points), it is kept, but not
    applied.
    """
    rows = {row.submission: _without_decisions(row) for row in scores.submissions}
    things: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, decision in enumerate(decisions):
        things[decision.submission, decision.about].append(place)
    problems: dict[int, str] = {}  # for each last decision about an item: why it does not fit, or ""
    for (name, _), places in sorted(things.items(), key=lambda item: item[0][1] == TOTAL):
        row = rows.get(name)
        place = next((one for one in reversed(places) if row and decisions[one].fits(row)), places[-1])
        try:
            rows[name] = _decided_row(row, decisions[place], rows)
            problems[place] = ""
        except UserError as problem:
            problems[place] = str(problem)
    noted = tuple(_note_decision(one, problems.get(place)) for place, one in enumerate(decisions))
    return replace(scores, submissions=tuple(rows.values()), decisions=noted)


def _note_decision(decision: Decision, problem: str | None) -> Decided:
    """Return a decision with its state, for the history of the item.

    problem: "" if the decision is applied; None if a later decision replaces it; otherwise the reason why it does not
    fit.
    """
    state: Literal["holds", "replaced", "withdrawn", "not applied"] = "withdrawn" if decision.withdrawn else "holds"
    if problem is None:
        state = "replaced"
    elif problem and not decision.withdrawn:
        state = "not applied"
    return Decided(
        submission=decision.submission,
        about=decision.about,
        says=decision.says,
        comment=decision.comment,
        who=decision.who or "",
        when=decision.when or "",
        state=state,
        why=problem or "" if state == "not applied" else "",
    )


def _without_decisions(row: SubmissionScore) -> SubmissionScore:
    """Return the row with the points that the grader gave, without decisions and without the deduction for lateness."""
    if row.late is not None and row.total is not None:
        row = replace(row, total=round(row.total + row.late.cost, 2), late=None)
    if row.rule is not None:
        row = replace(row, status=row.rule.status, total=row.rule.total, reason=row.rule.reason, rule=None)
        row = with_criteria(row, row.criteria) if row.untimed else row
    if not any(check.rule for criterion in row.criteria.values() for check in criterion.checks):
        return row
    criteria = {
        name: criterion_score(tuple(_check_by_rule(check) for check in criterion.checks))
        for name, criterion in row.criteria.items()
    }
    return with_criteria(row, criteria)


def _check_by_rule(check: RubricItem) -> RubricItem:
    return replace(check, **asdict(check.rule), rule=None, comment="") if check.rule else check


def _decided_row(row: SubmissionScore | None, decision: Decision, names: Mapping[str, object]) -> SubmissionScore:
    """Return the row with the decision applied. Raises `UserError` if the decision does not fit the row."""
    if row is None:
        close = difflib.get_close_matches(decision.submission, names, n=1)
        hint = f"did you mean {printable(close[0])}?" if close else "use a name from scores.json."
        raise UserError(f"There is no such submission: {hint}")
    if not decision.fits(row):
        raise UserError("The decision is about another tarball.")
    if decision.student is not None:
        return decided_student(row, decision.student, decision.comment)
    return _with_total(row, decision) if decision.check is None else _with_check(row, decision.check, decision)


def _with_check(row: SubmissionScore, name: str, decision: Decision) -> SubmissionScore:
    known = [f"{name}.{check.id}" for name, criterion in row.criteria.items() for check in criterion.checks]
    if not known:
        raise UserError(f"The submission is {row.status} and has no items: decide the total instead.")
    if name not in known:
        raise UserError(f"There is no item {printable(name)!r}: {suggestion(name, known)}")
    if decision.withdrawn:
        return row
    criterion, _, id = name.partition(".")
    checks = row.criteria[criterion].checks
    decided = criterion_score(tuple(_apply_to_check(one, decision) if one.id == id else one for one in checks))
    return with_criteria(row, {**row.criteria, criterion: decided})


def _apply_to_check(check: RubricItem, decision: Decision) -> RubricItem:
    """Return the item with the instructor's points."""
    given, added = decision.points, ""
    if decision.add is not None:
        if check.points is None:
            raise UserError("The item is open, so points cannot be added: give points without a sign.")
        given, added = check.points + decision.add, f" ({points(check.points)} by the rules, {decision.add:+g})"
    given = round(given or 0.0, 2)
    if given > check.max:
        raise UserError(
            f"{decision.check} has at most {points(check.max)} points, not {points(given)}: change the total instead."
        )
    whole = given == check.max
    return replace(
        check,
        outcome="passed" if whole else "failed",
        points=given,
        reason=f"The instructor decided: {points(given)} of {points(check.max)}{added}.",
        remedy="" if whole else check.remedy,
        rule=RuleVerdict(outcome=check.outcome, points=check.points, reason=check.reason),
        comment=decision.comment,
    )


def _with_total(row: SubmissionScore, decision: Decision) -> SubmissionScore:
    if decision.withdrawn:
        return row
    total, added = decision.total, ""
    if decision.add is not None:
        if row.total is None:
            raise UserError("There is no total yet: decide the open items, or give a total without a sign.")
        total, added = max(row.total + decision.add, 0.0), f" ({decision.add:+g})"
    total = round(total or 0.0, 2)
    decided = f"The instructor decided: {points(total)} of 100{added}. {decision.comment}"
    by_rule = f"{row.status}. {row.reason}" if row.reason else f"{points(row.total)} of 100."
    return replace(
        row,
        status="graded",
        total=total,
        reason=f"{decided}{BY_RULE}{by_rule})",
        rule=RuleTotal(status=row.status, total=row.total, reason=row.reason, added=decision.add),
    )


# --- What changed ---


def changed_scores(earlier: Iterable[SubmissionScore], scores: Scores) -> tuple[Change, ...]:
    """Return the changes since the previous scoring: different totals, new submissions and missing submissions.

    earlier: the rows of the previous scoring; if there are none, there are no changes. If only the name of a file is
    different, that is not a change.
    """
    before = {row.submission: _snapshot_row(row) for row in earlier}
    now = {row.submission: row for row in scores.submissions}
    gone = {name: one for name, one in before.items() if name not in now and one.is_there}
    moved = {one.tarball: name for name, one in gone.items() if one.tarball}
    expected = {_work_of(row): row.status for row in now.values() if not row.is_there}
    handed_in = {_work_of(row) for row in now.values() if row.is_there}
    lost = {one.work for one in gone.values()}
    missed = {one.work: one.figures[TOTAL][0] for one in before.values() if not one.is_there}
    found: list[Change] = []

    def note(name: str, old: str, new: str, why: str) -> None:
        found.append(Change(submission=name, before=old, after=new, why=why))

    for name, row in now.items() if before else ():
        after = _figures(row)
        total = after[TOTAL][0]
        earlier_name = name if name in before else moved.get(tarball_of(row), "")
        if earlier_name:
            gone.pop(earlier_name, None)
            figures = before[earlier_name].figures
            if figures[TOTAL][0] != total:
                # If the row has no total, the reason of the row explains why.
                why = clip(row.reason, _REASON) if row.total is None and row.reason else _why(figures, after)
                note(name, figures[TOTAL][0], total, why)
        elif row.is_there:
            note(name, missed.get(_work_of(row), "new"), total, "handed in since then")
        elif _work_of(row) not in lost:
            note(name, missed.get(_work_of(row), "not expected"), total, "the student, the case or the excuse is new")
    for name, one in gone.items():
        after_all = expected.get(one.work, "gone")
        note(name, one.figures[TOTAL][0], after_all, "the file is not there any more")
    for name, one in before.items():
        if not one.is_there and name not in now and one.work not in {*handed_in, *expected}:
            note(name, one.figures[TOTAL][0], "not expected", "the student or the case is not in the course any more")
    return tuple(sorted(found, key=lambda change: change.submission))


@dataclass(frozen=True)
class _NotedBefore:
    """The values of an earlier row that are compared with the current row.

    figures: the result of `_figures`. tarball: the hash of the tarball. work: the student's login and the exercise.
    """

    figures: Mapping[str, tuple[str, bool]]
    tarball: str
    work: tuple[str, str]
    is_there: bool


def _snapshot_row(row: SubmissionScore) -> _NotedBefore:
    return _NotedBefore(_figures(row), tarball_of(row), _work_of(row), row.is_there)


def _work_of(row: SubmissionScore) -> tuple[str, str]:
    return login(row.student), row.recipe


def _figures(row: SubmissionScore) -> dict[str, tuple[str, bool]]:
    """Return the values of a row that are compared to find changes, such as the total and the points of each item.

    The keys are the names of the values. Each entry is a pair: the value as text, and whether the instructor decided
    it.
    """
    total = row.status if row.total is None else points(row.total)
    return {
        TOTAL: (f"{total}, does not count" if row.not_counting else total, row.rule is not None),
        "whether it counts": ("no" if row.not_counting else "yes", False),
        "the tarball": (tarball_of(row), False),
        "points lost to lateness": (points(row.late.cost if row.late else 0.0), False),
        "points lost to a limit of the rubric": (points(row.withheld), False),
    } | {
        f"{name}.{check.id}": ("open" if check.points is None else points(check.points), check.rule is not None)
        for name, criterion in row.criteria.items()
        for check in criterion.checks
    }


def _why(before: Mapping[str, tuple[str, bool]], after: Mapping[str, tuple[str, bool]]) -> str:
    reasons = []
    for about, (new, is_now) in after.items():
        old, was = before.get(about, (new, is_now))
        if (old, was) == (new, is_now):
            continue
        if is_now:
            reasons.append(f"your decision about {about}")
        elif was:
            reasons.append(f"your decision about {about} no longer applies")
        elif about == "the tarball":
            reasons.append("another tarball")
        elif about == "whether it counts":
            reasons.append("it counts now" if new == "yes" else "it no longer counts")
        elif about != TOTAL:
            reasons.append(f"{about} {old} -> {new}")
    more = f" and {len(reasons) - _REASONS} more" if len(reasons) > _REASONS else ""
    return ", ".join(reasons[:_REASONS]) + more or "the items are different now"
