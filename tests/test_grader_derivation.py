"""The parts of the judge of derivations: cases, formulas and mistakes, recognition, what comes back."""

import json

import numpy as np
import pytest
from deriving import by_autograd, derivation, seen

from grader.replay.replayer import Replayer
from grader.sandbox import SandboxResult
from grader.written.answers.known import load_answers, reference
from grader.written.derivation.cases import AGAIN, ORDINARY, PLAIN, WIDER, draw_cases
from grader.written.derivation.compare import factor_of, first_difference, same_values
from grader.written.derivation.plain_numpy import derivation_suspicions, imported_others
from grader.written.derivation.problems import JUDGED, Judged
from grader.written.derivation.recognise import Recogniser
from grader.written.derivation.run import run_answer
from harness.written.derivation import PROBLEMS
from harness.written.derivation.finite_differences import central_differences, relative_error
from harness.written.derivation.problem import Array

EXERCISES = ("backprop_mlp", "layernorm")
MISTAKES = [(name, mistake) for name, judged in JUDGED.items() for mistake in judged.mistakes]
# Different ways to the same numbers in plain cases, or seen in one case alone.
_IN_ONE_CASE = {
    "mask at zero": "zeros", "no largest logit": "huge", "overflow": "huge", "log of softmax": "huge",
    "one pass": "far",
}  # fmt: skip


def judged_of(name: str) -> Judged:
    return JUDGED[name]


# --- cases --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", JUDGED)
def test_the_inputs_are_those_of_the_text_alone(name: str) -> None:
    one, same, other = (draw_cases(PROBLEMS[name], text) for text in ("a", "a", "a "))
    assert one.archive() == same.archive() != other.archive()
    assert list(one.inputs) == list(other.inputs)
    for case, inputs in one.inputs.items():
        assert inputs.keys() == PROBLEMS[name].inputs.keys(), case
    sizes = one.inputs[ORDINARY]["x"].shape
    assert len(set(sizes)) == len(sizes)


def test_the_cases_have_what_they_are_there_for() -> None:
    for text in map(str, range(20)):
        mlp = draw_cases(PROBLEMS["mlp"], text).inputs
        z1 = mlp["zeros"]["x"] @ mlp["zeros"]["W1"] + mlp["zeros"]["b1"]
        assert (z1 == 0).sum() >= z1.shape[1]
        assert (z1 > 0).any()
        assert (z1 < 0).any()
        logits = np.maximum(mlp["huge"]["x"] @ mlp["huge"]["W1"] + mlp["huge"]["b1"], 0) @ mlp["huge"]["W2"]
        assert 0.9e4 < np.abs(logits + mlp["huge"]["b2"]).max() < 1.1e4
        for case in PLAIN:  # no kink within a step of finite differences
            assert np.abs(mlp[case]["x"] @ mlp[case]["W1"] + mlp[case]["b1"]).min() > 1e-4
        norm = draw_cases(PROBLEMS["layernorm"], text).inputs
        assert (norm["flat"]["x"].std(axis=1) == 0).all()
        assert abs(norm["far"]["x"].mean() - 1e6) < 2
        assert norm[AGAIN] is norm[ORDINARY]


# --- formulas, and mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", JUDGED)
def test_our_formulas_are_those_of_autograd_and_of_differences(name: str) -> None:
    judged, cases = judged_of(name), draw_cases(PROBLEMS[name], "text")
    right = by_autograd(judged.problem, cases)
    for case in (*PLAIN, WIDER):
        made = judged.formula(cases.inputs[case], frozenset())
        for output in judged.problem.outputs:
            assert relative_error(made[output], right[case][output]) < 1e-13

    def objective(given: dict[str, Array]) -> float:
        return judged.problem.objective(judged.formula(given, frozenset()), given)

    for output, of in judged.problem.gradients.items():
        found = central_differences(objective, cases.inputs[ORDINARY], of)  # type: ignore[arg-type]
        assert relative_error(found, right[ORDINARY][output]) < 1e-8


@pytest.mark.parametrize(("name", "mistake"), MISTAKES)
def test_every_mistake_is_recognised_where_it_is_made(name: str, mistake: str) -> None:
    judged, cases = judged_of(name), draw_cases(PROBLEMS[name], "text")
    looked_at = (_IN_ONE_CASE[mistake],) if mistake in _IN_ONE_CASE else PLAIN
    outputs: dict[str, dict[str, Array]] = {output: {} for output in judged.problem.outputs}
    changed = set()
    for case in looked_at:
        with np.errstate(all="ignore"):
            right = judged.formula(cases.inputs[case], frozenset())
            try:
                made = judged.formula(cases.inputs[case], frozenset([mistake]))
            except ValueError:  # its shapes do not fit here
                continue
        for output, array in made.items():
            outputs[output][case] = array
            if not same_values(array, right[output]):
                changed.add(output)
    assert changed
    recogniser = Recogniser(judged.formula, judged.mistakes, cases)
    for output in changed:
        found = recogniser.mistakes_in(output, outputs, looked_at)
        assert recogniser.told(found) == f"It looks as if {judged.mistakes[mistake]}.", output


