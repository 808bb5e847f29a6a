"""The inputs with which the grader calls a derivation, and the outputs that are right for them."""

import hashlib
import io
from collections.abc import Mapping

import numpy as np

from harness.written.derivation import SPECIAL_CASES, Array, Inputs, Problem
from harness.written.derivation_check import LARGE, LARGER

# Titles complete "with ...".
TITLES = {
    "small": "a small batch",
    "square": "sizes that are all equal",
    "single": "a batch of one sample",
    "large": "large arrays",
    "larger": "larger arrays",
    **SPECIAL_CASES,
    "again": "the small batch a second time",
}
# Outputs must be right in all of these. In "square", every matrix fits everywhere, transposed or not.
ORDINARY = ("small", "square", "single", "large", "larger")


def draw_cases(problem: Problem, text: str) -> Mapping[str, Inputs]:
    """Return the inputs of each case for one text.

    The seed is the SHA-256 of the text: an answer cannot know its inputs, since writing them down changes them.
    """
    seed = hashlib.sha256(f"{problem.name}\0{text}".encode()).digest()
    rng = np.random.default_rng(np.frombuffer(seed, dtype=np.uint32))
    # All sizes differ, so that a product in the wrong order does not fit.
    sizes = dict(zip("BDHC", map(int, rng.permutation([4, 5, 6, 7, 8, 9])[:4]), strict=True))
    small = problem.draw(rng, sizes)
    return {
        "small": small,
        "square": problem.draw(rng, {"B": 8, "D": 6, "H": 6, "C": 6}),
        "single": problem.draw(rng, {**sizes, "B": 1}),
        "large": problem.draw(rng, LARGE),
        "larger": problem.draw(rng, LARGER),
        **problem.special(rng, sizes),
        "again": small,
    }


def packed(cases: Mapping[str, Inputs]) -> bytes:
    """Return all arrays as an .npz archive, under `<case>/<name>`."""
    data = io.BytesIO()
    arrays = {f"{case}/{name}": array for case, inputs in cases.items() for name, array in inputs.items()}
    np.savez(data, allow_pickle=False, **arrays)
    return data.getvalue()


def right_mlp(given: Inputs) -> dict[str, Array]:
    """Return the right outputs of the problem `mlp`; the tests compare them with torch's autograd."""
    x, y, rows = given["x"], given["y"], np.arange(len(given["y"]))
    z1 = x @ given["W1"] + given["b1"]
    h = np.maximum(z1, 0)
    logits = h @ given["W2"] + given["b2"]
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_softmax = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    d = np.exp(log_softmax)
    d[rows, y] -= 1
    d /= len(y)
    dz1 = (d @ given["W2"].T) * (z1 > 0)
    gradients = {"dW1": x.T @ dz1, "db1": dz1.sum(axis=0), "dW2": h.T @ d, "db2": d.sum(axis=0)}
    return {
        "logits": logits,
        "loss": np.asarray(-log_softmax[rows, y].mean()),
        **gradients,
        "dx": dz1 @ given["W1"].T,
    }


def right_layernorm(given: Inputs) -> dict[str, Array]:
    """Return the right outputs of the problem `layernorm`; the tests compare them with torch's autograd."""
    centred = given["x"] - given["x"].mean(axis=1, keepdims=True)
    scale = 1 / np.sqrt((centred**2).mean(axis=1, keepdims=True) + given["eps"])
    xhat = centred * scale
    d = given["dout"] * given["gamma"]
    dx = scale * (d - d.mean(axis=1, keepdims=True) - xhat * (d * xhat).mean(axis=1, keepdims=True))
    return {
        "out": given["gamma"] * xhat + given["beta"],
        "dx": dx,
        "dgamma": (given["dout"] * xhat).sum(axis=0),
        "dbeta": given["dout"].sum(axis=0),
    }


RIGHT = {"mlp": right_mlp, "layernorm": right_layernorm}
