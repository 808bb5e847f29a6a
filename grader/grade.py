"""`grader score`: read the submissions, replay what is distinct, score each, write the reports."""

import hashlib
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from pathlib import Path

from rich.console import Console

from grader.course.course import Assignment, Course, read_course
from grader.course.decisions import apply_decisions, changed_scores, decisions_path, load_decisions
from grader.course.late import counting, with_lateness
from grader.course.lock import Handout
from grader.course.log import digest, note
from grader.course.roster import with_groups, with_missing, with_roster_flags
from grader.intake.archive import Rejected
from grader.intake.handed_in import NO_ARCHIVE, Found, HandedIn, read_folder
from grader.intake.submission import Answer, Submission, parse_submission
from grader.intake.times import Times, read_times
from grader.replay.replay import Replay
from grader.replay.replays import Waiting
from grader.replay.request import Request, Role, in_time, recipe_of, requests_of
from grader.report.exhibits import KeptExhibits
from grader.report.gradebook import GRADEBOOK
from grader.report.text import Progress, shown_progress, without_folders
from grader.report.write import INDEX, write_reports
from grader.score.canaries import canary_problem, canary_requests
from grader.score.evidence import must_agree
from grader.score.fix import further_requests
from grader.score.identity import STRANGER, Student, compared, left_out, settled
from grader.score.schedule import Schedule
from grader.score.scoring import Score, score_submission, unjudged, unscored
from grader.score.similarity import Work, find_alike, flagged
from grader.score.verdict import (
    ABSENT,
    DEFAULT_RUBRIC,
    Exhibits,
    Flag,
    Scores,
    SubmissionScore,
    head_before,
    load_weights,
    scored_before,
)
from grader.score.work_limit import WorkLimitError, work_limit
from grader.session import (
    Grading,
    ScoreOptions,
    hold_reports_folder,
    open_grading,
    provenance_of,
    refuse_other_scores,
    upgrade_between,
)
from grader.written.grade import AnswerGrader, solution
from harness.cases import Case, course_cases
from harness.data import DATASETS
from harness.errors import UserError, naming, printable
from harness.personal import login
from harness.terminal import folded
from harness.workspace import RUNS
from harness.written.exercise import exercise_ids, find_file_exercise, load_exercise, stub

Refuse = Callable[[Submission | Answer], Flag | None]
_LISTED = 20  # lines of one kind at the end of the command


def score_folder(folder: Path, options: ScoreOptions) -> int:
    """Score a folder or a zip of submissions, write all reports, and return 0, or 1 if one is not judged.

    Raises `UserError` for wrong use: no such folder, no tarball, no sandbox, an unusable rubric or decisions.
    """
    if options.course is None:
        return _score_folder(folder, options, None)
    course = read_course(options.course)
    assignment = course.find(options.assignment)
    cases = course.cases(assignment)
    rubric = options.rubric or course.rubric(assignment)
    with course_cases(cases):
        of_course = _OfCourse(course, assignment, course.students(), cases, Handout(course, assignment))
        return _score_folder(folder, replace(options, rubric=rubric), of_course)


@dataclass(frozen=True)
class _OfCourse:
    """What a course adds to the rows of a class."""

    course: Course
    assignment: Assignment
    students: Sequence[Student]
    cases: Sequence[Case]
    handout: Handout

    @property
    def schedule(self) -> Schedule:
        """The dates of the assignment."""
        return self.course.schedule(self.assignment)

    def with_missing(self, rows: Sequence[SubmissionScore]) -> tuple[SubmissionScore, ...]:
        """Return the rows, those that repeat a submission for the others of a group, and those of what is missing."""
        own = self.assignment
        return tuple(with_missing(with_groups(rows, own.groups), self.students, own.exercises, own.excused, self.cases))

    def compared(self, rows: Sequence[SubmissionScore], now: datetime) -> tuple[SubmissionScore, ...]:
        """Return the rows with what lateness costs, which attempt counts, and the flags of the roster."""
        rows = with_lateness(rows, self.schedule, now)
        rows = compared(rows, partial(counting, rule=self.assignment.attempts))
        return tuple(with_roster_flags(rows, self.students, self.cases))


