"""The judge of written functions: known answers, code that is not plain NumPy, and results from the sandbox."""

import json
from pathlib import Path

import pytest
from helpers.sandbox_marks import needs_sandbox
from helpers.written import EXERCISES, judged, known_source, outcomes, solution, written

from grader.replay.replayer import Replayer
from grader.sandbox import SandboxResult, run_in_sandbox
from grader.score.verdict import total_of
from grader.selfcheck.written import answer_problems, gradient_problems
from grader.written.functions import judge_functions, read_results, suspicions
from grader.written.judgement import with_points
from grader.written.known_answers import KnownAnswer, known_answers
from harness.written.inputs import draw_inputs

EXERCISE = "backprop_mlp"
# Outside the sandbox, torch can be imported.
ANSWERS = [(name, answer) for name in EXERCISES for answer in known_answers(name) if answer.id != "torch"]


@pytest.mark.parametrize(("exercise", "answer"), ANSWERS, ids=[f"{name}-{answer.id}" for name, answer in ANSWERS])
def test_a_known_answer_loses_exactly_what_is_declared(exercise: str, answer: KnownAnswer) -> None:
    source = answer.source(solution(exercise))
    assert list(answer_problems(answer, judged(exercise, source), written(exercise))) == []
    if not answer.waits and "form" not in answer.loses:
        assert suspicions(source) == ()


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_gradients_of_the_solution_agree_with_central_differences(exercise: str) -> None:
    assert list(gradient_problems(written(exercise))) == []


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("batch_size_missing", "times the right value (do you average over the batch exactly once?)"),
        ("other_sign", "It is -1 times the right value"),
        ("finite_differences", "as with finite differences. A derived formula reaches 1e-15"),
        ("inputs_changed", "The answer changes its input x."),
        ("raises", "backward raised IndexError"),
        ("no_python", "cannot be loaded: SyntaxError"),
    ],
)
def test_a_reason_says_what_is_wrong(id: str, said: str) -> None:
    checks = judged(EXERCISE, known_source(EXERCISE, id)).checks
    assert said in " ".join(check.reason for of in checks.values() for check in of)


def test_a_rubric_with_other_checks_than_the_judge_is_our_fault() -> None:
    with pytest.raises(ValueError, match="but the judge returned"):
        with_points(judged("layernorm", solution("layernorm")), written(EXERCISE))


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("id", ["reference", "torch", "exits"])
def test_a_verdict_in_the_sandbox_is_the_same(id: str, tmp_path: Path) -> None:
    text = "import os\nos._exit(0)\n" if id == "exits" else known_source(EXERCISE, id)
    found = judge_functions(written(EXERCISE), text, Replayer(run_in_sandbox, tmp_path).run)
    assert found.fault == ""
    said = {"exits": "left no complete result", "torch": "No module named 'torch'"}
    if id in said:
        assert said[id] in str(found.checks)
        assert outcomes(found, "passed") == set()
    else:
        assert outcomes(found, "passed") == outcomes(judged(EXERCISE, text), "passed")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import torch", "imports torch"),
        ("from torch import nn", "imports torch"),
        ("from . import other", "imports ."),
        ("import numpy as np\nx = np\nx.load('x')", "uses load"),
        ("import numpy as np\nx = np.zeros(3)\nx.tofile('y')", "uses tofile"),
        ("x = ().__class__", "uses __class__"),
        ("def f():\n    yield\nf().gi_frame", "uses gi_frame"),
        ("eval('1')", "uses eval"),
        ("open('x')", "uses open"),
        ("__import__('torch')", "uses __import__"),
        ("x = 1e-30j", "uses complex numbers"),
        ("(" * 300 + ")" * 300, "the file cannot be read"),
    ],
)
def test_anything_but_plain_numpy_is_named(code: str, said: str) -> None:
    assert said in " | ".join(suspicions(code))


CASES = draw_inputs(written(EXERCISE), "text")
WHOLE: dict[str, object] = {"outputs": {"loss": 2.5}, "problems": {}, "changed": []}


def files(case: dict[str, object]) -> dict[str, bytes]:
    """Return the output files of a process that reports the same for every case."""
    return {"report.json": json.dumps({"problem": "", "cases": dict.fromkeys(CASES, case)}).encode()}


def test_complete_results_are_read_as_arrays() -> None:
    read = read_results(files(WHOLE)["report.json"], CASES)
    assert {float(called.outputs["loss"]) for called in read.cases.values()} == {2.5}


@pytest.mark.parametrize(
    "case",
    [
        {**WHOLE, "outputs": {"loss": [[1], 2]}},
        {**WHOLE, "outputs": {"loss": "two"}},
        {**WHOLE, "outputs": {"loss": {}}},
        {**WHOLE, "outputs": {"loss": [10**400]}},
        {**WHOLE, "outputs": []},
        {**WHOLE, "more": 1},
        {},
    ],
)
def test_nonsense_that_comes_back_is_the_answers_own_doing(case: dict[str, object]) -> None:
    result = SandboxResult("OK", 0, files=files(case))
    # The text determines the inputs.
    found = judge_functions(written(EXERCISE), "text", lambda _: result)
    assert found.fault == ""
    assert "(RE): it left no complete result" in found.checks["form"][0].reason


@pytest.mark.parametrize("status", ["RE", "SG", "TO", "OL", "ML", "XX"])
def test_a_process_that_ends_badly_says_how_and_whose_fault_it_is(status: str) -> None:
    result = SandboxResult(status, 1, message="so it was")  # type: ignore[arg-type]
    found = judge_functions(written(EXERCISE), "x = 1\n", lambda _: result)
    if status in ("XX", "SG"):  # plain code cannot raise signals
        assert "so it was" in found.fault
    else:
        assert f"({status}): so it was" in found.checks["form"][0].reason
        assert total_of(with_points(found, written(EXERCISE))) == 0
