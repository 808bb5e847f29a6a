"""Example submissions of answers that are one file: a right one and a wrong one of each exercise."""

from pathlib import Path

import pytest

from grader.course.demo import example_answer
from grader.intake.submission import Answer, parse_submission
from grader.written.grade import solution
from harness.written.exercise import file_exercise_ids, find_file_exercise, stub


@pytest.mark.parametrize("exercise_id", file_exercise_ids())
def test_a_right_and_a_wrong_answer_are_handed_in(exercise_id: str, tmp_path: Path) -> None:
    exercise = find_file_exercise(exercise_id)
    assert exercise is not None
    right, wrong = solution(exercise), stub(exercise)
    texts = []
    for student, answer in (("ada", right), ("bob", wrong)):
        path = example_answer(exercise, student, answer, tmp_path / student, tmp_path / "out")
        assert path == tmp_path / "out" / f"{student}_{exercise_id}.tar.gz"
        taken = parse_submission(path.name, path.read_bytes())
        assert isinstance(taken, Answer)
        assert (taken.student, taken.exercise) == (student, exercise)
        texts.append(taken.text)
    assert texts == [right, wrong]
