"""The records of `scores.json`, and of what a page shows beside a score. Every report is a view.

What `rubric.toml` holds is here too: the weights of the checks, and the gates.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, tzinfo
from itertools import dropwhile, islice, takewhile
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.dataclasses import dataclass

from grader.intake.folder import Arrival
from grader.replay.replay import JsonNumber
from grader.score.schedule import Schedule
from harness.errors import UserError
from harness.formats.toml_file import StrictModel, read_record
from harness.submission.check_run import ItemOutcome

SCORES = "scores.json"
RowStatus = Literal["graded", "rejected", "not judged", "missing", "excused", "not drawn"]
ABSENT: tuple[RowStatus, ...] = ("missing", "excused", "not drawn")  # nothing was handed in
UNCOUNTED: tuple[RowStatus, ...] = ("excused", "not drawn")  # and that costs nothing
ShownRow = tuple[str, str, float]  # a check to judge: its id, its title, its points
# A written exercise has criteria of its own, in its `rubric.toml`.
Criterion = Annotated[str, Field(pattern="^[a-z][a-z_]{0,39}$")]
CRITERIA: tuple[Criterion, ...] = ("reproducibility", "diagnostics", "fix", "explanation")
_UNTIMED = "Nothing tells when it was handed in, and lateness costs points."
BY_RULE = " (The grader: "  # in the reason of a decided total, before what the rules say
DEFAULT_RUBRIC = Path(__file__).resolve().parent / "rubric.toml"
_NO_OTHERS = ConfigDict(extra="forbid")
_Points = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
_Most = _Points | Literal[False]


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class RuleVerdict:
    """The rule's verdict on a check that the instructor has overridden."""

    outcome: ItemOutcome
    points: float | None
    reason: str


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class RubricItem:
    """One row of the rubric, judged.

    `passed` has all its points, `failed` fewer (perhaps some), `could not judge` none yet: None, never 0.
    `reason` says why, with the facts that decided it; `remedy` says how to earn the missing points, or "". Both are
    plain text.
    """

    id: str
    title: str
    outcome: ItemOutcome
    points: float | None
    max: float
    reason: str
    remedy: str = ""
    rule: RuleVerdict | None = None  # set if the instructor has overridden it
    comment: str = ""  # the instructor's


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class CriterionScore:
    """The checks of one criterion; `points` is None as long as one of them is open."""

    points: float | None
    max: float
    checks: tuple[RubricItem, ...]


Criteria = Mapping[Criterion, CriterionScore]


