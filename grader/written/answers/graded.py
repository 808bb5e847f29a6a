"""The row of an answer, and what its page shows."""

from grader.graded import Graded, common_flags, row_without_checks, sandbox_flags, sandbox_warning
from grader.intake.answer import Answer
from grader.score.exhibits import Exhibits
from grader.score.verdict import SubmissionScore, rescored
from grader.written.answers.examination import Examination
from grader.written.answers.points import with_points


def answer_row(answer: Answer, examination: Examination, *, sandboxed: bool) -> Graded:
    """Return the row of one answer; where a check is open, so is the row, and where we failed, it has none."""
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
    if examination.fault:
        row = row_without_checks(
            answer.name, answer.student, answer.exercise.id, "not judged", examination.fault
        )
        return Graded(row=row, exhibits=exhibits)
    told = common_flags(answer.name, answer.student, answer.exercise.id, answer.ignored)
    row = SubmissionScore(
        submission=answer.name,
        student=answer.student,
        recipe=answer.exercise.id,
        status="not judged",
        total=None,
        criteria={},
        flags=(*sandbox_flags(sandboxed=sandboxed), *examination.flags, *told),
        provenance={
            **sandbox_warning(sandboxed=sandboxed),
            "tarball_sha256": answer.sha256,
            "sandbox": sandboxed,
        },
    )
    return Graded(row=rescored(row, with_points(examination, answer.exercise.id)), exhibits=exhibits)
