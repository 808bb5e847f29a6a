"""Every known answer gets its declared verdict; those that must not run here get it in the sandbox."""

from pathlib import Path

import pytest
from deriving import derivation, examined
from sandbox_marks import needs_sandbox

from grader.replay.replayer import Replayer
from grader.sandbox import run_in_sandbox
from grader.score.verdict import total_of
from grader.written.answers.known import KnownAnswer, complaint, load_answers, reference
from grader.written.answers.points import load_points, with_points
from grader.written.derivation.examine import examine_derivation
from grader.written.derivation.mistaken_layernorm import MISTAKES as LAYERNORM_MISTAKES
from grader.written.derivation.mistaken_mlp import MISTAKES as MLP_MISTAKES
from harness.errors import UserError
from harness.written.exercise import stub

EXERCISES = ("backprop_mlp", "layernorm")
# These end the process, or find torch where no sandbox hides it.
ONLY_IN_THE_SANDBOX = ("exits", "torch", "torch_if_there")
ANSWERS = [(exercise, answer) for exercise in EXERCISES for answer in load_answers(exercise)]


def name(value: object) -> str:
    return value.id if isinstance(value, KnownAnswer) else str(value)


@pytest.mark.parametrize(
    ("exercise", "answer"), [item for item in ANSWERS if item[1].id not in ONLY_IN_THE_SANDBOX], ids=name
)
def test_a_known_answer_loses_what_was_declared(exercise: str, answer: KnownAnswer) -> None:
    found = examined(exercise, answer.source(reference(derivation(exercise))))
    assert complaint(answer, found) == ""


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("id", [*ONLY_IN_THE_SANDBOX, "reference", "finite_differences"])
def test_so_does_it_in_the_sandbox(id: str, tmp_path: Path) -> None:
    exercise = derivation("backprop_mlp")
    answer = next(answer for answer in load_answers(exercise.id) if answer.id == id)
    text = answer.source(reference(exercise))
    replayer = Replayer(run_in_sandbox, tmp_path)
    found = examine_derivation(exercise, text, replayer)
    assert complaint(answer, found) == ""
    if id not in ONLY_IN_THE_SANDBOX:
        points = [total_of(with_points(one, exercise.id)) for one in (found, examined(exercise.id, text))]
        assert points[0] == points[1]


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_reference_earns_everything_and_the_untouched_file_nothing(exercise: str) -> None:
    for text, total in ((reference(derivation(exercise)), 100), (stub(derivation(exercise)), 0)):
        assert total_of(with_points(examined(exercise, text), exercise)) == total


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_points_of_the_criteria_are_those_of_the_documentation(exercise: str) -> None:
    points = {name: sum(checks.values()) for name, checks in load_points(exercise).items()}
    assert points == {"form": 15, "forward": 20, "gradients": 45, "vectorization": 20}


@pytest.mark.parametrize(
    ("find", "replace", "said"),
    [
        ("beta  = 6", "beta  = 7", "add up to 101"),
        ("beta  = 6", "beta  = -6", "gradients.beta must be a number"),
        ("format_version = 1", "format_version = 2", "format_version must be 1"),
        ("[form]  ", "form = 3  #", "[form] is missing"),
    ],
)
def test_a_rubric_that_cannot_be_used_is_refused(find: str, replace: str, said: str, tmp_path: Path) -> None:
    from grader.score.solutions import SOLUTIONS

    text = (SOLUTIONS / "layernorm" / "rubric.toml").read_text()
    assert text.count(find) == 1
    (tmp_path / "layernorm").mkdir()
    (tmp_path / "layernorm" / "rubric.toml").write_text(text.replace(find, replace))
    with pytest.raises(UserError) as refusal:
        load_points("layernorm", tmp_path)
    assert said in str(refusal.value)


def test_a_rubric_of_other_checks_than_the_judges_is_a_fault_of_ours() -> None:
    examination = examined("layernorm", stub(derivation("layernorm")))
    with pytest.raises(ValueError, match="the rubric of backprop_mlp has the checks"):
        with_points(examination, "backprop_mlp")


def test_there_are_right_answers_in_many_styles_and_wrong_ones_of_every_kind() -> None:
    for exercise in EXERCISES:
        answers = load_answers(exercise)
        assert len({answer.id for answer in answers}) == len(answers) >= 25
        assert answers[0].id == "reference"
        assert sum(not answer.loses and not answer.waits for answer in answers) >= 6


@pytest.mark.parametrize("exercise", EXERCISES)
def test_most_of_the_usual_mistakes_are_made_by_some_answer(exercise: str) -> None:
    mistakes = {"backprop_mlp": MLP_MISTAKES, "layernorm": LAYERNORM_MISTAKES}[exercise]
    told = " ".join(
        finding
        for answer in load_answers(exercise)
        if answer.id not in ONLY_IN_THE_SANDBOX
        for table in examined(exercise, answer.source(reference(derivation(exercise)))).findings
        for row in table.rows
        for finding in row
    )
    missed = {id for id, words in mistakes.items() if words not in told}
    # Only seen in cases of their own, or never without another.
    assert missed <= {
        "mask at zero", "no largest logit", "overflow", "log of softmax", "mask of the output", "W1 not transposed",
        "one pass", "unbiased term", "eps outside, derived", "gamma from centred", "beta not added",
        "gamma after beta",
    }  # fmt: skip
