"""Calls of the functions of an answer, its inputs, and the results of `make check` on it."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.written import known_source, solution, written

from grader.written.known_answers import right_outputs
from harness.errors import UserError
from harness.recipes.recipe import EXERCISES
from harness.submission.check_run import CheckItem
from harness.written.calls import CallResult, CallResults, call_cases
from harness.written.comparison import Reference, check_answer, judge_answer, plan_of
from harness.written.exercise import FunctionExercise, load_exercise
from harness.written.expected import read_reference
from harness.written.inputs import draw_inputs

MLP = written("backprop_mlp")


def called(source: str) -> CallResults:
    return call_cases(plan_of(MLP), source, {"small": draw_inputs(MLP, "")["small"]})


def check(source: str) -> list[CheckItem]:
    return check_answer(MLP, Path("answer.py"), source, read_reference(MLP))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def forward(", "cannot be loaded: SyntaxError: '(' was never closed (backprop.py, line 1)"),
        ("x = 1 / 0\n", "cannot be loaded: ZeroDivisionError: division by zero (backprop.py, line 1)"),
        ("def forward(): ...\ndef loss(): ...\n", "has no function backward"),
        ("forward = loss = backward = 3\n", "has no function forward"),
    ],
)
def test_an_answer_that_cannot_be_loaded_says_why(source: str, said: str) -> None:
    assert called(source).problem.startswith(f"backprop.py {said}")


def small(find: str, replace: str) -> CallResult:
    """Return the result of the edited solution in the small case."""
    source = solution("backprop_mlp")
    assert source.count(find) == 1
    return called(source.replace(find, replace)).cases["small"]


@pytest.mark.parametrize(
    ("find", "replace", "stages", "said"),
    [
        ("return logits, (x, z1, h, logits)", "return logits", ("forward", "loss", "backward"),
            "forward should return the pair"),
        ('return {"W1": dW1', 'return {"w1": dW1', ("backward",), "backward does not return 'W1'"),
        ('"x": dx}', '"x": None}', ("backward",), "dx is not an array of numbers but of type NoneType"),
        ("dz1 = dh * (z1 > 0)", "dz1 = dh @ z1", ("backward",), "backward raised ValueError: matmul: Input"),
        ("dz1 = dh * (z1 > 0)", "raise SystemExit", ("backward",),
            "backward raised SystemExit (backprop.py, line 34)"),
    ],
)  # fmt: skip
def test_a_call_that_goes_wrong_says_where(find: str, replace: str, stages: tuple[str, ...], said: str) -> None:
    found = small(find, replace)
    assert {call.function for call in MLP.call if {*call.results} & found.problems.keys()} == {*stages}
    assert next(iter(found.problems.values())).startswith(said)
    assert ("logits" in found.outputs) == ("forward" not in stages)


def test_inputs_follow_from_the_text_and_hold_the_special_cases() -> None:
    cases, same, other = (draw_inputs(MLP, text) for text in ("a", "a", "a "))
    assert (cases["small"]["x"] == same["small"]["x"]).all()
    assert not np.array_equal(cases["square"]["x"], other["square"]["x"])
    assert len(set(cases["small"]["x"].shape)) == 2
    z1 = cases["zeros"]["x"] @ cases["zeros"]["W1"] + cases["zeros"]["b1"]
    assert (z1 == 0).any() and (z1 > 0).any() and (z1 < 0).any()
    right = right_outputs(MLP, solution("backprop_mlp"), {"huge": cases["huge"]})
    assert 5e3 < np.abs(right["huge"]["logits"]).max() < 1e5
    norm = draw_inputs(written("layernorm"), "a")
    assert (norm["flat"]["x"].std(axis=1) == 0).all()
    assert abs(norm["far"]["x"].mean() - 1e6) < 2


@pytest.mark.parametrize(
    ("id", "failed"),
    [
        ("reference", set()),
        ("largest_logit_left_in", {"forward: stable", "gradients: stable"}),
        ("function_missing", {"answer: loads"}),
        ("torch", {"form: imports"}),
    ],
)
def test_make_check_names_the_checks_that_fail(id: str, failed: set[str]) -> None:
    items = check(known_source("backprop_mlp", id))
    assert {item.id for item in items if item.outcome != "passed"} == failed


def test_one_exception_is_told_once_and_what_was_not_judged_is_open() -> None:
    source = known_source("backprop_mlp", "reference")
    begin = source.index("def forward(")
    body = source.index(":\n", source.index(")", begin)) + 2
    items = check(f"{source[:body]}    raise ValueError('mine')\n{source[body:]}")
    told = [item.message for item in items if item.outcome == "failed"]
    assert sum("mine" in message for message in told) == 1
    assert len([message for message in told if message.endswith("failed for the same reason.")]) == len(told) - 1 > 1
    assert [item for item in items if item.outcome == "could not judge"]


def test_make_check_does_not_promise_what_only_grading_can_judge() -> None:
    items = check(known_source("backprop_mlp", "reference"))
    [form] = (item for item in items if item.id == "form: numpy")
    assert "the grader asks the instructor" in form.message


def test_make_check_gives_the_remedy_of_a_mistake_that_is_made_in_another_way() -> None:
    """The wrong solution does not divide by the batch size, and this answer multiplies by it afterwards."""
    undo = "    dW1, db1, dx = dW1 * len(y), db1 * len(y), dx * len(y)\n"
    source = solution("backprop_mlp").replace("    return {", f"{undo}    return {{")
    failed = next(item for item in check(source) if item.outcome == "failed")
    assert "divide the gradient of the logits by the number of samples" in failed.message
    other = solution("backprop_mlp").replace("    return {", "    dW1 = 3 * dW1\n    return {")
    failed = next(item for item in check(other) if item.outcome == "failed")
    assert "Write down the shapes of all factors" in failed.message


def test_expected_outputs_of_another_judge_file_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "backprop_mlp"
    shutil.copytree(EXERCISES / "backprop_mlp", folder)
    assert read_reference(MLP, tmp_path).right.keys() == read_reference(MLP).right.keys()
    judge = folder / "judge.toml"
    judge.write_text(judge.read_text() + "\n")
    with pytest.raises(UserError, match=r"expected.txt belongs to another judge.toml: restore the original file"):
        read_reference(MLP, tmp_path)
    (folder / "expected.txt").write_text("x")
    with pytest.raises(UserError, match=r"expected.txt was not written by this version"):
        read_reference(MLP, tmp_path)
    (folder / "expected.txt").unlink()
    with pytest.raises(UserError, match=r"There is no .*expected.txt"):
        read_reference(MLP, tmp_path)


JUDGE = """\
format_version = 1
kind = "functions"
title = "A softmax"
file = "mine.py"
sizes = ["N", "C"]

