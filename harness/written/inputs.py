"""Draw the inputs of a written exercise: for each case of its `judge.toml`, one array for each input."""

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.written.exercise import MOST_SIZES, FunctionExercise, InputDraw

Array = NDArray[Any]
Inputs = Mapping[str, Array]

AGAIN = "again"  # the id of the last case: the inputs of the first case a second time
PUBLIC = "public"  # the seed of `make check`


def draw_inputs(exercise: FunctionExercise, seed: str) -> Mapping[str, Inputs]:
    """Return {case: {name: array}}. Each size is also an input.

    The grader uses the text of the answer as the seed. So an answer cannot contain the right outputs for its inputs,
    because any change of its text changes the inputs.
    """
    digest = hashlib.sha256(f"{exercise.id}\0{seed}".encode()).digest()
    rng = np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))
    # All sizes differ, so that a matrix product in the wrong order raises an error.
    drawn = map(int, rng.permutation(range(4, 4 + MOST_SIZES)))
    sizes = dict(zip(exercise.sizes, drawn, strict=False))
    cases: dict[str, Inputs] = {}
    for case in exercise.case:
        here = {**sizes, **case.sizes}
        inputs = {name: draw_array(drawing, here, rng) for name, drawing in {**exercise.inputs, **case.inputs}.items()}
        cases[case.id] = {**{name: np.array(size) for name, size in here.items()}, **inputs}
    return {**cases, AGAIN: next(iter(cases.values()))}


def draw_array(drawing: InputDraw, sizes: Mapping[str, int], rng: np.random.Generator) -> Array:
    """Return one input."""
    shape = tuple(sizes[size] if isinstance(size, str) else size for size in drawing.shape)
    along = drawing.shape if drawing.along is None else drawing.along
    drawn = tuple(sizes[size] if isinstance(size, str) else size for size in along)
    below = sizes[drawing.below] if isinstance(drawing.below, str) else drawing.below
    array: Array
    match drawing.draw:
        case "normal":
            array = rng.normal(drawing.mean, drawing.scale, size=drawn)
        case "uniform":
            array = rng.uniform(drawing.low, drawing.high, size=drawn)
        case "integers":
            array = rng.integers(int(drawing.low), below, size=drawn)
        case "whole":
            array = rng.integers(int(drawing.low), below, size=drawn).astype(np.float64)
        case "flags":
            count = math.prod(drawn)
            array = rng.permutation(np.arange(count) < math.ceil(drawing.share * count)).reshape(drawn)
        case "triangle":
            array = np.triu(np.ones(drawn, dtype=bool), 1)
        case "constant":
            array = np.full(drawn, drawing.value)
    return np.broadcast_to(array, shape).copy()