def _check_if_read(value: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """Check criteria that come from JSON. Those that the grader made have their type, and may wait on the disk."""
    return check(value) if info.mode == "json" else value


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Flag:
    """Something that an instructor should look at; it costs no points by itself."""

    id: str
    message: str


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Gate:
    """A gate that bounds a total by `most` until one of some checks is earned.

    opens: the share of a check's points that opens it, by the check's address. `why` is a sentence for the student.
    """

    id: str
    most: float
    opens: dict[str, float]
    why: str

    def holds(self, criteria: Criteria) -> bool:
        """Return whether none of these checks is earned."""
        checks = {f"{name}.{check.id}": check for name, score in criteria.items() for check in score.checks}
        return not any(_is_earned(checks[name], share) for name, share in self.opens.items() if name in checks)


def _is_earned(check: RubricItem, share: float) -> bool:
    return check.outcome == "passed" or 0 < (check.points or 0.0) >= share * check.max


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class RuleTotal:
    """What the rules say of a submission whose total the instructor has decided.

    added: the points that the decision adds; None if it sets the total.
    """

    status: RowStatus
    total: float | None
    reason: str
    added: float | None = None


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Lateness:
    """How many days late a submission is, a begun day as a whole one, and how many points that has cost."""

    days: int
    cost: float


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class SubmissionScore:
    """One row of `scores.json`.

    `graded` has a total. `rejected` is an unusable archive: total 0, no criteria. `not judged` waits for the
    instructor: no total, and the checks that could be judged. `reason` says why a submission was rejected or not
    judged, or which limit lowers its total. `missing` and `excused` stand for what nobody handed in; an excused one
    counts nowhere. `student` and `recipe` come from the manifest if it can be read, else from the file's name.
    `arrival` says how it came in; None if that is unknown. `not_counting` says why it has no place in the gradebook, or
    is "". `copy_of` names the submission of a group that this row repeats for another member, or is "". `limits` bound
    its total. `late` is set if its total is lower for that. `untimed`: nothing tells when it was handed in, and
    lateness would cost points, so it waits.
    """

    submission: str
    student: str
    recipe: str
    status: RowStatus
    reason: str = ""
    total: float | None
    criteria: Annotated[Criteria, WrapValidator(_check_if_read)]
    flags: tuple[Flag, ...] = ()
    limits: tuple[Gate, ...] = ()
    provenance: dict[str, str | int | float | bool | None]
    arrival: Arrival | None = None
    not_counting: str = ""
    copy_of: str = ""
    late: Lateness | None = None
    untimed: bool = False
    rule: RuleTotal | None = None  # set if the instructor has decided the total

    @property
    def is_decided(self) -> bool:
        """Whether the instructor has decided anything about its points."""
        checks = (check for criterion in self.criteria.values() for check in criterion.checks)
        return self.rule is not None or any(check.rule for check in checks)

    @property
    def is_there(self) -> bool:
        """Whether something was handed in."""
        return self.status not in ABSENT

    @property
    def limit(self) -> Gate | None:
        """The limit that lowers its total, or None."""
        total = total_of(self.criteria) if self.criteria else None
        if total is None:
            return None
        low = (limit for limit in self.limits if limit.most < total and limit.holds(self.criteria))
        return min(low, key=lambda limit: limit.most, default=None)

    @property
    def withheld(self) -> float:
        """The points of its checks that the limit keeps back."""
        return round((total_of(self.criteria) or 0.0) - self.limit.most, 2) if self.limit else 0.0


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Decided:
    """One entry of the decisions' file, and what became of it. For the instructor: no student's page shows it."""

    submission: str
    about: str  # a check by its address, "the total" or "the student"
    says: str
    comment: str
    who: str
    when: str
    state: Literal["holds", "replaced", "withdrawn", "not applied"]
    why: str = ""  # it is not applied


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Change:
    """A submission whose total is another one than in the scores before, and why."""

    submission: str
    before: str
    after: str
    why: str


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Scores:
    """The whole of `scores.json`, sorted by submission.

    course, assignment: the ids of both, or "" without a course. decisions: the history, in the order of its file.
    changes: what differs from the scores that these replaced. upgrade: in words, how suite or rubric differ from
    then. schedule: the dates of the assignment; None without a course. pools: cases of which each student has one.
    """

    format_version: Literal[1] = 1
    course: str = ""
    assignment: str = ""
    provenance: dict[str, str | int | float | bool | None]
    submissions: tuple[SubmissionScore, ...]
    decisions: tuple[Decided, ...] = ()
    changes: tuple[Change, ...] = ()
    upgrade: str = ""
    schedule: Schedule | None = None
    pools: tuple[tuple[str, ...], ...] = ()

    @property
    def zone(self) -> tzinfo:
        """The time zone of what pages show."""
        return self.schedule.zone if self.schedule else UTC


_SCORES, _ROW = TypeAdapter(Scores), TypeAdapter(SubmissionScore)
_NO_ROWS = b'"submissions": []'
_ROWS = b' "submissions": [\n'  # the line before the rows


def full(id: str, title: str, maximum: float, reason: str) -> RubricItem:
    """Return a check with all its points."""
    return RubricItem(id=id, title=title, outcome="passed", points=maximum, max=maximum, reason=reason)


def lost(id: str, title: str, maximum: float, reason: str, remedy: str, *, points: float = 0.0) -> RubricItem:
    """Return a check with `points`, fewer than all."""
    return RubricItem(id=id, title=title, outcome="failed", points=points, max=maximum, reason=reason, remedy=remedy)


def open_check(id: str, title: str, maximum: float, reason: str) -> RubricItem:
    """Return a check that the instructor has to decide."""
    return RubricItem(id=id, title=title, outcome="could not judge", points=None, max=maximum, reason=reason)


def criterion_score(checks: tuple[RubricItem, ...]) -> CriterionScore:
    """Add up the checks of a criterion."""
    points = _sum(check.points for check in checks)
    return CriterionScore(points=points, max=sum(check.max for check in checks), checks=checks)


def total_of(criteria: Criteria) -> float | None:
    """Return the sum of all criteria, at least 0, or None if one is open or missing."""
    names = CRITERIA if not criteria or criteria.keys() & set(CRITERIA) else tuple(criteria)
    total = _sum(criteria[name].points if name in criteria else None for name in names)
    return None if total is None else max(total, 0.0)


def criteria_in(rows: Iterable[SubmissionScore]) -> tuple[Criterion, ...]:
    """Return every criterion of these rows, those of `CRITERIA` first; without any criterion, `CRITERIA`."""
    found = dict.fromkeys(name for row in sorted(rows, key=lambda row: row.recipe) for name in row.criteria)
    others = tuple(name for name in found if name not in CRITERIA)
    return (*CRITERIA, *others) if found.keys() & set(CRITERIA) or not found else others


def _sum(points: Iterable[float | None]) -> float | None:
    total = 0.0
    for value in points:
        if value is None:
            return None
        total += value
    return round(total, 2)


def _waiting_reason(criteria: Criteria) -> str:
    open_checks = [check.title for score in criteria.values() for check in score.checks if check.points is None]
    return f"It waits for the instructor: {'; '.join(open_checks)}."


def with_criteria(row: SubmissionScore, criteria: Criteria) -> SubmissionScore:
    """Return the row with these criteria and their sum, or the limit of that: graded if none is open."""
    total = total_of(criteria)
    if total is None:
        return replace(row, criteria=criteria, status="not judged", total=None, reason=_waiting_reason(criteria))
    row = replace(row, criteria=criteria, status="graded", total=total, reason="")
    if row.limit is not None:
        reason = f"The total is {row.limit.most:g}, not {total:g}. {row.limit.why}"
        row = replace(row, total=row.limit.most, reason=reason)
    if row.untimed and row.total:
        reason = f"{_UNTIMED} If it was in time, it has {row.total:g} of 100. {row.reason}".strip()
        return replace(row, status="not judged", total=None, reason=reason)
    return row


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Measurement:
    """One figure that decided about the fix: a check's outcome, a symptom, or the trusted evaluator's."""

    name: str
    value: JsonNumber | str
    wanted: str  # "below 1.0", "not above 50"
    good: bool


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class AnswerTable:
    """A table of what was found in an answer that is one file: a caption, headings, and rows of as many cells."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Question:
    """A question to ask a student in person, and what a good answer holds. For the instructor alone."""

    asks: str
    answer: str


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Attachments:
    """Everything the page of one submission shows beside its score. All text is the student's own: untrusted.

    answer_file: the name of the file if the answer is one file; then `fixed_source` is its text, and `findings` are
    the tables about it.
    """

    submission: str
    broken_source: str | None = None
    fixed_source: str | None = None
    report: str | None = None
    answer_file: str = ""
    findings: tuple[AnswerTable, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    symptom: str = ""  # what the broken run shows, in the recipe's words
    questions: tuple[Question, ...] = ()  # to ask in person


def scores_json(scores: Scores) -> Iterator[bytes]:
    """Yield the content of `scores.json` in parts: strict JSON, one key a line, in UTF-8."""
    start, end = _SCORES.dump_json(replace(scores, submissions=()), indent=1).split(_NO_ROWS)
    yield start + _NO_ROWS[:-1]
    for place, row in enumerate(scores.submissions):
        whole = replace(row, criteria={**row.criteria})  # they may wait on the disk
        lines = _ROW.dump_json(whole, indent=1).replace(b"\n", b"\n  ")
        yield (b",\n  " if place else b"\n  ") + lines
    yield (b"\n ]" if scores.submissions else b"]") + end + b"\n"


def head_before(out: Path) -> Scores | None:
    """Return the scores in a folder of reports without their rows, or None if it holds no scores.

    Raises `UserError` if they cannot be read.
    """
    with _explain_bad_scores(out), suppress(FileNotFoundError), (out / SCORES).open("rb") as file:
        head = b"".join(takewhile(lambda line: line != _ROWS, file))
        return _SCORES.validate_json(head + b" " + _NO_ROWS + b"}") if head.strip(b"\0") else None
    return None


def read_rows_before(out: Path) -> Iterator[SubmissionScore]:
    """Yield the rows of the scores in a folder of reports, one in memory at a time; none without scores.

    It reads what `scores_json` writes. Raises `UserError` if they cannot be read.
    """
    with _explain_bad_scores(out), suppress(FileNotFoundError), (out / SCORES).open("rb") as file:
        lines = dropwhile(lambda line: line != _ROWS, file)
        row = b""
        for line in takewhile(lambda line: line != b" ],\n", islice(lines, 1, None)):
            row += line
            if line.startswith(b"  }"):
                yield _ROW.validate_json(row.rstrip(b",\n"))
                row = b""


def read_scores(out: Path) -> Scores:
    """Return the scores in a folder of reports. Raises `UserError` if it holds none that can be read."""
    path = out / SCORES
    try:
        with _explain_bad_scores(out):
            return _SCORES.validate_json(path.read_bytes())
    except FileNotFoundError:
        below = ", ".join(str(one.parent) for one in sorted(out.glob(f"*/{SCORES}")))
        named = f"name one of {below}" if below else "name the folder that grader score wrote"
        raise UserError(f"There is no {path}: {named}.") from None


@contextmanager
def _explain_bad_scores(out: Path) -> Iterator[None]:
    """Raise `UserError` for scores that have another form."""
    try:
        yield
    except ValidationError:
        raise UserError(
            f"{out / SCORES} holds scores that this version of the suite cannot read: use the version that wrote them,"
            " or move the folder away and score the class again."
        ) from None


class Gates(StrictModel):
    """What a submission loses that shows no insight; False switches a gate off. `grader.score.gates` applies them.

    fixed_run: the points of the fixed run, if the edit fixes nothing. wrong_cause: those of the other facts of the
    diagnosis, if the cause is wrong. The others are the largest totals: without the right cause and without a right
    fix; of a healthy case that is called broken; of one that is called healthy without proof.
    """

    fixed_run: bool = True
    wrong_cause: bool = True
    no_insight: _Most = 40.0
    healthy_blamed: _Most = 40.0
    healthy_unproved: _Most = 40.0


class Weights(dict[Criterion, Mapping[str, float]]):
    """The points of every check, by criterion, and the gates."""

    def __init__(self, points: Mapping[Criterion, Mapping[str, float]], gates: Gates) -> None:
        super().__init__(points)
        self.gates = gates


class _Rubric(StrictModel):
    """A table of points by check for each criterion, and one of gates."""

    model_config = ConfigDict(extra="allow")

    format_version: Literal[1]
    gates: Gates = Gates()
    __pydantic_extra__: dict[Criterion, dict[str, _Points]]


def load_weights(path: Path = DEFAULT_RUBRIC) -> Weights:
    """Return the points of every check, and the gates. Raises `UserError` that names what is wrong, and where."""
    weights = read_weights(path)
    ours, theirs = (
        {f"{criterion}.{name}": None for criterion, checks in table.items() for name in checks}
        for table in (read_weights(DEFAULT_RUBRIC), weights)
    )
    for name in theirs.keys() - ours.keys():
        raise UserError(f"{path}: there is no check {name}: remove that line. There are {', '.join(ours)}.")
    for name in ours.keys() - theirs.keys():
        raise UserError(f"{path}: {name} is missing: give it points, 0 to leave it out.")
    return weights


def read_weights(path: Path) -> Weights:
    """Return the points of every check in a file, and its gates. Raises `UserError` as `load_weights` does."""
    rubric = read_record(path, _Rubric)
    weights = Weights(rubric.__pydantic_extra__, rubric.gates)
    total = sum(sum(checks.values()) for checks in weights.values())
    if round(total, 6) != 100:
        raise UserError(f"{path}: the points add up to {total:g}, not to 100: change some of them.")
    return weights


def scale_check(check: RubricItem, maximum: float) -> RubricItem:
    """Return the check scaled to another maximum."""
    if check.max == maximum:
        return check
    points = None if check.points is None else round(check.points * maximum / check.max, 2)
    return replace(check, max=maximum, points=points)
