"""`grader new-written`: the example that it writes is an exercise whose wrong answers lose what they declare."""

from pathlib import Path

import pytest

from grader.selfcheck.new_written import write_exercise
from grader.selfcheck.written import answer_problems, gradient_problems
from grader.written.judgement import Judgement, checks_of
from grader.written.known_answers import known_answers, reference_of, solution_of
from harness.errors import UserError
from harness.written.calls import call_cases
from harness.written.comparison import judge_answer, plan_of
from harness.written.exercise import FunctionExercise, load_exercise, stub
from harness.written.inputs import draw_inputs


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for name in ("exercises", "solutions"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_the_example_has_the_name_that_it_was_given(folders: Path) -> None:
    exercises, solutions = folders / "exercises", folders / "solutions"
    files = write_exercise("mine", exercises=exercises, solutions=solutions)
    assert {path.relative_to(folders).as_posix() for path in files} == {
        "exercises/mine/judge.toml", "exercises/mine/PROMPT.md", "exercises/mine/mine.py",
        "solutions/mine/mine.py", "solutions/mine/answers.toml",
    }  # fmt: skip
    exercise = load_exercise("mine", exercises)
    assert exercise.title == "A linear layer by hand"
    assert isinstance(exercise, FunctionExercise)
    assert "NotImplementedError" in stub(exercise, exercises)
    assert "`mine.py`" in (exercises / "mine" / "PROMPT.md").read_text()
    with pytest.raises(UserError, match="There is already an exercise mine: choose another name"):
        write_exercise("mine", exercises=exercises, solutions=solutions)


@pytest.mark.parametrize(("name", "said"), [("Mine!", "cannot be a name"), ("layernorm", "already an exercise")])
def test_a_name_that_cannot_be_used_is_refused(name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        write_exercise(name)


def test_the_example_proves_itself_and_a_solution_with_wrong_gradients_does_not(folders: Path) -> None:
    write_exercise("mine", exercises=folders / "exercises", solutions=folders / "solutions")
    exercise = load_exercise("mine", folders / "exercises")
    assert isinstance(exercise, FunctionExercise)
    solutions = folders / "solutions"
    assert list(gradient_problems(exercise, solutions)) == []
    known, solution = known_answers("mine", solutions), solution_of(exercise, solutions)
    assert {answer.id for answer in known if answer.remedy} == {"weights_not_transposed", "bias_not_summed"}
    cases = draw_inputs(exercise, "a")
    reference = reference_of(exercise, cases, solutions)
    for answer in known:
        text = answer.source(solution)
        found = judge_answer(exercise, text, cases, call_cases(plan_of(exercise), text, cases), reference)
        assert list(answer_problems(answer, Judgement(checks=checks_of(found)), exercise)) == []
        lies = answer.model_copy(update={"loses": ("code.W",), "remedy": "another", "tells": "no such reason"})
        problems = list(answer_problems(lies, Judgement(checks=checks_of(found)), exercise))
        assert len(problems) == 3 and "not code.W" in problems[0]
    (solutions / "mine" / "mine.py").write_text(solution.replace("x.T @ dout", "2 * x.T @ dout"))
    assert "in the case small, dW differs from central differences by 5.0e-01" in "".join(
        gradient_problems(exercise, solutions)
    )
    (solutions / "mine" / "mine.py").write_text(solution.replace("x.T @ dout", "x.T @ dou"))
    with pytest.raises(UserError, match="The solution of mine fails in the case small: backward raised NameError"):
        reference_of(exercise, cases, solutions)