def test_two_mistakes_are_told_together_and_none_is_invented() -> None:
    judged, cases = judged_of("mlp"), draw_cases(PROBLEMS["mlp"], "text")
    recogniser = Recogniser(judged.formula, judged.mistakes, cases)

    def outputs(wrong: frozenset[str], factor: float = 1.0) -> dict[str, dict[str, Array]]:
        made = {case: judged.formula(cases.inputs[case], wrong) for case in PLAIN}
        return {
            output: {case: made[case][output] * factor for case in PLAIN} for output in judged.problem.outputs
        }

    both = frozenset(["gradient summed", "mask missing"])
    assert recogniser.mistakes_in("dW1", outputs(both), PLAIN) == both
    assert recogniser.mistakes_in("dW1", outputs(frozenset()), PLAIN) == frozenset()
    assert recogniser.mistakes_in("dW1", outputs(frozenset(), 1.1), PLAIN) == frozenset()
    assert recogniser.told(frozenset()) == ""


# --- comparing ------------------------------------------------------------------------------------------------


def test_a_factor_is_that_of_the_batch_in_every_case() -> None:
    right = {"a": np.array([1.0, -2.0]), "b": np.array([3.0, 4.0])}
    batch = {"a": 4, "b": 1}

    def factor(a: float, b: float) -> str | None:
        return factor_of({"a": right["a"] * a, "b": right["b"] * b}, right, batch, ("a", "b"))

    assert [factor(1, 1), factor(4, 1), factor(0.25, 1)] == ["mean", "sum", "twice"]
    assert [factor(4, 4), factor(1.001, 1), factor(np.nan, 1)] == [None, None, None]
    assert factor_of({"a": right["a"]}, right, batch, ("a", "b")) is None


def test_the_entry_that_is_farthest_off_is_named() -> None:
    right = {"a": np.zeros((2, 2)), "b": np.ones((2, 2))}
    found = {"a": np.zeros((2, 2)), "b": np.array([[1.0, 1.0], [1.5, 1.2]])}
    difference = first_difference("dW", found, right, ("a", "b"))
    assert difference is not None
    assert (difference.case, difference.place, difference.found, difference.right) == (
        "b",
        "dW[1][0]",
        1.5,
        1.0,
    )
    shapes = first_difference("dW", {"a": np.zeros(4)}, right, ("a",))
    assert shapes is not None
    assert shapes.place is None
    assert first_difference("dW", right, right, ("a", "b")) is None
    nan = first_difference("dW", {"b": np.array([[1, np.nan], [1, 5]])}, right, ("b",))
    assert nan is not None
    assert nan.place == "dW[0][1]"


# --- the static look --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exercise", EXERCISES)
def test_no_right_answer_is_suspicious(exercise: str) -> None:
    source = reference(derivation(exercise))
    for answer in load_answers(exercise):
        if not answer.waits and "form.numpy" not in answer.loses and "form" not in answer.loses:
            assert derivation_suspicions(answer.source(source)) == (), answer.id


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import torch", "imports torch"),
        ("from torch import nn", "imports torch"),
        ("import numpy.lib", "imports numpy.lib"),
        ("from numpy.ctypeslib import load_library", "imports from numpy.ctypeslib"),
        ("from numpy import load", "takes load from NumPy"),
        ("from numpy import *", "takes * from NumPy"),
        ("from . import other", "imports ."),
        ("import numpy as np\nnp.load('x')", "uses np.load"),
        ("import numpy as np\nnp.random.seed(0)", "uses np.random"),
        ("import numpy as np\nnp.linalg.solve(1, 2)", "uses numpy.linalg.solve"),
        ("import numpy as np\nnp.exp = 3", "changes numpy.exp"),
        ("import numpy as np\nnp.linalg.norm = 3", "changes numpy.linalg.norm"),
        ("import numpy as np\nnp = 3", "gives np another meaning"),
        ("import numpy as np\nx = np", "hands the module np on"),
        ("import numpy as np\nnp.vectorize(abs)", "calls np.vectorize, a loop that is not counted"),
        ("import numpy as np\nx = np.zeros(3)\nx.tofile('y')", "uses .tofile"),
        ("x = ().__class__", "looks into an object (__class__)"),
        ("def f():\n    yield\nf().gi_frame", "looks into an object (gi_frame)"),
        ("class A:\n    pass\nA.f_back = 1\nA.f_back", "looks into an object (f_back)"),
        ("eval('1')", "uses eval"),
        ("getattr(1, 'x')", "uses getattr"),
        ("open('x')", "uses open"),
        ("__builtins__", "uses __builtins__"),
        ("__import__('torch')", "uses __import__"),
        ("def f():\n    global x\n    x = 1", "keeps something from call to call (x)"),
        ("'{0.__class__}'.format(1)", "uses .format"),
        ("(" * 300 + ")" * 300, "the file cannot be read"),
    ],
)
def test_what_is_not_plain_is_named(code: str, said: str) -> None:
    assert said in " | ".join(item.message for item in derivation_suspicions(code))


