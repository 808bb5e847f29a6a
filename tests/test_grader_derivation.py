"""The judge of derivations: its inputs, the outputs that are right, known answers, and what comes from the sandbox."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from deriving import EXERCISES, derivation, judged, known_answers, outcomes, solution
from sandbox_marks import needs_sandbox

from grader.replay.replayer import Replayer
from grader.sandbox import SandboxResult, run_in_sandbox
from grader.score.verdict import total_of
from grader.written.derivation import judge_derivation, run_answer
from grader.written.derivation_cases import ORDINARY, RIGHT, draw_cases, packed
from grader.written.judgement import Judgement, load_points, with_points
from grader.written.plain_numpy import doubts
from harness.written.derivation import PROBLEMS, Array, central_differences, relative_error
from harness.written.exercise import stub

MLP = PROBLEMS["mlp"]
# Without a sandbox, torch is there.
ANSWERS = [(exercise, id) for exercise in EXERCISES for id in known_answers(exercise) if id != "torch"]


# --- cases --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_inputs_follow_from_the_text_alone(name: str) -> None:
    one, same, other = (draw_cases(PROBLEMS[name], text) for text in ("a", "a", "a "))
    assert packed(one) == packed(same) != packed(other)
    for case, inputs in one.items():
        assert inputs.keys() == PROBLEMS[name].inputs.keys(), case
    sizes = one["small"]["x"].shape
    assert len(set(sizes)) == len(sizes)


@pytest.mark.parametrize("text", "abcdefghij")
def test_the_cases_are_what_their_titles_say(text: str) -> None:
    mlp = draw_cases(MLP, text)
    z1 = mlp["zeros"]["x"] @ mlp["zeros"]["W1"] + mlp["zeros"]["b1"]
    assert (z1 == 0).sum() >= z1.shape[1]
    assert (z1 > 0).any()
    assert (z1 < 0).any()
    huge = RIGHT["mlp"](mlp["huge"])["logits"]
    assert 0.9e4 < np.abs(huge).max() < 1.1e4
    for case in ORDINARY:  # no kink within a step of finite differences
        assert np.abs(mlp[case]["x"] @ mlp[case]["W1"] + mlp[case]["b1"]).min() > 1e-4
    norm = draw_cases(PROBLEMS["layernorm"], text)
    assert (norm["flat"]["x"].std(axis=1) == 0).all()
    assert abs(norm["far"]["x"].mean() - 1e6) < 2
    assert norm["again"] is norm["small"]


def by_autograd(name: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of a problem by torch's automatic differentiation in float64."""
    given = {name: torch.from_numpy(np.array(array)) for name, array in inputs.items()}
    for tensor in given.values():
        tensor.requires_grad_(tensor.is_floating_point())
    if name == "mlp":
        logits = F.relu(given["x"] @ given["W1"] + given["b1"]) @ given["W2"] + given["b2"]
        objective = F.cross_entropy(logits, given["y"])
        found = {"logits": logits, "loss": objective}
    else:
        x = given["x"]
        out = F.layer_norm(x, x.shape[1:], given["gamma"], given["beta"], given["eps"].item())
        objective, found = (out * given["dout"]).sum(), {"out": out}
    names = PROBLEMS[name].gradients
    gradients = torch.autograd.grad(objective, [given[of] for of in names.values()])
    found |= dict(zip(names, gradients, strict=True))
    return {name: tensor.detach().numpy() for name, tensor in found.items()}


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_counts_as_right_is_what_autograd_gives_in_every_case(name: str) -> None:
    problem, cases = PROBLEMS[name], draw_cases(PROBLEMS[name], "text")
    for case, inputs in cases.items():
        right, expected = RIGHT[name](inputs), by_autograd(name, inputs)
        assert right.keys() == expected.keys() == problem.outputs.keys()
        for output in problem.outputs:
            if case in ORDINARY:
                assert relative_error(right[output], expected[output]) < 1e-13, (case, output)
            else:  # where rounding decides about what should be 0
                assert np.allclose(right[output], expected[output], rtol=1e-8, atol=1e-8), (case, output)
    for output, given in problem.gradients.items():
        found = central_differences(lambda of: problem.objective(RIGHT[name](of), of), cases["small"], given)
        assert relative_error(found, RIGHT[name](cases["small"])[output]) < 1e-8


# --- known answers --------------------------------------------------------------------------------------------


def addresses(names: list[str], judgement: Judgement) -> set[str]:
    """Return the addresses of checks; the name of a criterion stands for all its checks."""
    return {
        address
        for name in names
        for address in ([name] if "." in name else [f"{name}.{item.id}" for item in judgement.checks[name]])
    }


@pytest.mark.parametrize(("exercise", "id"), ANSWERS)
def test_a_known_answer_loses_exactly_what_is_declared(exercise: str, id: str) -> None:
    answer = known_answers(exercise)[id]
    found = judged(exercise, answer["source"])
    assert outcomes(found, "failed") == addresses(answer.get("loses", []), found)
    assert outcomes(found, "could not judge") == addresses(answer.get("waits", []), found)
    assert not answer.get("tells") or answer["tells"] in str(found.checks)


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("batch_size_missing", "The gradient of W1 is not divided by the batch size."),
        ("divided_twice", "is divided by it twice"),
        ("other_sign", "Its sign is wrong."),
        ("product_transposed", "the gradient of W1 has the shape"),
        ("finite_differences", "as differences are: a derived formula is right to 1e-15"),
        ("loop_over_samples", "Backward takes "),
        ("inputs_changed", "It writes into x."),
        ("raises", "backward raised IndexError"),
        ("no_python", "cannot be loaded: SyntaxError"),
    ],
)
def test_a_reason_says_what_is_wrong(id: str, said: str) -> None:
    checks = judged("backprop_mlp", known_answers("backprop_mlp")[id]["source"]).checks
    assert said in " ".join(check.reason for of in checks.values() for check in of)


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_reference_earns_everything_and_the_original_file_nothing(exercise: str) -> None:
    for text, total in ((solution(exercise), 100), (stub(derivation(exercise)), 0)):
        assert total_of(with_points(judged(exercise, text), exercise)) == total
    points = {name: sum(checks.values()) for name, checks in load_points(exercise).items()}
    assert points == {"form": 15, "forward": 20, "gradients": 45, "vectorization": 20}


