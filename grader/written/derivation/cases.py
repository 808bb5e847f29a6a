"""The inputs with which an answer is called: drawn anew for every text, and the same for the same text."""

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from harness.written.derivation.problem import Array, Problem

Inputs = Mapping[str, Array]
ORDINARY, AGAIN = "ordinary", "again"
# Operations are counted in two cases of which one is larger: NumPy itself takes other ways with small arrays than with
# large ones (`einsum` looks for the cheapest order of its products), but the same with two that are both large.
LARGE, LARGER, WIDE, WIDER = "large", "larger", "wide", "wider"
# Where gradients must be right. In `square` every matrix fits everywhere, whichever way it is turned.
PLAIN = (ORDINARY, "square", "single", LARGE, LARGER)
# How a case is told of, behind "with".
TITLES = {
    ORDINARY: "a small batch",
    "square": "sizes that are all equal",
    "single": "a batch of one sample",
    LARGE: "a large batch",
    LARGER: "a larger batch",
    WIDE: "large matrices",
    WIDER: "larger matrices",
    "zeros": "inputs of the ReLU that are exactly 0",
    "huge": "logits of 10,000",
    "flat": "samples whose features are all equal",
    "far": "samples around a million",
    AGAIN: "the small batch a second time",
}
_WIDE_SIZES = {"D": 192, "H": 200, "C": 48}
_WIDER_SIZES = {"D": 384, "H": 400, "C": 96}


@dataclass(frozen=True)
class Cases:
    """The inputs by the name of the case."""

    inputs: Mapping[str, Inputs]

    def archive(self) -> bytes:
        """Return all arrays as an .npz archive, by `<case>/<name>`."""
        data = io.BytesIO()
        arrays = {f"{case}/{name}": array for case, of in self.inputs.items() for name, array in of.items()}
        np.savez(data, allow_pickle=False, **arrays)
        return data.getvalue()

    def size(self, case: str, name: str) -> int:
        """Return how many entries these inputs have together, one array of them."""
        return int(self.inputs[case][name].size)


def draw_cases(problem: Problem, text: str) -> Cases:
    """Return the cases of one text.

    Whoever writes an answer cannot know its inputs: they are drawn from the SHA-256 of the whole text, and what is
    written into the text to know them changes it.
    """
    seed = hashlib.sha256(f"{problem.name}\0{text}".encode()).digest()
    rng = np.random.default_rng(np.frombuffer(seed, dtype=np.uint32))
    # No two alike, so that whatever is in the wrong order does not fit.
    batch, features, hidden, classes = map(int, rng.permutation([4, 5, 6, 7, 8, 9])[:4])
    sizes = {"B": batch, "D": features, "H": hidden, "C": classes}
    square = int(rng.integers(5, 8))
    found: dict[str, Inputs] = {
        ORDINARY: problem.draw(rng, sizes),
        "square": problem.draw(rng, {"B": square + 2, "D": square, "H": square, "C": square}),
        "single": problem.draw(rng, {**sizes, "B": 1}),
        LARGE: problem.draw(rng, {**sizes, "B": 64 + int(rng.integers(16))}),
        LARGER: problem.draw(rng, {**sizes, "B": 192 + int(rng.integers(48))}),
        WIDE: problem.draw(rng, {**sizes, **_WIDE_SIZES}),
        WIDER: problem.draw(rng, {**sizes, **_WIDER_SIZES}),
        **_SPECIAL[problem.name](rng, problem, sizes),
    }
    found[AGAIN] = found[ORDINARY]
    return Cases(found)


def _special_mlp(rng: np.random.Generator, problem: Problem, sizes: Mapping[str, int]) -> dict[str, Inputs]:
    given = problem.draw(rng, {**sizes, "B": 12})
    # Whole numbers, so that a sum is 0 exactly, in whatever order it is made. Unit j has z1 = 0 for sample j.
    x = rng.integers(-3, 4, size=given["x"].shape).astype(np.float64)
    weights = rng.integers(-3, 4, size=given["W1"].shape).astype(np.float64)
    units = np.arange(len(given["b1"]))
    kinks = {**given, "x": x, "W1": weights, "b1": -(x @ weights)[units % len(x), units]}
    loud = problem.draw(rng, {**sizes, "B": 12})
    logits = np.maximum(loud["x"] @ loud["W1"] + loud["b1"], 0) @ loud["W2"]
    scale = 1e4 / np.abs(logits).max()
    # Half of the labels are the least likely class, with a loss of up to 20,000; the others the most likely.
    y = np.where(np.arange(12) % 2, logits.argmin(axis=1), logits.argmax(axis=1))
    return {"zeros": kinks, "huge": {**loud, "W2": loud["W2"] * scale, "y": y}}


def _special_layernorm(
    rng: np.random.Generator, problem: Problem, sizes: Mapping[str, int]
) -> dict[str, Inputs]:
    flat, far = (problem.draw(rng, sizes) for _ in range(2))
    values = rng.integers(-9, 10, size=(sizes["B"], 1)).astype(np.float64)
    # A mean of 1e6 and a variance of 1: the mean of the squares less the square of the mean keeps 4 digits.
    return {
        "flat": {**flat, "x": np.broadcast_to(values, flat["x"].shape).copy()},
        "far": {**far, "x": 1e6 + rng.normal(size=far["x"].shape)},
    }


_SPECIAL = {"mlp": _special_mlp, "layernorm": _special_layernorm}
