"""The score of an answer: its row, and what its page shows."""

from grader.intake.submission import Answer
from grader.score.exhibits import Exhibits
from grader.score.scoring import Score, scored_row, tarball_flags, unscored
from grader.written.answers.examination import Examination
from grader.written.answers.points import with_points


def answer_row(answer: Answer, examination: Examination, *, sandboxed: bool) -> Score:
    """Return the score of one answer; if the grader failed on it, it is not judged."""
    exhibits = Exhibits(
        submission=answer.name,
        broken_source=None,
        fixed_source=answer.text,
        report=None,
        answer_file=answer.exercise.file,
        findings=examination.findings,
        replays=examination.outcomes,
        ignored_files=answer.ignored,
    )
    exercise, student = answer.exercise.id, answer.student
    if examination.fault:
        return Score(
            unscored(answer.name, examination.fault, student=student, exercise=exercise).row, exhibits
        )
    flags = (*examination.flags, *tarball_flags(answer.name, student, exercise, answer.ignored))
    criteria = with_points(examination, exercise)
    row = scored_row(answer.name, student, exercise, answer.sha256, criteria, flags, {}, sandboxed=sandboxed)
    return Score(row, exhibits)