def _score_folder(folder: Path, options: ScoreOptions, course: _OfCourse | None) -> int:
    began, times = datetime.now(UTC), None
    if options.times is not None:
        told = read_times(options.times, course.schedule.zone if course else None)
        times = Times(told, options.times.name, [one.names for one in course.students] if course else ())
    found = read_folder(folder, times, trust_dates=options.trust_file_dates)
    weights = load_weights(options.rubric or DEFAULT_RUBRIC)
    blank = Scores(
        course=course.course.id if course else "",
        assignment=course.assignment.id if course else "",
        provenance=provenance_of(options),
        submissions=(),
        schedule=course.schedule if course else None,
        pools=tuple(dict.fromkeys(case.pool for case in course.cases if case.pool)) if course else (),
    )
    # Refuse what does not fit before hours of replays.
    load_decisions(options.out)
    before = head_before(options.out)
    refuse_other_scores(before, blank, options.out)
    console = Console(stderr=True)
    for sentence in course.handout.notes() if course else ():
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    with (
        open_grading(options, weights, console) as grading,
        hold_reports_folder(options.out),
        shown_progress(console) as progress,
        closing(KeptExhibits()) as exhibits,
        closing(grade(found.files, grading, progress, course.handout.problem if course else None)) as scored,
    ):
        graded = [exhibits.keep(item) for item in scored]
        rows = settled(sorted(graded, key=attrgetter("submission")), course.students if course else ())
        # Twice: a decision may be about what is missing, or give a submission to its student.
        scores = replace(blank, submissions=course.with_missing(rows) if course else rows)
        scores = apply_decisions(scores, load_decisions(options.out))
        rows = scores.submissions
        rows = course.compared(course.with_missing(rows), began) if course else compared(rows)
        likeness = find_alike(_works(rows, exhibits), _programs_of)
        scores = replace(scores, submissions=flagged(rows, likeness))
        changes = changed_scores(scored_before(options.out), scores)
        scores = replace(scores, changes=changes, upgrade=upgrade_between(before, scores))
        people = {login(one.login): (one.name, one.section) for one in course.students} if course else {}
        write_reports(
            scores, exhibits, options.out, titles=_titles(), people=people, likeness=likeness, progress=progress
        )
        note(
            options.out,
            "score",
            inputs=_digests(scores.submissions, options, course),
            counts=Counter(row.status for row in scores.submissions),
            upgrade=scores.upgrade,
            changes=scores.changes,
        )
    with naming(Path("standard output")):  # an error would name the reports, which are written
        return _summarize(scores, found, options.out)


def _digests(rows: Sequence[SubmissionScore], options: ScoreOptions, course: "_OfCourse | None") -> dict[str, str]:
    """Return a SHA-256 of everything that the scores follow from, by its name."""
    files = {"course": options.course, "times": options.times, "decisions": decisions_path(options.out)}
    found = {
        "submissions": digest([(row.submission, str(row.provenance.get("tarball_sha256", ""))) for row in rows]),
        **{
            name: hashlib.sha256(path.read_bytes()).hexdigest()
            for name, path in files.items()
            if path is not None and path.is_file()
        },
    }
    if course is not None:
        found["roster"] = digest([(one.login, one.name, one.email, one.section) for one in course.students])
    return found


def grade(
    files: Sequence[HandedIn], grading: Grading, progress: Progress, refuse: Refuse | None = None
) -> Generator[Score, None, None]:
    """Read, replay and score these files; yield each score once it is known. Ctrl-C keeps finished replays.

    refuse: returns a flag for a submission that must not be judged, and says why.
    """
    arrivals = {file.name: file.arrival for file in files}
    with closing(_scores(files, grading, progress, refuse)) as scores:
        for score in scores:
            yield replace(score, row=replace(score.row, arrival=arrivals[score.row.submission]))


