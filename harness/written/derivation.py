"""The problems of the derivation exercises: what an answer's functions take and return, and inputs to call them with.

An answer is a Python file with the functions of its problem, a forward and a backward pass in NumPy. A problem says how
to call them (`stages`), which shapes they return, and which output is the gradient of which input.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Inputs = Mapping[str, Array]
Shape = tuple[str, ...]
# Calls one function of an answer with the inputs and with what earlier stages stored; returns outputs by name.
Stage = Callable[[ModuleType, Inputs, dict[str, Any]], dict[str, Any]]

# Modules that do not differentiate anything themselves.
ALLOWED_IMPORTS = ("numpy", "math", "typing", "__future__")
# The cube root of float64's rounding error is 6e-6: there truncation and rounding errors are equal (Nocedal and Wright,
# "Numerical Optimization", 2nd ed., section 8.1).
STEP = 6e-6
# Inputs of a ReLU stay this far from 0, so that a finite difference does not cross the kink.
_KINK = 1e-3

# What the special inputs of the problems are, after "with".
SPECIAL_CASES = {
    "zeros": "ReLU inputs of exactly 0",
    "huge": "logits of 10,000",
    "flat": "samples whose features are all equal",
    "far": "samples around a million",
}


class WrongForm(Exception):
    """A function returned something of the wrong form; the message says what and what is expected."""


@dataclass(frozen=True)
class Problem:
    """What an answer must do.

    inputs, outputs: shapes in terms of sizes such as B, the number of samples.
    gradients: output name to the input by which it is the derivative of `objective`, a number.
    stages: function name to how it is called, in order; the others need what the first one returns.
    draw: random inputs of given sizes, at which the objective can be differentiated.
    special: inputs on which usual mistakes show, by a key of `SPECIAL_CASES`.
    formulas: the forward pass as the exercise's docstring writes it, for ordinary numbers.
    batch_mean: the loss and its gradients are means over the batch.
    """

    name: str
    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Shape]
    gradients: Mapping[str, str]
    stages: Mapping[str, Stage]
    objective: Callable[[Inputs, Inputs], float]
    draw: Callable[[np.random.Generator, Mapping[str, int]], dict[str, Array]]
    special: Callable[[np.random.Generator, Mapping[str, int]], dict[str, dict[str, Array]]]
    formulas: Callable[[Inputs], dict[str, Array]]
    batch_mean: bool

    def shape(self, output: str, inputs: Inputs) -> tuple[int, ...]:
        """Return the shape that an output must have for these inputs."""
        sizes = {
            size: length
            for given, symbols in self.inputs.items()
            for size, length in zip(symbols, inputs[given].shape, strict=True)
        }
        return tuple(sizes[size] for size in self.outputs[output])


def foreign_imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each imported module that an answer may not use."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        else:
            continue
        for name in names:
            if name.split(".")[0] not in ALLOWED_IMPORTS:
                yield node.lineno, name


def central_differences(objective: Callable[[Inputs], float], inputs: Inputs, name: str) -> Array:
    """Return the derivative of `objective(inputs)` by each entry of one input; it calls twice per entry."""
    moved = {other: np.array(array) for other, array in inputs.items()}
    entries, found = moved[name].reshape(-1), np.zeros(inputs[name].size)
    for place, value in enumerate(inputs[name].reshape(-1)):
        entries[place] = value + STEP
        above = objective(moved)
        entries[place] = value - STEP
        below = objective(moved)
        entries[place] = value
        found[place] = (above - below) / (2 * STEP)
    return found.reshape(inputs[name].shape)


def relative_error(found: Array, right: Array) -> float:
    """Return the largest difference over the largest entry; infinity for another shape or a non-finite entry.

    Entries are not divided one by one: next to zero, rounding alone gives any quotient.
    """
    if found.shape != right.shape or not (np.isfinite(found).all() and np.isfinite(right).all()):
        return float("inf")
    scale = max(np.abs(found).max(initial=0.0), np.abs(right).max(initial=0.0))
    return float(np.abs(found - right).max(initial=0.0) / scale) if scale > 0 else 0.0


def worst_entry(name: str, found: Array, right: Array) -> str:
    """Return a clause that names the entry that is farthest from the right one; both arrays have one shape."""
    distance = np.abs(np.nan_to_num(found - right, nan=np.inf))
    place = np.unravel_index(np.argmax(distance), right.shape)
    where = name + "".join(f"[{index}]" for index in place)
    return f"{where} is {found[place]:.6g} and should be {right[place]:.6g}"


def _pair(returned: object, first: str) -> tuple[Any, Any]:
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise WrongForm(f"forward returns {_described(returned)} instead of the pair ({first}, cache)")
    return returned


def _gradients(returned: object, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the gradients of a dictionary under the names of the outputs."""
    expected = "a dictionary with the keys " + ", ".join(f'"{name}"' for name in names.values())
    if not isinstance(returned, dict):
        raise WrongForm(f"backward returns {_described(returned)} instead of {expected}")
    missing = [name for name in names.values() if name not in returned]
    if missing:
        raise WrongForm(f"backward returns no {missing[0]!r}; it should return {expected}")
    return {output: returned[name] for output, name in names.items()}


