"""How a derivation is called and counted, and what `make check` says of it."""

import ast
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from deriving import known_answers, solution

from harness.written.derivation import PROBLEMS, draw_cases, right_outputs
from harness.written.derivation_call import (
    CallResult,
    Results,
    StepCounter,
    TooManySteps,
    _counted_builtins,
    call_cases,
)
from harness.written.derivation_judge import check_derivation

MLP = PROBLEMS["mlp"]
CALLS = """
import numpy as np
def whole(x): return x.sum(axis=0)
def einsum(x): return np.einsum("bd,bd->d", x, x, optimize=True)
def loop(x):
    total = 0
    for row in x:
        total = total + row
    return total
def comprehension(x): return np.array([row.sum() for row in x])
def builtin_sum(x): return sum(x)
def mapped(x): return list(map(np.sum, x))
def ordered(x): return sorted(x[:, 0])
def vectorized(x): return np.vectorize(lambda v: v + 1)(x)
def along(x): return np.apply_along_axis(np.sum, 1, x)
def recursive(x): return x if len(x) < 2 else recursive(x[1:]) + x[:1]
"""
WHOLE = ("whole", "einsum")


def steps(name: str, rows: int) -> int:
    module = ModuleType("calls")
    module.__dict__["__builtins__"] = _counted_builtins()
    exec(CALLS, module.__dict__)
    x = np.random.default_rng(0).uniform(1, 2, size=(rows, 3))
    for _ in range(2):  # NumPy takes a few more the first time
        meter = StepCounter()
        meter.call(lambda: getattr(module, name)(x))
    return meter.steps


@pytest.mark.parametrize(
    "name", [node.name for node in ast.parse(CALLS).body if isinstance(node, ast.FunctionDef)]
)
def test_only_a_loop_takes_more_instructions_for_more_samples(name: str) -> None:
    more = steps(name, 64) - steps(name, 4)
    assert more == steps(name, 64) - steps(name, 4)
    assert more == 0 if name in WHOLE else more >= 60


@pytest.mark.parametrize("caught", [Exception, BaseException])
def test_a_call_that_takes_too_many_instructions_is_stopped_whatever_it_catches(
    caught: type[BaseException],
) -> None:
    def deaf() -> None:
        try:
            while True:
                len("")
        except caught:
            return

    with pytest.raises(TooManySteps):
        StepCounter(1000).call(deaf)


def called(source: str) -> Results:
    return call_cases(MLP, "backprop.py", source, {"small": draw_cases(MLP, "")["small"]})


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def forward(", "cannot be loaded: SyntaxError: '(' was never closed (backprop.py, line 1)"),
        ("x = 1 / 0\n", "cannot be loaded: ZeroDivisionError: division by zero (backprop.py, line 1)"),
        ("while True: pass\n", "takes more than 300000 instructions of Python to load"),
        ("def forward(): ...\ndef loss(): ...\n", "has no function backward"),
        ("forward = loss = backward = 3\n", "has no function forward"),
    ],
)
def test_an_answer_that_cannot_be_loaded_says_why(source: str, said: str) -> None:
    assert called(source).problem.startswith(f"backprop.py {said}")


def small(find: str, replace: str) -> CallResult:
    """Return what the edited solution gives in the small case."""
    source = solution("backprop_mlp")
    assert source.count(find) == 1
    return called(source.replace(find, replace)).cases["small"]


@pytest.mark.parametrize(
    ("find", "replace", "stage", "said"),
    [
        ("return logits, (x, z1, h, logits)", "return logits", "forward", "forward returns a value of type"),
        ('return {"W1": dW1', 'return {"w1": dW1', "backward", "backward returns no 'W1'"),
        ('"x": dx}', '"x": None}', "backward", "dx is not an array of numbers but of type NoneType"),
        ("dz1 = dh * (z1 > 0)", "dz1 = dh @ z1", "backward", "backward raised ValueError: matmul: Input"),
        ("dz1 = dh * (z1 > 0)", "raise SystemExit", "backward",
            "backward raised SystemExit (backprop.py, line 34)"),
    ],
)  # fmt: skip
def test_a_call_that_goes_wrong_says_where(find: str, replace: str, stage: str, said: str) -> None:
    found = small(find, replace)
    assert list(found.problems) == [stage]
    assert found.problems[stage].startswith(said)
    assert ("logits" in found.outputs) == (stage == "backward")


def test_inputs_follow_from_the_text_and_hold_the_special_cases() -> None:
    cases, same, other = (draw_cases(MLP, text) for text in ("a", "a", "a "))
    assert (cases["small"]["x"] == same["small"]["x"]).all()
    assert not np.array_equal(cases["square"]["x"], other["square"]["x"])
    assert len(set(cases["small"]["x"].shape)) == 2
    z1 = cases["zeros"]["x"] @ cases["zeros"]["W1"] + cases["zeros"]["b1"]
    assert (z1 == 0).any() and (z1 > 0).any() and (z1 < 0).any()
    assert 0.9e4 < np.abs(right_outputs(MLP, cases["huge"])["logits"]).max() < 1.1e4
    norm = draw_cases(PROBLEMS["layernorm"], "a")
    assert (norm["flat"]["x"].std(axis=1) == 0).all()
    assert abs(norm["far"]["x"].mean() - 1e6) < 2


@pytest.mark.parametrize(
    ("id", "failed"),
    [
        ("reference", set()),
        ("largest_logit_left_in", {"forward: stable", "gradients: stable"}),
        ("function_missing", {"answer: loads"}),
        ("torch", {"form: numpy"}),
    ],
)
def test_make_check_names_the_checks_that_fail(id: str, failed: set[str]) -> None:
    items = check_derivation("mlp", Path("answer.py"), known_answers("backprop_mlp")[id]["source"])
    assert {item.id for item in items if item.outcome != "passed"} == failed