def test_a_rubric_with_other_checks_than_the_judge_is_our_fault() -> None:
    with pytest.raises(ValueError, match="and its judge has"):
        with_points(judged("layernorm", solution("layernorm")), "backprop_mlp")


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("id", ["reference", "torch", "exits", "finite_differences"])
def test_a_verdict_in_the_sandbox_is_the_same(id: str, tmp_path: Path) -> None:
    text = known_answers("backprop_mlp").get(id, {"source": "import os\nos._exit(0)\n"})["source"]
    found = judge_derivation(derivation("backprop_mlp"), text, Replayer(run_in_sandbox, tmp_path).run)
    assert found.fault == ""
    said = {"exits": "left no complete result", "torch": "No module named 'torch'"}
    if id in said:
        assert said[id] in str(found.checks)
        assert outcomes(found, "passed") == set()
    else:
        assert outcomes(found, "passed") == outcomes(judged("backprop_mlp", text), "passed")


# --- what is not plain ------------------------------------------------------------------------------------------


def test_no_right_answer_is_doubted() -> None:
    for exercise, id in ANSWERS:
        answer = known_answers(exercise)[id]
        if not answer.get("waits") and "form" not in answer.get("loses", []):
            assert doubts(answer["source"]) == (), id


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import torch", "imports torch"),
        ("from torch import nn", "imports torch"),
        ("import numpy.lib", "imports numpy.lib"),
        ("from numpy.ctypeslib import load_library", "imports load_library from numpy.ctypeslib"),
        ("from numpy import load", "imports load from numpy"),
        ("from numpy import *", "imports * from numpy"),
        ("from . import other", "imports ."),
        ("import numpy as np\nnp.load('x')", "uses numpy.load"),
        ("import numpy as np\nnp.random.seed(0)", "uses numpy.random"),
        ("import numpy as np\nnp.exp = 3", "changes numpy.exp"),
        ("import numpy as np\nnp.linalg.norm = 3", "changes numpy.linalg.norm"),
        ("import numpy as np\nnp = 3", "gives np another meaning"),
        ("import numpy as np\nx = np", "passes the module np on"),
        ("import numpy as np\nnp.vectorize(abs)", "uses numpy.vectorize"),
        ("import numpy as np\nx = np.zeros(3)\nx.tofile('y')", "looks into an object (tofile)"),
        ("x = ().__class__", "looks into an object (__class__)"),
        ("def f():\n    yield\nf().gi_frame", "looks into an object (gi_frame)"),
        ("eval('1')", "uses eval"),
        ("getattr(1, 'x')", "uses getattr"),
        ("open('x')", "uses open"),
        ("__builtins__", "uses __builtins__"),
        ("__import__('torch')", "uses __import__"),
        ("def f():\n    global x\n    x = 1", "keeps something between calls (x)"),
        ("(" * 300 + ")" * 300, "the file cannot be read"),
    ],
)
def test_what_is_not_plain_is_named(code: str, said: str) -> None:
    assert said in " | ".join(doubts(code))


# --- what comes back --------------------------------------------------------------------------------------------


def whole(**changes: object) -> dict[str, object]:
    return {"shapes": {"loss": []}, "problems": {}, "steps": {"loss": 3}, "changed": [], **changes}


def result_of(case: dict[str, object], array: bytes | None) -> SandboxResult:
    cases = draw_cases(MLP, "text")
    files = {"report.json": json.dumps({"problem": "", "cases": dict.fromkeys(cases, case)}).encode()}
    files |= {f"{name}/loss": array for name in cases if array is not None}
    return SandboxResult("OK", 0, files=files)


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
    run = run_answer(MLP, "a.py", "text", draw_cases(MLP, "text"), lambda _: result_of(case, array))
    assert (run.status, run.cases) == ("RE", {})
    assert run.message.startswith("it left no complete result")


def test_what_is_whole_comes_back_as_arrays() -> None:
    result = result_of(whole(), np.array(2.5).tobytes())
    run = run_answer(MLP, "a.py", "text", draw_cases(MLP, "text"), lambda _: result)
    assert {float(called.outputs["loss"]) for called in run.cases.values()} == {2.5}


@pytest.mark.parametrize("status", ["RE", "SG", "TO", "OL", "ML", "XX"])
def test_a_process_that_ends_badly_says_how_and_whose_fault_it_is(status: str) -> None:
    result = SandboxResult(status, 1, message="so it was")  # type: ignore[arg-type]
    found = judge_derivation(derivation("backprop_mlp"), "x = 1\n", lambda _: result)
    if status in ("XX", "SG"):  # plain code raises no signals
        assert "so it was" in found.fault
    else:
        assert f"({status}): so it was" in found.checks["form"][0].reason
        assert total_of(with_points(found, "backprop_mlp")) == 0
