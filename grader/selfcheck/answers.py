"""The canaries of the exercises whose answer is a file: the reference solution, and the original file."""

from collections.abc import Sequence

from grader.selfcheck.section import Section
from grader.written.grade import AnswerGrader
from harness.written.exercise import FileExercise


def answers_section(exercises: Sequence[FileExercise], grader: AnswerGrader) -> Section:
    """Check that the reference solution of each exercise earns 100 points, and the original file none."""
    problems = {exercise.id: grader.canary_problem(exercise) for exercise in exercises}
    rows = tuple((id, problem or "right") for id, problem in problems.items())
    return Section("Answers", (), ("exercise", "canaries"), rows, tuple(filter(None, problems.values())))