def _scores(
    files: Sequence[HandedIn], grading: Grading, progress: Progress, refuse: Refuse | None
) -> Generator[Score, None, None]:
    answers: list[Answer] = []
    problems: dict[str, str] = {}

    def attempt(item: HandedIn | Submission) -> Score | Answer | Waiting[HandedIn | Submission]:
        read = _read_one(item) if isinstance(item, HandedIn) else item
        if isinstance(read, Score):
            return read
        if refuse is not None and (flag := refuse(read)):
            return unjudged(read, flag.message, flag)
        if isinstance(read, Answer):
            return read
        found = _judged(read, grading, problems)
        return found if isinstance(found, Score) else Waiting(read, found)

    progress.begin("submissions", len(files))
    judged: Generator[Score | Answer, None, None] = grading.replays.as_ready(_in_order(files), attempt)
    with closing(judged):
        for found in judged:
            progress.done()
            if isinstance(found, Answer):
                answers.append(found)
            else:
                yield found
    answer_grader = AnswerGrader(grading.replayer, grading.cache, jobs=grading.jobs, sandboxed=grading.sandboxed)
    yield from answer_grader.grade(answers, progress)


def _in_order(files: Iterable[HandedIn]) -> Iterable[HandedIn | Submission]:
    """Return the files in the order in which they are read: one of each exercise, then the others by exercise.

    The first ones ask for the suite's own runs of all exercises, for which the others wait. Those of one exercise share
    logs, which are read once. The last word of a file's name stands for the exercise here, because make submit ends
    names with it. A wrong guess costs time and nothing else.
    """

    def last_word(file: HandedIn) -> str:
        return file.name.rpartition("_")[2]

    ordered = sorted(files, key=lambda file: (last_word(file), file.name))
    first = {last_word(file): file for file in reversed(ordered)}
    return sorted(ordered, key=lambda file: file is not first[last_word(file)])


# --- Read ---


def _read_one(file: HandedIn) -> Submission | Answer | Score:
    """Read a file; one that cannot be graded becomes its score."""
    name = file.name
    try:
        with work_limit():
            read = parse_submission(name, file.read())
        if isinstance(read, Answer):
            return read
        try:
            _check_dataset(read)
        except UserError as error:  # the recipe cannot be used
            print(error, file=sys.stderr)
            return unjudged(read, without_folders(str(error)))
        return read
    except Rejected as refusal:
        reason = f"{refusal.message} ({refusal.code})"
        return unscored(name, reason, student=refusal.student, exercise=refusal.recipe, rejected=True)
    except WorkLimitError as error:
        return unscored(name, str(error))
    except Exception as error:
        traceback.print_exc()
        return unscored(name, f"The grader failed on it: {type(error).__name__}.")


def _check_dataset(submission: Submission) -> None:
    recipe, dataset = recipe_of(submission.recipe), submission.manifest.dataset
    if DATASETS.get(dataset) != DATASETS[recipe.dataset]:
        message = f"{recipe.id} cannot be run on {dataset}."
        raise Rejected("dataset", message, submission.student, submission.recipe)


# --- Replay and score ---


def _judged(read: Submission, grading: Grading, problems: dict[str, str]) -> Score | list[Request]:
    """Return the score of a submission, or the replays that it waits for.

    No student's code runs before its recipe is checked. problems: what is wrong with each recipe that was, or "".
    """
    if read.recipe not in problems:
        found = _recipe_problem(read.recipe, grading)
        if not isinstance(found, str):
            return found
        problems[read.recipe] = found
    if problem := problems[read.recipe]:
        return unjudged(read, f"The exercise {read.recipe} cannot be graded here: {problem}")
    try:
        with work_limit():
            return _score_or_missing(read, grading)
    except WorkLimitError as error:
        return unjudged(read, str(error))
    except Exception as error:
        traceback.print_exc()
        return unjudged(read, f"The grader failed on it: {type(error).__name__}.")