def test_an_import_of_another_module_is_told_with_its_line() -> None:
    assert imported_others("import numpy\n\nimport os.path") == "line 3 imports os.path"
    assert imported_others("import numpy as np\nimport math\nfrom typing import NamedTuple") == ""
    assert imported_others("import (") == ""


# --- what comes back --------------------------------------------------------------------------------------------


class Answering(Replayer):
    """Gives one result, whatever is run."""

    def __init__(self, result: SandboxResult) -> None:
        self.result = result

    def run(self, *arguments: object, **options: object) -> SandboxResult:
        """Return the result."""
        return self.result


def whole(**changes: object) -> dict[str, object]:
    case = {"shapes": {"loss": []}, "problems": {}, "steps": {"loss": 3}, "changed": [], "evaluations": 0}
    return {**case, **changes}


@pytest.mark.parametrize(
    ("case", "array"),
    [
        (whole(), bytes(7)),
        (whole(), None),
        (whole(shapes={"loss": [-1, -1]}), bytes(8)),
        (whole(shapes={"loss": [1] * 9}), bytes(8)),
        (whole(shapes={"loss": [2**62, 4]}), bytes(8)),
        (whole(shapes={"loss": ["one"]}), bytes(8)),
        (whole(shapes={"../loss": []}), bytes(8)),
        (whole(steps={"loss": "many"}), bytes(8)),
        (whole(more=1), bytes(8)),
        ({}, bytes(8)),
    ],
)
def test_nonsense_that_comes_back_is_the_answers_own_doing(
    case: dict[str, object], array: bytes | None
) -> None:
    cases = draw_cases(PROBLEMS["mlp"], "text")
    report = {"problem": "", "cases": dict.fromkeys(cases.inputs, case)}
    files = {"report.json": json.dumps(report).encode()}
    files |= {f"{name}/loss": array for name in cases.inputs if array is not None}
    run = run_answer(PROBLEMS["mlp"], "a.py", "text", cases, Answering(SandboxResult("OK", 0, files=files)))
    assert (run.status, run.cases) == ("RE", {})
    assert run.message.startswith("it left no whole result")


def test_what_is_whole_comes_back_as_arrays() -> None:
    cases = draw_cases(PROBLEMS["mlp"], "text")
    report = {"problem": "", "cases": {name: whole() for name in cases.inputs}}
    files = {"report.json": json.dumps(report).encode()}
    files |= {f"{name}/loss": np.array(2.5).tobytes() for name in cases.inputs}
    run = run_answer(PROBLEMS["mlp"], "a.py", "text", cases, Answering(SandboxResult("OK", 0, files=files)))
    assert {float(called.arrays["loss"]) for called in run.cases.values()} == {2.5}


@pytest.mark.parametrize("status", ["RE", "SG", "TO", "OL", "ML", "XX"])
def test_a_process_that_ends_badly_says_how(status: str) -> None:
    result = SandboxResult(status, 1, message="so it was")  # type: ignore[arg-type]
    run = run_answer(PROBLEMS["mlp"], "a.py", "text", draw_cases(PROBLEMS["mlp"], "text"), Answering(result))
    assert (run.status, run.message, run.exit_code) == (status, "so it was", 1)


# --- counts --------------------------------------------------------------------------------------------------


def test_growth_is_one_instruction_for_each_sample_at_least() -> None:
    looping = next(answer for answer in load_answers("backprop_mlp") if answer.id == "loop_over_samples")
    source = reference(derivation("backprop_mlp"))
    assert seen("backprop_mlp", source).growth("large", "larger", "backward") == 0
    assert seen("backprop_mlp", looping.source(source)).growth("large", "larger", "backward") > 100
