"""The problem `mlp`: Linear, ReLU, Linear, and the mean cross-entropy over the batch."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from harness.written.derivation.problem import Array, Problem, gradients_of, pair_of

_PARAMETERS = ("W1", "b1", "W2", "b2")
_GRADIENTS = {"dW1": "W1", "db1": "b1", "dW2": "W2", "db2": "b2", "dx": "x"}
# Finite differences with steps of 1e-6 must not cross the kink of a ReLU.
_KINK = 1e-3


def _forward(answer: ModuleType, given: Mapping[str, Array], state: dict[str, Any]) -> dict[str, Any]:
    logits, state["cache"] = pair_of(answer.forward(_parameters(given), given["x"]), "logits")
    state["logits"] = logits
    return {"logits": logits}


def _loss(answer: ModuleType, given: Mapping[str, Array], state: dict[str, Any]) -> dict[str, Any]:
    return {"loss": answer.loss(state["logits"], given["y"])}


def _backward(answer: ModuleType, given: Mapping[str, Array], state: dict[str, Any]) -> dict[str, Any]:
    return gradients_of(answer.backward(_parameters(given), state["cache"], given["y"]), _GRADIENTS)


def _parameters(given: Mapping[str, Array]) -> dict[str, Array]:
    return {name: given[name] for name in _PARAMETERS}


def _draw(rng: np.random.Generator, sizes: Mapping[str, int]) -> dict[str, Array]:
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


def _formulas(given: Mapping[str, Array]) -> dict[str, Array]:
    h = np.maximum(given["x"] @ given["W1"] + given["b1"], 0)
    logits = h @ given["W2"] + given["b2"]
    softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    of_labels = softmax[np.arange(len(logits)), given["y"]]
    return {"logits": logits, "loss": np.mean(-np.log(of_labels))}


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
    gradients=_GRADIENTS,
    stages={"forward": _forward, "loss": _loss, "backward": _backward},
    objective=lambda outputs, given: float(outputs["loss"]),
    draw=_draw,
    formulas=_formulas,
)
