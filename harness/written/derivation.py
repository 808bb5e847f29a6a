"""The problems of the derivation exercises: how to call the functions of an answer, and with which inputs.

An answer is a Python file with a forward and a backward pass in NumPy. The right outputs are computed by automatic
differentiation in torch, which an answer may not use. So this module does not show how to derive the gradients.
"""

import ast
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Inputs = Mapping[str, Array]
# A stage is a function that calls one function of an answer, with the inputs and the state from earlier stages. It
# returns {name: output}.
Stage = Callable[[ModuleType, Inputs, dict[str, Any]], dict[str, Any]]

# The modules that an answer may import, because they cannot differentiate.
ALLOWED_IMPORTS = ("numpy", "math", "typing", "__future__")
# The absolute value of each ReLU input is at least this number, so that rounding cannot change its sign.
_KINK = 1e-3

# Inputs with which every answer is called: {name: description}. Messages write the description after "With".
CASES = {
    "small": "a small batch",
    "square": "sizes that are all equal",
    "single": "a batch of one sample",
    "zeros": "ReLU inputs of exactly 0",
    "huge": "logits of 10,000",
    "flat": "samples whose features are all equal",
    "far": "samples around a million",
    "again": "the small batch a second time",
}
# An output counts as right only if it is right in all these cases. In "square", all feature sizes are equal, so a
# missing transpose raises no error, but gives wrong values.
ORDINARY = ("small", "square", "single")


class WrongForm(Exception):
    """A function returned a value of the wrong form. The message describes the value and the expected form."""


class Special(NamedTuple):
    """A check of one special case: criterion and id in the rubric, the case, and the outputs that must be right."""

    criterion: str
    id: str
    case: str
    outputs: tuple[str, ...]
    remedy: str


@dataclass(frozen=True)
class Problem:
    """One derivation problem.

    forward: the names of the outputs of the forward pass.
    gradients: {name of a gradient: name of the input by which it differentiates}.
    stages: functions that call the functions of an answer, in order; later ones need the result of the first one.
    in_torch: the forward pass on tensors. It returns its outputs, and the number to differentiate.
    draw: a function that draws random inputs of given sizes.
    special: a function that returns {key of `CASES`: inputs that reveal a common mistake}.
    special_checks: the checks for these special inputs.
    """

    name: str
    forward: tuple[str, ...]
    gradients: Mapping[str, str]
    stages: Mapping[str, Stage]
    in_torch: Callable[[Mapping[str, Any]], tuple[dict[str, Any], Any]]
    draw: Callable[[np.random.Generator, Mapping[str, int]], dict[str, Array]]
    special: Callable[[np.random.Generator, Mapping[str, int]], dict[str, dict[str, Array]]]
    special_checks: tuple[Special, ...]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of all outputs: of the forward pass, then the gradients."""
        return (*self.forward, *self.gradients)


def draw_inputs(problem: Problem, text: str) -> Mapping[str, Inputs]:
    """Return {case: inputs} for an answer with this text.

    The random seed is the SHA-256 of the text. So an answer cannot contain the right outputs for its inputs, because
    any change of its text changes the inputs.
    """
    seed = hashlib.sha256(f"{problem.name}\0{text}".encode()).digest()
    rng = np.random.default_rng(np.frombuffer(seed, dtype=np.uint32))
    # All sizes differ, so that a matrix product in the wrong order raises an error.
    sizes = dict(zip("BDHC", map(int, rng.permutation([4, 5, 6, 7, 8, 9])[:4]), strict=True))
    small = problem.draw(rng, sizes)
    return {
        "small": small,
        "square": problem.draw(rng, {"B": 8, "D": 6, "H": 6, "C": 6}),
        "single": problem.draw(rng, {**sizes, "B": 1}),
        **problem.special(rng, sizes),
        "again": small,
    }


def right_outputs(problem: Problem, inputs: Inputs) -> dict[str, Array]:
    """Return {name: right value} for all outputs, in float64; the gradients come from automatic differentiation."""
    import torch

    given = {name: torch.tensor(array) for name, array in inputs.items()}
    for tensor in given.values():
        tensor.requires_grad_(tensor.is_floating_point())
    outputs, objective = problem.in_torch(given)
    gradients = torch.autograd.grad(objective, [given[name] for name in problem.gradients.values()])
    outputs |= dict(zip(problem.gradients, gradients, strict=True))
    return {name: tensor.detach().numpy() for name, tensor in outputs.items()}


def foreign_imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, name) for each module that an answer imports but may not use."""
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


def relative_error(found: Array, right: Array) -> float:
    """Return the largest difference divided by the largest right entry; infinity for a wrong shape or non-finite entry.

    A relative error for each entry would be large near zero only because of rounding.
    """
    if found.shape != right.shape or not (np.isfinite(found).all() and np.isfinite(right).all()):
        return float("inf")
    scale = max(np.abs(found).max(initial=0.0), np.abs(right).max(initial=0.0))
    return float(np.abs(found - right).max(initial=0.0) / scale) if scale > 0 else 0.0


