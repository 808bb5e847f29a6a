"""`grader score`: read the submissions, replay each distinct program, score every submission, write the reports."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from pathlib import Path

from rich.console import Console

from grader.course.course import read_course
from grader.course.decisions import apply_decisions, changed_scores, decisions_path, load_decisions
from grader.course.lock import Handout
from grader.course.log import digest_inputs, note
from grader.course.rows import CourseRows
from grader.intake.folder import read_folder
from grader.intake.times import Times, read_times
from grader.judge import judge_files
from grader.progress import shown_progress
from grader.report.attachments import KeptAttachments
from grader.report.summary import print_summary
from grader.report.write import write_reports
from grader.score.attachments import Attachments
from grader.score.identity import compare_rows, settle_students
from grader.score.rubric import DEFAULT_RUBRIC, load_weights
from grader.score.scores_file import head_before, read_rows_before
from grader.score.similarity import Work, find_alike, flag_alike
from grader.score.verdict import Scores, SubmissionScore
from grader.session import (
    ScoreOptions,
    hold_reports_folder,
    open_grading,
    provenance_of,
    refuse_other_scores,
    upgrade_between,
)
from grader.written.known_answers import solution_of
from harness.errors import UserError, name_place
from harness.recipes.catalogue import Catalogue
from harness.recipes.personal import login
from harness.workspace.workspace import RUNS
from harness.written.exercise import exercise_ids, find_file_exercise, load_exercise, stub


def score_folder(folder: Path, options: ScoreOptions) -> int:
    """Score a folder or a zip of submissions and write all reports. Return 1 if a submission is not judged, else 0.

    Raises `UserError` if the folder does not exist or has no tarball, if there is no sandbox, or if the rubric or the
    decisions are invalid.
    """
    if options.course is None:
        return _score_folder(folder, options, None)
    course = read_course(options.course)
    assignment = course.find(options.assignment)
    cases = course.cases(assignment)
    options = replace(options, rubric=options.rubric or course.rubric(assignment))
    return _score_folder(
        folder, options, CourseRows(course, assignment, course.students(), cases, Handout(course, assignment))
    )


def _score_folder(folder: Path, options: ScoreOptions, course: CourseRows | None) -> int:
    began = datetime.now(UTC)
    catalogue, students = Catalogue(course.cases if course else ()), course.students if course else ()

    # Read all input first, so that wrong input is refused at once, not after hours of replays.
    times = None
    if options.times is not None:
        read = read_times(options.times, course.schedule.zone if course else None)
        exercises = (*catalogue.ids(), *exercise_ids())
        times = Times(read, options.times.name, [one.names for one in students], exercises)
    found = read_folder(folder, times, trust_dates=options.trust_file_dates)
    weights = load_weights(options.rubric or DEFAULT_RUBRIC)
    scores = _no_scores(options, course)
    load_decisions(options.out)
    before = head_before(options.out)
    refuse_other_scores(before, scores, options.out)
    console = Console(stderr=True)
    for sentence in course.handout.notes() if course else ():
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    with (
        open_grading(options, weights, console, catalogue) as grading,
        hold_reports_folder(options.out),
        shown_progress(console) as progress,
        closing(KeptAttachments()) as attachments,
        closing(judge_files(found.files, grading, progress, course.handout.problem if course else None)) as judged,
    ):
        # Replay and score.
        rows = settle_students(sorted(map(attachments.keep, judged), key=attrgetter("submission")), students)

        # Compare. Add the rows of students who handed in nothing twice: before the decisions are applied, because a
        # decision may be about such a row, and again later, because a decision may give a submission to another
        # student.
        scores = replace(scores, submissions=course.with_missing(rows) if course else rows)
        scores = apply_decisions(scores, load_decisions(options.out))
        rows = scores.submissions
        rows = course.compare_rows(course.with_missing(rows), began) if course else compare_rows(rows)
        likeness = find_alike(_works(rows, attachments), partial(_programs_of, catalogue=catalogue))
        scores = replace(scores, submissions=flag_alike(rows, likeness))
        scores = replace(
            scores,
            changes=changed_scores(read_rows_before(options.out), scores),
            upgrade=upgrade_between(before, scores),
        )

        # Report.
        people = {login(one.login): (one.name, one.section) for one in students}
        write_reports(
            scores, attachments, options.out, titles=_titles(), people=people, likeness=likeness, progress=progress
        )
        note(
            options.out,
            "score",
            inputs=digest_inputs(scores.submissions, options, students),
            counts=Counter(row.status for row in scores.submissions),
            upgrade=scores.upgrade,
            changes=scores.changes,
        )
    with name_place(Path("standard output")):  # the reports are complete, so an error now comes from printing
        return print_summary(scores, found, options.out, decisions_path(options.out))


def _no_scores(options: ScoreOptions, course: CourseRows | None) -> Scores:
    """Return scores without submissions: only the course, its dates and the provenance."""
    provenance = provenance_of(options)
    if course is None:
        return Scores(course="", assignment="", provenance=provenance, submissions=())
    return Scores(
        course=course.course.id,
        assignment=course.assignment.id,
        provenance=provenance,
        submissions=(),
        schedule=course.schedule,
        pools=tuple(dict.fromkeys(case.pool for case in course.cases if case.pool)),
    )


def _works(rows: Iterable[SubmissionScore], attachments: Mapping[str, Attachments]) -> Iterator[Work]:
    """Yield the parts of each scored submission that are compared with other submissions, exercise by exercise."""
    for row in sorted(rows, key=attrgetter("recipe")):
        shown, facts = attachments.get(row.submission), row.provenance
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


def _programs_of(exercise: str, catalogue: Catalogue) -> tuple[str, ...]:
    """Return the two programs that students may have without copying: the original program and our solution."""
    written = find_file_exercise(exercise)
    if written is not None:
        return stub(written), solution_of(written)
    recipe = catalogue.find(exercise)
    return recipe.broken_source(), recipe.healthy_source()


def _titles() -> Mapping[str, str]:
    titles = {}
    for exercise in exercise_ids():
        try:
            titles[exercise] = load_exercise(exercise).title
        except UserError:  # the exercise is invalid; the rows of its submissions show the reason
            titles[exercise] = exercise
    return titles