[inputs]
x = { draw = "normal", shape = ["N", "C"] }
hidden = { draw = "triangle", shape = ["N", "C"] }

[[call]]
function = "softmax"
arguments = ["x", "hidden"]
returns = { p = "p", shape = "shape", error = "error" }

[[case]]
id = "small"
says = "a small batch"

[[item]]
id = "a.p"
title = "The values"
points = 40
outputs = ["p"]
[[item]]
id = "a.shapes"
title = "The shape"
points = 10
compare = "shapes"
outputs = ["p"]
[[item]]
id = "a.exact"
title = "The sizes"
points = 10
compare = "exact"
outputs = ["shape"]
[[item]]
id = "a.sums"
title = "Sums"
points = 10
compare = "sums"
outputs = ["p"]
[[item]]
id = "a.zeros"
title = "Hidden entries"
points = 10
compare = "zeros"
outputs = ["p"]
where = "hidden"
[[item]]
id = "a.at_most"
title = "A small error"
points = 10
compare = "at_most"
outputs = ["error"]
bound = 0.5
[[item]]
id = "a.text"
title = "A text"
points = 10
compare = "person"
constant = "WHY"
"""
SOFTMAX = """\
import numpy as np

WHY = "because"


def softmax(x, hidden):
    e = np.where(hidden, 0, np.exp(x))
    p = e / e.sum(axis=1, keepdims=True)
    return {"p": p, "shape": x.shape, "error": 0.25}
"""


@pytest.mark.parametrize(
    ("find", "replace", "failed", "said"),
    [
        ("because", "why not", set(), ""),
        ("axis=1", "axis=0", {"p", "sums"}, "has a sum of"),
        ("p = e /", "p = 2 * e /", {"p", "sums"}, "has a sum of 2 along axis -1, but it should be 1."),
        ("p = e /", "p = (e + 0.1) /", {"p", "sums", "zeros"}, "but should be 0."),
        ("p = e /", "p = 0 * e /", {"p", "sums", "zeros"}, "p is 0 everywhere."),
        ('"p": p', '"p": p[0]', {"p", "shapes", "sums", "zeros"}, "has the shape"),
        ('"shape": x.shape', '"shape": x.shape[::-1]', {"exact"}, "shape is"),
        ('"shape": x.shape', '"shape": x.shape[:1]', {"exact"}, "has the shape (1,) instead of (2,)."),
        ('"error": 0.25', '"error": 0.75', {"at_most"}, "error is 0.75 but should be at most 0.5."),
        ('"error": 0.25', '"error": 0', {"at_most"}, "rounding alone gives a larger number"),
        ('WHY = "because"', "", {"text"}, "The file assigns no text to WHY."),
        ("e = np", "raise ValueError('mine')\n    e = np",
            {"p", "shapes", "exact", "sums", "zeros", "at_most", "text"}, "softmax raised ValueError: mine"),
    ],
)  # fmt: skip
def test_each_comparison_fails_for_the_answers_that_it_is_about(
    find: str, replace: str, failed: set[str], said: str, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "judge.toml").write_text(JUDGE)
    exercise = load_exercise("mine", tmp_path)
    assert isinstance(exercise, FunctionExercise)
    cases, source = draw_inputs(exercise, "a"), SOFTMAX.replace(find, replace)
    assert source != SOFTMAX
    reference = Reference(right_outputs(exercise, SOFTMAX, cases))
    found = judge_answer(exercise, source, cases, call_cases(plan_of(exercise), source, cases), reference)
    assert {one.id for one in found if one.points == 0} == failed
    assert said in " ".join(one.reason for one in found if one.points == 0)
    assert [one.points for one in found if one.id == "text"] == [0 if "text" in failed else None]