def _recipe_problem(recipe: str, grading: Grading) -> str | list[Request]:
    """Return why a recipe cannot be graded here, or "", or the replays of the suite's own that tell."""
    try:
        requests = canary_requests(recipe)
        if unknown := [request for request in requests if not grading.replays.has(request)]:
            return unknown
        return canary_problem(recipe, [grading.replays.of(item) for item in requests], grading.weights)
    except UserError as error:
        print(error, file=sys.stderr)
        return without_folders(str(error))
    except Exception as error:
        traceback.print_exc()
        return without_folders(str(error)) or type(error).__name__


def _score_or_missing(submission: Submission, grading: Grading) -> Score | list[Request]:
    """Return the score of a submission, or the next replays that its score rests on and that are not known.

    All runs of a submission share its time, so that what comes later waits for what comes first.
    """
    replays = grading.replays
    requests: dict[Role, Request] = {}
    made: dict[Role, Replay] = {}
    while following := _next_requests(submission, requests, made):
        earlier = {request: made[role] for role, request in requests.items()}
        timely = {role: in_time(request, earlier) for role, request in following.items()}
        if unknown := [request for request in timely.values() if not replays.has(request)]:
            return unknown
        requests |= timely
        made |= {role: replays.of(request) for role, request in timely.items()}
    return score_submission(submission, made, grading.weights, sandboxed=grading.sandboxed)


def _next_requests(
    submission: Submission, requests: Mapping[Role, Request], made: Mapping[Role, Replay]
) -> Mapping[Role, Request]:
    """Return what to replay next for a submission, given the replays so far; nothing if they are enough."""
    asked = requests_of(submission)
    stages: list[tuple[Role, ...]] = [("broken", "reference"), ("fixed",)]
    if "broken" in made and not must_agree(submission, made["broken"]):
        stages += [("broken again",), ("fixed again",)]
    for stage in stages:
        if stage[0] not in made:
            return {role: asked[role] for role in stage}
    return further_requests(requests, made)


# --- Compare ---


def _works(rows: Iterable[SubmissionScore], exhibits: Mapping[str, Exhibits]) -> Iterator[Work]:
    """Yield what can be compared of each submission that was read and scored, exercise by exercise."""
    for row in sorted(rows, key=attrgetter("recipe")):
        shown, facts = exhibits.get(row.submission), row.provenance
        if shown and (shown.fixed_source or shown.report):
            program, seed = shown.fixed_source or "", facts.get("seed")
            yield Work(
                submission=row.submission,
                student=row.student,
                exercise=row.recipe,
                report=shown.report or "",
                program=program if not shown.answer_file or shown.answer_file.endswith(".py") else "",
                answer=program if shown.answer_file else "",
                seed=seed if isinstance(seed, int) else None,
                logs={run: str(facts[key]) for run in RUNS if facts.get(key := f"{run}_log_sha256")},
            )


def _programs_of(exercise: str) -> tuple[str, ...]:
    """Return the programs that every student may have: what is handed out, and the reference fix or solution."""
    written = find_file_exercise(exercise)
    if written is not None:
        return stub(written), solution(written)
    recipe = recipe_of(exercise)
    return recipe.broken_source(), recipe.healthy_source()


# --- Report ---


def _titles() -> Mapping[str, str]:
    titles = {}
    for exercise in exercise_ids():
        try:
            titles[exercise] = load_exercise(exercise).title
        except UserError:  # the rows of its submissions give the reason
            titles[exercise] = exercise
    return titles