def _described(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return f"a value of type {type(value).__name__}"


# --- mlp: Linear, ReLU, Linear, and the mean cross-entropy over the batch -------------------------------------

_PARAMETERS = ("W1", "b1", "W2", "b2")
_MLP_GRADIENTS = {"dW1": "W1", "db1": "b1", "dW2": "W2", "db2": "b2", "dx": "x"}


def _mlp_forward(answer: ModuleType, given: Inputs, state: dict[str, Any]) -> dict[str, Any]:
    returned = answer.forward({name: given[name] for name in _PARAMETERS}, given["x"])
    state["logits"], state["cache"] = _pair(returned, "logits")
    return {"logits": state["logits"]}


def _mlp_loss(answer: ModuleType, given: Inputs, state: dict[str, Any]) -> dict[str, Any]:
    return {"loss": answer.loss(state["logits"], given["y"])}


def _mlp_backward(answer: ModuleType, given: Inputs, state: dict[str, Any]) -> dict[str, Any]:
    returned = answer.backward({name: given[name] for name in _PARAMETERS}, state["cache"], given["y"])
    return _gradients(returned, _MLP_GRADIENTS)


def _mlp_draw(rng: np.random.Generator, sizes: Mapping[str, int]) -> dict[str, Array]:
    batch, features, hidden, classes = (sizes[name] for name in "BDHC")
    x = rng.normal(size=(batch, features))
    weights, bias = rng.normal(size=(features, hidden)) / np.sqrt(features), rng.normal(size=hidden) / 2
    while np.any(close := np.abs(x @ weights + bias).min(axis=0) < _KINK):
        bias[close] = rng.normal(size=int(close.sum())) / 2
    return {
        "x": x,
        "y": rng.integers(classes, size=batch),
        "W1": weights,
        "b1": bias,
        "W2": rng.normal(size=(hidden, classes)) / np.sqrt(hidden),
        "b2": rng.normal(size=classes) / 2,
    }


def _mlp_special(rng: np.random.Generator, sizes: Mapping[str, int]) -> dict[str, dict[str, Array]]:
    zeros, huge = (_mlp_draw(rng, {**sizes, "B": 12}) for _ in range(2))
    # Whole numbers make the sums exact in any order: unit j has the input 0 for sample j.
    for name in ("x", "W1"):
        zeros[name] = rng.integers(-3, 4, size=zeros[name].shape).astype(np.float64)
    units = np.arange(len(zeros["b1"]))
    zeros["b1"] = -(zeros["x"] @ zeros["W1"])[units % 12, units]
    logits = np.maximum(huge["x"] @ huge["W1"] + huge["b1"], 0) @ huge["W2"]
    huge["W2"] *= 1e4 / np.abs(logits).max()
    # Half of the labels are the least likely class, with a loss of up to 20,000; the others the most likely.
    huge["y"] = np.where(np.arange(12) % 2, logits.argmin(axis=1), logits.argmax(axis=1))
    return {"zeros": zeros, "huge": huge}


def _mlp_formulas(given: Inputs) -> dict[str, Array]:
    h = np.maximum(given["x"] @ given["W1"] + given["b1"], 0)
    logits = h @ given["W2"] + given["b2"]
    softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return {"logits": logits, "loss": np.mean(-np.log(softmax[np.arange(len(logits)), given["y"]]))}


MLP = Problem(
    name="mlp",
    inputs={"x": ("B", "D"), "y": ("B",), "W1": ("D", "H"), "b1": ("H",), "W2": ("H", "C"), "b2": ("C",)},
    outputs={
        "logits": ("B", "C"),
        "loss": (),
        "dW1": ("D", "H"),
        "db1": ("H",),
        "dW2": ("H", "C"),
        "db2": ("C",),
        "dx": ("B", "D"),
    },
    gradients=_MLP_GRADIENTS,
    stages={"forward": _mlp_forward, "loss": _mlp_loss, "backward": _mlp_backward},
    objective=lambda outputs, given: float(outputs["loss"]),
    draw=_mlp_draw,
    special=_mlp_special,
    formulas=_mlp_formulas,
    batch_mean=True,
)


# --- layernorm: normalization over the features of each sample ------------------------------------------------

_LAYERNORM_GRADIENTS = {"dx": "x", "dgamma": "gamma", "dbeta": "beta"}


def _layernorm_forward(answer: ModuleType, given: Inputs, state: dict[str, Any]) -> dict[str, Any]:
    returned = answer.forward(given["x"], given["gamma"], given["beta"], float(given["eps"]))
    out, state["cache"] = _pair(returned, "out")
    return {"out": out}


def _layernorm_backward(answer: ModuleType, given: Inputs, state: dict[str, Any]) -> dict[str, Any]:
    return _gradients(answer.backward(given["dout"], state["cache"]), _LAYERNORM_GRADIENTS)


def _layernorm_draw(rng: np.random.Generator, sizes: Mapping[str, int]) -> dict[str, Array]:
    batch, features = sizes["B"], sizes["D"]
    spread, mean = rng.uniform(0.5, 2.0, size=(batch, 1)), rng.normal(size=(batch, 1))
    return {
        "x": rng.normal(size=(batch, features)) * spread + mean,
        "gamma": rng.uniform(0.5, 2.0, size=features) * rng.choice([-1.0, 1.0], size=features),
        "beta": rng.normal(size=features),
        # Large enough to show beside a variance of about 1, wherever an answer adds it.
        "eps": np.array(1e-3),
        "dout": rng.normal(size=(batch, features)),
    }


def _layernorm_special(rng: np.random.Generator, sizes: Mapping[str, int]) -> dict[str, dict[str, Array]]:
    flat, far = (_layernorm_draw(rng, sizes) for _ in range(2))
    values = rng.integers(-9, 10, size=(sizes["B"], 1)).astype(np.float64)
    flat["x"] = np.broadcast_to(values, flat["x"].shape).copy()
    # The mean of the squares minus the square of the mean would keep 4 digits.
    far["x"] = 1e6 + rng.normal(size=far["x"].shape)
    return {"flat": flat, "far": far}


def _layernorm_formulas(given: Inputs) -> dict[str, Array]:
    x = given["x"]
    centred = x - x.mean(axis=1, keepdims=True)
    var = (centred**2).mean(axis=1, keepdims=True)
    return {"out": given["gamma"] * centred / np.sqrt(var + given["eps"]) + given["beta"]}


LAYERNORM = Problem(
    name="layernorm",
    inputs={"x": ("B", "D"), "gamma": ("D",), "beta": ("D",), "eps": (), "dout": ("B", "D")},
    outputs={"out": ("B", "D"), "dx": ("B", "D"), "dgamma": ("D",), "dbeta": ("D",)},
    gradients=_LAYERNORM_GRADIENTS,
    stages={"forward": _layernorm_forward, "backward": _layernorm_backward},
    objective=lambda outputs, given: float((outputs["out"] * given["dout"]).sum()),
    draw=_layernorm_draw,
    special=_layernorm_special,
    formulas=_layernorm_formulas,
    batch_mean=False,
)

# By the `problem` of `exercise.toml`.
PROBLEMS: Mapping[str, Problem] = {"mlp": MLP, "layernorm": LAYERNORM}