def _pair(returned: object, first: str) -> tuple[Any, Any]:
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise WrongForm(f"forward should return the pair ({first}, cache), but returns {_describe(returned)}")
    return returned


def _gradients(returned: object, names: Mapping[str, str]) -> dict[str, Any]:
    """Return {output of the problem: gradient} from the dictionary that `backward` of an answer returned."""
    expected = "a dictionary with the keys " + ", ".join(f'"{name}"' for name in names.values())
    if not isinstance(returned, dict):
        raise WrongForm(f"backward should return {expected}, but returns {_describe(returned)}")
    missing = [name for name in names.values() if name not in returned]
    if missing:
        raise WrongForm(f"backward does not return {missing[0]!r}; it should return {expected}")
    return {output: returned[name] for output, name in names.items()}


def _describe(value: object) -> str:
    return "nothing" if value is None else f"a value of type {type(value).__name__}"


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
    # Whole numbers make sums exact in any order. So the ReLU input of unit j is exactly 0 for sample j.
    for name in ("x", "W1"):
        zeros[name] = rng.integers(-3, 4, size=zeros[name].shape).astype(np.float64)
    units = np.arange(len(zeros["b1"]))
    zeros["b1"] = -(zeros["x"] @ zeros["W1"])[units % 12, units]
    logits = np.maximum(huge["x"] @ huge["W1"] + huge["b1"], 0) @ huge["W2"]
    huge["W2"] *= 1e4 / np.abs(logits).max()
    # Half of the labels are the least likely class, whose loss is up to 20,000. The other labels are the most likely
    # class.
    huge["y"] = np.where(np.arange(12) % 2, logits.argmin(axis=1), logits.argmax(axis=1))
    return {"zeros": zeros, "huge": huge}


def _mlp_in_torch(given: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    from torch.nn import functional as F

    logits = F.relu(given["x"] @ given["W1"] + given["b1"]) @ given["W2"] + given["b2"]
    loss = F.cross_entropy(logits, given["y"])
    return {"logits": logits, "loss": loss}, loss


_STABLE = "Subtract the largest logit before exp, and write log softmax as z - max - log(sum(exp(z - max)))."
_ZERO = "Keep the gradient only where z1, the input of the ReLU, is above 0."
MLP = Problem(
    name="mlp",
    forward=("logits", "loss"),
    gradients=_MLP_GRADIENTS,
    stages={"forward": _mlp_forward, "loss": _mlp_loss, "backward": _mlp_backward},
    in_torch=_mlp_in_torch,
    draw=_mlp_draw,
    special=_mlp_special,
    special_checks=(
        Special("forward", "stable", "huge", ("loss",), _STABLE),
        Special("gradients", "zeros", "zeros", ("dW1", "db1", "dx"), _ZERO),
        Special("gradients", "stable", "huge", tuple(_MLP_GRADIENTS), _STABLE),
    ),
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
        # This eps changes the outputs visibly at a variance of about 1, so that adding it at a wrong place is found.
        "eps": np.array(1e-3),
        "dout": rng.normal(size=(batch, features)),
    }


def _layernorm_special(rng: np.random.Generator, sizes: Mapping[str, int]) -> dict[str, dict[str, Array]]:
    flat, far = (_layernorm_draw(rng, sizes) for _ in range(2))
    values = rng.integers(-9, 10, size=(sizes["B"], 1)).astype(np.float64)
    flat["x"] = np.broadcast_to(values, flat["x"].shape).copy()
    # If an answer computes the variance as the mean of squares minus the squared mean, only 4 digits are right.
    far["x"] = 1e6 + rng.normal(size=far["x"].shape)
    return {"flat": flat, "far": far}


def _layernorm_in_torch(given: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    centred = given["x"] - given["x"].mean(dim=1, keepdim=True)
    var = (centred**2).mean(dim=1, keepdim=True)
    out = given["gamma"] * centred / (var + given["eps"]).sqrt() + given["beta"]
    return {"out": out}, (out * given["dout"]).sum()


LAYERNORM = Problem(
    name="layernorm",
    forward=("out",),
    gradients=_LAYERNORM_GRADIENTS,
    stages={"forward": _layernorm_forward, "backward": _layernorm_backward},
    in_torch=_layernorm_in_torch,
    draw=_layernorm_draw,
    special=_layernorm_special,
    special_checks=(
        Special("forward", "far", "far", ("out",), "Subtract the mean first, then square."),
        Special("gradients", "flat", "flat", ("dx",), "Add eps to the variance, under the square root."),
    ),
)

# A key of this dictionary is the value of `problem` in an `exercise.toml`.
PROBLEMS: Mapping[str, Problem] = {"mlp": MLP, "layernorm": LAYERNORM}
