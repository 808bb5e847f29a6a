"""A problem: the functions that an answer has, what they are given and return, and in which order they are called."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Shape = tuple[str, ...]
# Calls one function of an answer with inputs and what earlier stages left, and returns outputs by name.
Stage = Callable[[ModuleType, Mapping[str, Array], dict[str, Any]], dict[str, Any]]


class WrongForm(Exception):
    """A function returned something of another form than it should; the message says what and what it should."""


@dataclass(frozen=True)
class Problem:
    """What an answer must do.

    inputs, outputs: shapes in terms of sizes such as B, the number of samples. gradients: by the name of an output
    the input by which it is the derivative of `objective`, one number. stages: by the name of a function how it is
    called; without the first nothing else can be. draw: fresh inputs of given sizes, at which the objective can be
    differentiated. formulas: the forward pass as the docstrings of the exercise write it, good for ordinary numbers.
    """

    name: str
    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Shape]
    gradients: Mapping[str, str]
    stages: Mapping[str, Stage]
    objective: Callable[[Mapping[str, Array], Mapping[str, Array]], float]
    draw: Callable[[np.random.Generator, Mapping[str, int]], dict[str, Array]]
    formulas: Callable[[Mapping[str, Array]], dict[str, Array]]

    def shape(self, name: str, inputs: Mapping[str, Array]) -> tuple[int, ...]:
        """Return the shape that an output must have for these inputs."""
        sizes = {
            size: length
            for given, symbols in self.inputs.items()
            for size, length in zip(symbols, inputs[given].shape, strict=True)
        }
        return tuple(sizes[size] for size in self.outputs[name])


def gradients_of(returned: object, problem_gradients: Mapping[str, str]) -> dict[str, Any]:
    """Return the gradients of a dictionary by the names of the outputs. Raises `WrongForm` for anything else."""
    wanted = ", ".join(f'"{name}"' for name in problem_gradients.values())
    if not isinstance(returned, dict):
        raise WrongForm(
            f"backward returns {_told(returned)}, and a dictionary with the keys {wanted} is asked for"
        )
    missing = [name for name in problem_gradients.values() if name not in returned]
    if missing:
        raise WrongForm(
            f"backward returns no {missing[0]!r}: a dictionary with the keys {wanted} is asked for"
        )
    return {output: returned[name] for output, name in problem_gradients.items()}


def pair_of(returned: object, first: str) -> tuple[Any, Any]:
    """Return the two parts of what forward returned. Raises `WrongForm` for anything else."""
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise WrongForm(f"forward returns {_told(returned)}, and the pair ({first}, cache) is asked for")
    return returned


def _told(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return f"a value of type {type(value).__name__}"
