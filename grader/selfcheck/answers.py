"""Part `answers`: the canaries of every exercise whose answer is a file."""

from collections.abc import Sequence

from grader.selfcheck.section import Row, Section, Table
from grader.written.grade import AnswerGrader
from harness.written.exercise import FileExercise


def answers_section(exercises: Sequence[FileExercise], grader: AnswerGrader) -> Section:
    """Check that the reference solution of each exercise earns 100 points, and the original file none."""
    problems = {exercise.id: grader.canary_problem(exercise) for exercise in exercises}
    rows = tuple(Row((id, problem or "right"), agrees=not problem) for id, problem in problems.items())
    return Section(
        title="Answers",
        says="The reference solution earns 100 points, and the original file none.",
        tables=(Table(("exercise", "found"), rows),),
        figures=f"{sum(row.agrees for row in rows)} of {len(rows)} agree.",
        disagreements=tuple(problem for problem in problems.values() if problem),
    )