def _in_all(statuses: Mapping[str, int], others: int, ignored: Mapping[str, int]) -> str:
    """Return a line that counts everything: submissions by status, what is none, and what was ignored."""
    submissions = {"graded": 0, "rejected": 0, "not judged": 0} | dict(statuses)
    absent = {status: submissions.pop(status, 0) for status in ABSENT}
    kinds = ", ".join(f"{number} {status}" for status, number in submissions.items())
    number = sum(submissions.values())
    parts = [f"{number} {'submission' if number == 1 else 'submissions'} ({kinds})"]
    parts += [f"{count} {status}" for status, count in absent.items() if count and status != "not drawn"]
    parts += [f"{others} without a submission in it"] if others else []
    parts += [f"ignored {kind} ({number})" for kind, number in ignored.items()]
    return f"In all: {', '.join(parts)}."


def _summarize(scores: Scores, found: Found, out: Path) -> int:
    console = Console()
    width = console.width if console.is_terminal else None

    def say(line: str) -> None:
        console.print(folded(line, width, hang=4), markup=False, highlight=False, soft_wrap=True)

    def listed(title: str, lines: Sequence[str]) -> None:
        if lines:
            say(title)
        for line in lines[:_LISTED]:
            say(f"  {line}")
        if len(lines) > _LISTED:
            say(f"  and {len(lines) - _LISTED} more: the class page lists all")

    listed(
        f"Not applied, and kept in {decisions_path(out)}:",
        [
            f"{printable(one.submission)}: your decision about {printable(one.about)} ({one.says}). {one.why}"
            for one in scores.decisions
            if one.state == "not applied"
        ],
    )
    others = {
        file.name: file.problem.message for file in found.files if file.problem and file.problem.code == NO_ARCHIVE
    }
    statuses = Counter[str](row.status for row in scores.submissions if row.submission not in others)
    for row in scores.submissions:
        if row.status == "not judged":
            say(f"  {printable(row.submission)}: {printable(row.reason, 600)}")
    rejected = [row for row in scores.submissions if row.status == "rejected" and row.submission not in others]
    listed("Rejected:", [f"{printable(row.submission)}: {printable(row.reason, 200)}" for row in rejected])
    if scores.assignment and len(rejected) > sum(row.is_there for row in scores.submissions) / 2:
        say(f"Most files are rejected: are they those of {printable(scores.assignment)}?")
    for name, why in left_out(scores.submissions).items():
        say(f"  {printable(name)}: not in {GRADEBOOK} nor in an export. {printable(why, 600)}")
    listed("No submission:", [f"{printable(name)}: {why}" for name, why in others.items()])
    handed_in = [row for row in scores.submissions if row.arrival and row.submission not in others]
    flags = [(row.submission, flag.message) for row in handed_in for flag in row.flags if flag.id == STRANGER]
    listed("Not on the roster:", [f"{printable(name)}: {printable(why)}" for name, why in flags])
    listed("Names in the table of --times that no file has:", [printable(name) for name in found.unused])
    arrivals = [row.arrival for row in handed_in if row.arrival]
    if scores.schedule and (timeless := [one for one in arrivals if one.submitted_at is None]):
        waits = sum(row.untimed for row in handed_in)
        marked = sum(one.late for one in timeless)
        say(
            f"Files whose time is unknown: {len(timeless)}; the platform marks {marked} of them as late. {waits} wait,"
            " because lateness would cost them points: give their times with --times (docs/grading.md)."
        )
    if scores.upgrade:
        say(f"The suite or the rubric has changed since the last scoring: {printable(scores.upgrade)}.")
    listed(
        "Changed since the last scoring:",
        [
            f"{printable(one.submission)}: {one.before} -> {one.after} ({printable(one.why, 300)})"
            for one in scores.changes
        ],
    )
    console.print("Next:", style="bold")
    say(f"  open {out / INDEX} in a browser")
    if "not judged" in statuses:
        say(f"  grader review {out}")
    say(_in_all(statuses, len(others), found.ignored))
    sys.stdout.flush()
    return 1 if "not judged" in statuses else 0
