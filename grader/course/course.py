"""Read a course file, `course.toml`, which names the roster, the assignments and their cases.

Every date is a local time in the time zone of the course. Paths are relative to the folder of `course.toml`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator, model_validator

from grader.course.lateness import AttemptRule
from grader.course.roster import EVERY, read_roster
from grader.report.text import count_noun
from grader.score.deadlines import LatePolicy, Schedule
from grader.score.identity import Student
from grader.score.rubric import DEFAULT_RUBRIC, load_weights
from harness.errors import UserError, printable, suggestion
from harness.formats.toml_file import StrictModel, read_record, read_table
from harness.recipes.cases import Case, CaseTable, load_cases
from harness.recipes.personal import login
from harness.recipes.recipe import Triage
from harness.written.exercise import file_exercise_ids

COURSE = Path("course.toml")
_Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
_NonEmpty = Annotated[str, Field(min_length=1)]
_GroupLogins = Annotated[tuple[str, ...], Field(min_length=2, strict=False)]
_MOST_SHOWN = 50


class _CourseCase(CaseTable):
    """A case in a course file. Validation checks that the experiment of the case fits its breaks and its decoy."""

    @model_validator(mode="before")
    @classmethod
    def _is_no_written_exercise(cls, table: Any) -> Any:
        keys = table if isinstance(table, dict) else {}
        name = keys.get("written", keys.get("experiment"))
        if "written" in keys or name in file_exercise_ids():
            raise ValueError(
                f'a written exercise is not a case: remove this table, and write written = ["{printable(str(name))}"]'
                " under [[assignment]]"
            )
        return table

    @model_validator(mode="after")
    def _is_a_case(self) -> "_CourseCase":
        try:
            self.case()
        except UserError as error:
            raise ValueError(str(error)) from None
        return self


class ResultDates(StrictModel):
    """The dates from which students see more than their score. By default, both dates are `Assignment.over`.

    feedback: the date from which students see where they lost points, but nothing that reveals the cause.
    solution: the date from which students see everything.
    """

    feedback: datetime | None = None
    solution: datetime | None = None


class Assignment(StrictModel):
    """The exercises that students work on between two dates.

    attempts: which submission counts if a student hands in several.
    rubric: the file with the points of each item; by default the grader's rubric.
    hints: whether the kit has hints.
    triage: what the checks show to students: outcomes, only values ("figures"), or nothing ("off").
    predict: whether students must predict the result of each run before the run starts.
    excused: the exercises from which students are excused, by login; "all" means all exercises.
    groups: the groups of students who hand in together, as logins; one submission counts for the whole group.
    written: the ids of exercises without runs, whose answer is one file.
    """

    id: _Id
    title: _NonEmpty
    opens: datetime
    due: datetime
    late: LatePolicy = LatePolicy()
    results: ResultDates = ResultDates()
    attempts: AttemptRule = "latest"
    rubric: _NonEmpty | None = None
    hints: bool = False
    triage: Triage = "outcomes"
    predict: bool = False
    excused: dict[str, Annotated[tuple[str, ...], Field(strict=False)]] = Field(default_factory=dict)
    groups: Annotated[
        tuple[Annotated[tuple[str, ...], Field(min_length=2, strict=False)], ...], Field(strict=False)
    ] = ()
    written: Annotated[tuple[str, ...], Field(strict=False)] = ()
    case: Annotated[tuple[_CourseCase, ...], Field(strict=False)] = ()

    @property
    def exercises(self) -> tuple[str, ...]:
        """The ids of the cases and the written exercises."""
        return (*(one.id for one in self.case), *self.written)

    def pool_of(self, case: str) -> tuple[str, ...]:
        """Return the sorted ids of all cases in the same pool as this case, or () if the case belongs to no pool.

        Each student gets only one case of a pool.
        """
        name = next((one.pool for one in self.case if one.id == case), None)
        return tuple(sorted(one.id for one in self.case if one.pool == name)) if name else ()

    @model_validator(mode="after")
    def _has_exercises(self) -> "Assignment":
        known = file_exercise_ids()
        if unknown := [name for name in self.written if name not in known]:
            raise ValueError(f"written: {unknown[0]!r} is not a written exercise: {suggestion(unknown[0], known)}")
        if not self.exercises:
            raise ValueError("has no exercise: add an [[assignment.case]] or written = [...]")
        return self

    @model_validator(mode="after")
    def _can_be_solved_without_checks(self) -> "Assignment":
        for one in self.case if self.triage == "off" else ():
            case = one.case()
            if case.is_healthy or not case.symptoms:
                shown = "is healthy" if case.is_healthy else "has a fault that the log does not show"
                raise ValueError(
                    f'{one.id} {shown}, so students need the checks: write triage = "figures", or choose another case'
                )
        return self

    @model_validator(mode="after")
    def _has_whole_pools(self) -> "Assignment":
        for name, count in Counter(one.pool for one in self.case if one.pool).items():
            if count == 1:
                raise ValueError(f"the pool {name} has only one case: add another case, or remove the pool")
        return self

    @model_validator(mode="after")
    def _dates_follow_each_other(self) -> "Assignment":
        if any(one.tzinfo is not None for one in self.dates()):
            raise ValueError("has a date with an offset: remove the offset, because the course has a time zone")
        if self.due <= self.opens:
            raise ValueError(f"is due {_as_text(self.due)}, but opens {_as_text(self.opens)}: choose a later due date")
        for student, until in self.late.extensions.items():
            if until < self.due:
                raise ValueError(
                    f"the extension of {printable(student)} ends {_as_text(until)}, before the due date: choose a later"
                    " date"
                )
        feedback, solution = self.release_dates()
        until = self.due + timedelta(minutes=self.late.grace_minutes)
        if solution < until:
            raise ValueError(
                f"results.solution is {_as_text(solution)}, but students can hand in until {_as_text(until)}: choose a"
                " later date"
            )
        if solution < feedback:
            raise ValueError(
                f"results.solution is before results.feedback, {_as_text(feedback)}: change one of the dates"
            )
        return self

    @model_validator(mode="after")
    def _names_its_cases_and_one_group_each(self) -> "Assignment":
        ids = self.exercises
        if twice := [name for name, count in Counter(ids).items() if count > 1]:
            raise ValueError(f"two cases have the id {twice[0]}: rename one of them")
        for student, names in self.excused.items():
            for name in names:
                if name not in (EVERY, *ids):
                    raise ValueError(
                        f"excuses {printable(student)} from {printable(name)}, which is not in this assignment: choose"
                        f" from {', '.join(ids)}, or {EVERY}"
                    )
        counts = Counter(login(name) for group in self.groups for name in group)
        if twice := [name for name, count in counts.items() if count > 1]:
            raise ValueError(f"lists {printable(twice[0])} in two groups, or twice in a group: keep one entry")
        return self

    def dates(self) -> Iterator[datetime]:
        """Yield every date of the assignment."""
        yield from (self.opens, self.due, *self.late.extensions.values())
        yield from filter(None, (self.results.feedback, self.results.solution))

    @property
    def over(self) -> datetime:
        """The end of the last extension plus the grace period. After this date, every submission is late."""
        return max((self.due, *self.late.extensions.values())) + timedelta(minutes=self.late.grace_minutes)

    def release_dates(self) -> tuple[datetime, datetime]:
        """Return two dates: from when students see feedback, and from when they see the solution."""
        feedback = self.results.feedback or self.over
        return feedback, self.results.solution or max(feedback, self.over)


class Course(StrictModel):
    """The content of a course file.

    folder: the folder that contains the course file. secret: the seed for all random draws in the course.
    """

    format_version: Literal[1]
    id: _Id
    title: _NonEmpty
    time_zone: str
    secret: Annotated[str, Field(min_length=8)]
    roster: _NonEmpty
    personal_seeds: bool = True
    assignment: Annotated[tuple[Assignment, ...], Field(strict=False)] = ()
    folder: Annotated[Path, Field(exclude=True)] = Path()  # `read_course` sets it; it is not a key of the file

    @field_validator("time_zone")
    @classmethod
    def _is_a_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (OSError, ValueError, KeyError):
            raise ValueError(f"{name!r} is not a time zone: write a name such as Europe/Berlin") from None
        return name

    @model_validator(mode="after")
    def _says_nothing_twice(self) -> "Course":
        problems = [
            f"two {kind} have the id {name}: rename one of them"
            for kind, ids in (
                ("assignments", [one.id for one in self.assignment]),
                ("cases", [case.id for one in self.assignment for case in one.case]),
            )
            for name in dict.fromkeys(ids)
            if ids.count(name) > 1
        ]
        for one in self.assignment:
            for date in one.dates():
                aware = date.replace(tzinfo=self.zone)
                if aware.astimezone(UTC).astimezone(self.zone).replace(tzinfo=None) != date:
                    problems.append(
                        f"{one.id}: {_as_text(date)} does not exist in {self.time_zone}, because the clocks go"
                        " forward: choose another time"
                    )
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def zone(self) -> ZoneInfo:
        """The time zone of all dates of the course."""
        return ZoneInfo(self.time_zone)

    def students(self) -> tuple[Student, ...]:
        """Return the students on the roster. Raises a `UserError` that names every invalid line."""
        return read_roster(self.folder / self.roster)

    def find(self, name: str | None) -> Assignment:
        """Return the assignment with this id, or for None, the only assignment. Raises `UserError` if there is none."""
        ids = [one.id for one in self.assignment]
        if name is None and len(ids) == 1:
            return self.assignment[0]
        if name is None or name not in ids:
            said = "Name an assignment" if name is None else f"There is no assignment {printable(name)}"
            raise UserError(f"{said}: {suggestion(name or '', ids) if ids else 'the course has no assignment yet.'}")
        return self.assignment[ids.index(name)]

    def cases(self, assignment: Assignment) -> list[Case]:
        """Return the cases of an assignment, with the seeds and settings of this course."""
        return [
            one.case(
                self.id,
                personal_seeds=self.personal_seeds,
                triage=assignment.triage,
                predict=assignment.predict,
                pool=assignment.pool_of(one.id),
            )
            for one in assignment.case
        ]

    def rubric(self, assignment: Assignment) -> Path:
        """Return the path of the rubric that scores an assignment."""
        return self.folder / assignment.rubric if assignment.rubric else DEFAULT_RUBRIC

    def schedule(self, assignment: Assignment) -> Schedule:
        """Return the dates of an assignment in the form that `scores.json` stores."""
        feedback, solution = assignment.release_dates()
        return Schedule(
            time_zone=self.time_zone, due=assignment.due, late=assignment.late, feedback=feedback, solution=solution
        )


def read_course(path: Path) -> Course:
    """Read a course file, but no other file. Raises a `UserError` that names every invalid key."""
    return read_record(path, Course, folder=path.parent)


def check_course(path: Path) -> list[str]:
    """Check a course file and the files that it names. Return lines that describe the course.

    Raises a `UserError` that lists every problem in these files.
    """
    if not path.is_file():
        read_course(path)  # raises the error
    problems: list[str] = []
    course: Course | None = None
    try:
        course = read_course(path)
    except UserError as error:
        problems += str(error).split("; ")
    students = _roster(path, course, problems)
    logins = {login(student.login) for student in students or ()}
    if course is not None:
        for one in course.assignment:
            try:
                load_weights(course.rubric(one))
            except UserError as error:
                problems.append(str(error))
            strangers = [name for name in one.late.extensions if students and login(name) not in logins]
            problems += [
                f"{one.id}: {printable(name)} has an extension, but is not on the roster" for name in strangers
            ]
            for words, names in (("is excused", one.excused), ("is in a group", [n for g in one.groups for n in g])):
                problems += [
                    f"{one.id}: {printable(name)} {words}, but is not on the roster"
                    for name in names
                    if students and login(name) not in logins
                ]
    problems = list(dict.fromkeys(item.removesuffix(".") for item in problems))
    if problems or course is None:
        count = count_noun(len(problems), "correction")
        shown = [f"  {item}" for item in problems[:_MOST_SHOWN]]
        more = [f"  and {len(problems) - _MOST_SHOWN} more"] if len(problems) > _MOST_SHOWN else []
        raise UserError("\n".join([f"{path} needs {count}:", *shown, *more]))
    sections = {one.section for one in students or ()}
    return [
        f"{course.id}: {course.title}",
        f"{count_noun(len(students or ()), 'student')} in {count_noun(len(sections), 'section')}",
        *(line for one in course.assignment for line in _describe_assignment(course, one, students or ())),
        *_across(course, students or ()),
    ]


def _roster(path: Path, course: Course | None, problems: list[str]) -> Sequence[Student] | None:
    """Return the roster, even if other parts of the course are invalid. Add its problems to the list `problems`."""
    try:
        named = course.roster if course else read_table(path).get("roster")
        return read_roster(path.parent / named) if isinstance(named, str) else None
    except (UserError, OSError) as error:
        problems += [line.strip() for line in str(error).splitlines() if not line.endswith(":")]
        return None


def _describe_assignment(course: Course, one: Assignment, students: Sequence[Student]) -> Iterator[str]:
    cases = course.cases(one)
    levels: dict[str, int] = {}
    for case in cases:
        kind = "healthy" if case.is_healthy else f"level {case.goal.level}" if case.goal else "without a level"
        levels[kind] = levels.get(kind, 0) + 1
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(levels.items()))
    when = f"{_as_text(one.opens)} to {_as_text(one.due)} ({course.time_zone})"
    yield f"{one.id}, {when}: {count_noun(len(cases), 'case')} ({kinds})"
    yield from _describe_settings(course, one, students)
    schedule = course.schedule(one)
    feedback, solution = schedule.begins("feedback"), schedule.begins("solution")
    yield f"  students see feedback from {feedback}, and the solution from {solution}; before that, they see only their"
    " score"
    for name, date in (("feedback", one.results.feedback), ("solution", one.results.solution)):
        if date and date < one.over:
            yield (
                f"  the last extension ends {_as_text(one.over)}, but other students see the {name} earlier, and may"
                " reveal it to a student who still works on the assignment"
            )
    known = load_cases()
    twins = {frozenset(pair.exercises) for pair in known.twins}
    for first, second in combinations(cases, 2):
        if first.experiment == second.experiment:
            yield f"  {first.id} and {second.id} use the same experiment: a diff of their files shows both breaks"
        if any(frozenset((a, b)) in twins for a in first.parts for b in second.parts):
            yield f"  {first.id} and {second.id} have faults with similar symptoms (solutions/cases.toml)"
    for case in cases:
        if len(case.parts) > 1 and {*case.parts} not in map(set, (*known.together, *known.several)):
            yield f"  {case.id}: no test shows that students can find all of its breaks (solutions/cases.toml)"


def _describe_settings(course: Course, one: Assignment, students: Sequence[Student]) -> Iterator[str]:
    """Yield a line for each setting that is not the default, or that is not the same for all students."""
    if one.written:
        yield f"  written exercises: {', '.join(one.written)}"
    for case in {case.pool: case for case in course.cases(one) if case.pool}.values():
        counts = Counter(case.case_of(student.login) for student in students)
        yield f"  each student gets one of: {', '.join(f'{id} ({counts[id]} students)' for id in case.pool)}"
    if one.triage != "outcomes":
        yield f"  the checks show {'values without outcomes' if one.triage == 'figures' else 'nothing'}"
    if one.predict:
        yield "  students predict each run before they make it"
    for student, until in one.late.extensions.items():
        yield f"  {printable(student)} has time until {_as_text(until)}"
    for student, names in one.excused.items():
        yield f"  {printable(student)} is excused from {', '.join(names)}"
    for group in one.groups:
        yield f"  {' and '.join(map(printable, group))} hand in together"


def _across(course: Course, students: Sequence[Student]) -> Iterator[str]:
    """Yield a warning for each experiment in two assignments, and for each email address of several students."""
    week_of = [(case, one) for one in course.assignment for case in course.cases(one)]
    for (first, week), (second, other) in combinations(week_of, 2):
        if week is not other and first.experiment == second.experiment:
            both = f"{first.id} of {week.id} and {second.id} of {other.id}"
            yield f"{both} use the same experiment: a diff of their files shows both breaks"
    counts = Counter(login(student.email) for student in students if student.email)
    for email in (email for email, count in counts.items() if count > 1):
        yield f"{counts[email]} students have the email address {printable(email)}, so it does not tell who sent a file"


def _as_text(date: datetime) -> str:
    return f"{date:%Y-%m-%d %H:%M}"
