"""How a derivation is called, counted and checked on the student's machine, and called in the sandbox alike."""

import contextlib
from types import ModuleType

import numpy as np
import pytest
from deriving import derivation, known_answers, solution

from harness.written.derivation import PROBLEMS, WrongForm, central_differences, relative_error
from harness.written.derivation_call import (
    MOST_STEPS,
    Called,
    StepCounter,
    TooManySteps,
    _counted_builtins,
    call_answer,
    load_answer,
    looping_stage,
)
from harness.written.derivation_check import GROWN, LARGE, LARGER, self_check

MLP = PROBLEMS["mlp"]
SIZES = {"B": 4, "D": 5, "H": 7, "C": 3}
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
def builtin_max(x): return max(x[:, 0])
def mapped(x): return list(map(np.sum, x))
def filtered(x): return list(filter(None, x[:, 0]))
def ordered(x): return sorted(x[:, 0])
def vectorized(x): return np.vectorize(lambda v: v + 1)(x)
def along(x): return np.apply_along_axis(np.sum, 1, x)
def printed(x): print(x, f"{x}", repr(x))
def recursive(x): return x if len(x) < 2 else recursive(x[1:]) + x[:1]
"""
LOOPS = (
    "loop", "comprehension", "builtin_sum", "builtin_max", "mapped", "filtered", "ordered", "vectorized", "along",
    "recursive",
)  # fmt: skip


def done(source: str, sizes: dict[str, int] = SIZES) -> Called:
    answer = load_answer(source, "backprop.py", MLP)
    return call_answer(MLP, answer, MLP.draw(np.random.default_rng(0), sizes), "backprop.py")


def edited(find: str, replace: str) -> str:
    source = solution("backprop_mlp")
    assert source.count(find) == 1
    return source.replace(find, replace)


# --- counting -----------------------------------------------------------------------------------------------


def steps(name: str, rows: int) -> int:
    module = ModuleType("calls")
    module.__dict__["__builtins__"] = _counted_builtins()
    exec(CALLS, module.__dict__)
    x = np.random.default_rng(0).uniform(1, 2, size=(rows, 3))
    for _ in range(2):  # NumPy takes a few more the first time
        meter = StepCounter(MOST_STEPS)
        meter.call(lambda: getattr(module, name)(x))
    return meter.steps


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_takes_more_instructions_for_more_samples_whoever_makes_it(name: str) -> None:
    few, many = steps(name, 4), steps(name, 64)
    assert many - few >= 60
    assert (few, many) == (steps(name, 4), steps(name, 64))


@pytest.mark.parametrize("name", ["whole", "einsum"])
def test_what_is_done_for_all_at_once_takes_as_many(name: str) -> None:
    assert steps(name, 4) == steps(name, 64) > 0


def test_a_call_that_takes_too_many_is_stopped_whatever_it_catches() -> None:
    def stubborn() -> None:
        while True:
            with contextlib.suppress(Exception):
                len("")

    counter = StepCounter(1000)
    with pytest.raises(TooManySteps):
        counter.call(stubborn)
    assert counter.steps == 1001


def test_a_call_that_catches_the_stop_is_stopped_at_its_end() -> None:
    def deaf() -> None:
        try:
            while True:
                len("")
        except BaseException:
            return

    with pytest.raises(TooManySteps):
        StepCounter(1000).call(deaf)


# --- calling ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exercise_id", ["backprop_mlp", "layernorm"])
def test_the_reference_returns_every_output_and_takes_as_many_steps_for_any_size(exercise_id: str) -> None:
    exercise = derivation(exercise_id)
    problem = PROBLEMS[exercise.problem]
    answer = load_answer(solution(exercise_id), exercise.file, problem)
    found = []
    for sizes in (SIZES, LARGE, LARGER):
        inputs = problem.draw(np.random.default_rng(0), sizes)
        called = call_answer(problem, answer, inputs, exercise.file)
        assert (called.problems, called.changed) == ({}, [])
        assert {name: array.shape for name, array in called.outputs.items()} == {
            name: problem.shape(name, inputs) for name in problem.outputs
        }
        found.append(called)
    assert found[0].steps == found[1].steps == found[2].steps
    assert looping_stage(found[1], found[2], GROWN) == ""


def test_a_loop_is_named_with_its_stage_and_counts() -> None:
    looping = known_answers("backprop_mlp")["loop_over_samples"]["source"]
    clause = looping_stage(done(looping, LARGE), done(looping, LARGER), GROWN)
    assert clause.startswith("backward takes ")
    assert clause.endswith(" with larger arrays")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def forward(", "cannot be loaded: SyntaxError: '(' was never closed (backprop.py, line 1)"),
        ("x = 1 / 0\n", "cannot be loaded: ZeroDivisionError: division by zero (backprop.py, line 1)"),
        ("raise SystemExit(1)\n", "cannot be loaded: SystemExit: 1 (backprop.py, line 1)"),
        ("while True: pass\n", "takes more than 300000 instructions of Python to load"),
        ("def forward(): ...\ndef loss(): ...\n", "has no function backward"),
        ("forward = loss = backward = 3\n", "has no function forward"),
    ],
)
def test_what_cannot_be_loaded_says_why(source: str, said: str) -> None:
    with pytest.raises(WrongForm) as refusal:
        load_answer(source, "backprop.py", MLP)
    assert str(refusal.value).startswith(f"backprop.py {said}")


@pytest.mark.parametrize(
    ("find", "replace", "stage", "said"),
    [
        (
            "    return logits, (x, z1, h, logits)",
            "    return logits",
            "forward",
            "forward returns a value of type",
        ),
        (
            "    return logits, (x, z1, h, logits)",
            "    pass",
            "forward",
            "forward returns nothing instead of the pair",
        ),
        ('return {"W1": dW1', 'return {"w1": dW1', "backward", "backward returns no 'W1'"),
        ('"x": dx}', '"x": None}', "backward", "dx is not an array of numbers but of type NoneType"),
        ('"x": dx}', '"x": [[1], [2, 3]]}', "backward", "dx is not an array of numbers but of type list"),
        ('"x": dx}', '"x": dx * 1j}', "backward", "dx is not an array of numbers but of type ndarray"),
        (
            "dz1 = dh * (z1 > 0)",
            "dz1 = dh @ z1",
            "backward",
            "backward raised ValueError: matmul: Input operand 1 has",
        ),
        (
            "dz1 = dh * (z1 > 0)",
            "raise SystemExit",
            "backward",
            "backward raised SystemExit (backprop.py, line 34)",
        ),
    ],
)
def test_a_call_that_goes_wrong_says_where(find: str, replace: str, stage: str, said: str) -> None:
    found = done(edited(find, replace))
    assert list(found.problems) == [stage]
    assert found.problems[stage].startswith(said)
    assert ("logits" in found.outputs) == (stage == "backward")


def test_inputs_that_were_written_into_are_named_and_those_of_others_stay() -> None:
    source = edited(
        "    return logits, (x", '    x += 1\n    params["b2"][0] = np.nan\n    return logits, (x'
    )
    assert done(source).changed == ["x", "b2"]


# --- differences --------------------------------------------------------------------------------------------


def test_central_differences_of_a_cubic_are_its_derivative() -> None:
    x = np.array([[1.0, -2.0], [0.5, 3.0]])
    found = central_differences(lambda given: float((given["x"] ** 3).sum()), {"x": x, "y": x}, "x")
    assert relative_error(found, 3 * x**2) < 1e-9


@pytest.mark.parametrize(
    ("found", "error"),
    [
        (np.array([1.0, 2.0]), 0.0),
        (np.array([1.0, 4.0]), 0.5),
        (np.array([1.0, np.nan]), np.inf),
        (np.array([[1.0, 2.0]]), np.inf),
        (np.array([0.0, 0.0]), 1.0),
    ],
)
def test_the_relative_error_is_the_largest_difference_over_the_largest_entry(
    found: np.ndarray[tuple[int, ...], np.dtype[np.float64]], error: float
) -> None:
    assert relative_error(found, np.array([1.0, 2.0])) == error


# --- make check ---------------------------------------------------------------------------------------------


def check_items(exercise_id: str, source: str) -> dict[str, tuple[str, str]]:
    exercise = derivation(exercise_id)
    with np.errstate(all="ignore"):
        items = list(self_check(PROBLEMS[exercise.problem], source, exercise.file))
    assert len({item.id for item in items}) == len(items)
    return {item.id: (item.outcome, item.message) for item in items}


@pytest.mark.parametrize(
    ("exercise_id", "id", "failed"),
    [
        ("backprop_mlp", "reference", set()),
        ("backprop_mlp", "layers_as_classes", set()),
        ("layernorm", "reference", set()),
        ("layernorm", "step_by_step", set()),
        ("backprop_mlp", "no_mask", {"gradient: W1", "gradient: b1", "gradient: x"}),
        ("backprop_mlp", "bias_of_one_row", {"shape: db1", "shape: db2", "gradient: b1", "gradient: b2"}),
        ("backprop_mlp", "largest_logit_left_in", {"special: huge"}),
        ("backprop_mlp", "builtin_sum", {"loops"}),
        ("backprop_mlp", "inputs_changed", {"inputs"}),
        ("backprop_mlp", "forward_alone", {"answer: backward"}),
        ("backprop_mlp", "function_missing", {"answer: loads"}),
        ("backprop_mlp", "torch", {"imports"}),
        ("layernorm", "mean_term_missing", {"gradient: x"}),
        ("layernorm", "eps_outside", {"value: out", "gradient: x", "special: far"}),
        ("layernorm", "one_pass", {"special: far"}),
        ("layernorm", "loop_over_features", {"loops"}),
    ],
)
def test_make_check_finds_what_can_be_found_without_the_answer(
    exercise_id: str, id: str, failed: set[str]
) -> None:
    items = check_items(exercise_id, known_answers(exercise_id)[id]["source"])
    assert {item for item, (outcome, _) in items.items() if outcome != "passed"} == failed


def test_a_foreign_import_is_named_before_anything_is_loaded() -> None:
    items = check_items("backprop_mlp", "import torch\nraise RuntimeError\n")
    assert items == {
        "imports": ("failed", "backprop.py, line 1 imports torch: you may use only NumPy."),
    }
