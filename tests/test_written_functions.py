"""Calls of the functions of an answer, its inputs, and the results of `make check` on it."""

from pathlib import Path

import numpy as np
import pytest
from helpers.written import known_source, solution, written

from grader.written.known_answers import right_outputs
from harness.submission.check_run import CheckItem
from harness.written.calls import CallResult, CallResults, call_cases
from harness.written.comparison import check_answer, plan_of
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
