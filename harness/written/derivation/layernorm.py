"""The problem `layernorm`: layer normalization over the features of each sample, and its backward pass."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from harness.written.derivation.problem import Array, Problem, gradients_of, pair_of

_GRADIENTS = {"dx": "x", "dgamma": "gamma", "dbeta": "beta"}


def _forward(answer: ModuleType, given: Mapping[str, Array], state: dict[str, Any]) -> dict[str, Any]:
    returned = answer.forward(given["x"], given["gamma"], given["beta"], float(given["eps"]))
    out, state["cache"] = pair_of(returned, "out")
    return {"out": out}


def _backward(answer: ModuleType, given: Mapping[str, Array], state: dict[str, Any]) -> dict[str, Any]:
    return gradients_of(answer.backward(given["dout"], state["cache"]), _GRADIENTS)


def _draw(rng: np.random.Generator, sizes: Mapping[str, int]) -> dict[str, Array]:
    shape = sizes["B"], sizes["D"]
    return {
        "x": rng.normal(size=shape) * rng.uniform(0.5, 2.0, size=(shape[0], 1))
        + rng.normal(size=(shape[0], 1)),
        "gamma": rng.uniform(0.5, 2.0, size=shape[1]) * rng.choice([-1.0, 1.0], size=shape[1]),
        "beta": rng.normal(size=shape[1]),
        # Large enough to be seen beside a variance of about 1, wherever somebody adds it.
        "eps": np.array(1e-3),
        "dout": rng.normal(size=shape),
    }


def _formulas(given: Mapping[str, Array]) -> dict[str, Array]:
    x = given["x"]
    mean = x.mean(axis=1, keepdims=True)
    var = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    return {"out": given["gamma"] * (x - mean) / np.sqrt(var + given["eps"]) + given["beta"]}


LAYERNORM = Problem(
    name="layernorm",
    inputs={"x": ("B", "D"), "gamma": ("D",), "beta": ("D",), "eps": (), "dout": ("B", "D")},
    outputs={"out": ("B", "D"), "dx": ("B", "D"), "dgamma": ("D",), "dbeta": ("D",)},
    gradients=_GRADIENTS,
    stages={"forward": _forward, "backward": _backward},
    objective=lambda outputs, given: float((outputs["out"] * given["dout"]).sum()),
    draw=_draw,
    formulas=_formulas,
)
