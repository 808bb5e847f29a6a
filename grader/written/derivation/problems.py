"""What is judged of each problem beside its shapes and gradients: formulas, mistakes, and cases of their own."""

from collections.abc import Mapping
from dataclasses import dataclass

from grader.written.derivation.mistaken_layernorm import MISTAKES as LAYERNORM_MISTAKES
from grader.written.derivation.mistaken_layernorm import layernorm
from grader.written.derivation.mistaken_mlp import MISTAKES as MLP_MISTAKES
from grader.written.derivation.mistaken_mlp import mlp
from grader.written.derivation.recognise import Formula
from harness.written.derivation import PROBLEMS
from harness.written.derivation.problem import Problem


@dataclass(frozen=True)
class Special:
    """A check of one case alone: where it stands in the rubric, and which outputs must be right in it."""

    criterion: str
    id: str
    title: str
    case: str
    outputs: tuple[str, ...]
    remedy: str


@dataclass(frozen=True)
class Judged:
    """A problem as it is judged. forward: its outputs that are no gradients.

    over_batch: its loss and gradients are means over the batch, which is a check of its own.
    """

    problem: Problem
    formula: Formula
    mistakes: Mapping[str, str]
    forward: tuple[str, ...]
    specials: tuple[Special, ...]
    over_batch: bool


_STABLE = "Take the largest logit out before exp, and write log softmax as z - max - log(sum(exp(z - max)))."
_ZERO = "Mask the gradient where z1, the input of the ReLU, is above 0, and nowhere else."
_FAR = "Subtract the mean first, and square what is left."
_FLAT = "Add eps to the variance, under the root."

JUDGED: Mapping[str, Judged] = {
    "mlp": Judged(
        PROBLEMS["mlp"],
        mlp,
        MLP_MISTAKES,
        ("logits", "loss"),
        (
            Special(
                "forward", "stable", "The loss is right for logits of 10,000", "huge", ("loss",), _STABLE
            ),
            Special(
                "gradients", "zeros", "The ReLU's derivative at 0 is 0", "zeros", ("dW1", "db1", "dx"), _ZERO
            ),
            Special(
                "gradients",
                "stable",
                "The gradients are right for logits of 10,000",
                "huge",
                ("dW1", "db1", "dW2", "db2", "dx"),
                _STABLE,
            ),
        ),
        over_batch=True,
    ),
    "layernorm": Judged(
        PROBLEMS["layernorm"],
        layernorm,
        LAYERNORM_MISTAKES,
        ("out",),
        (
            Special("forward", "far", "Nothing is lost for samples around a million", "far", ("out",), _FAR),
            Special(
                "gradients",
                "flat",
                "The gradient of x is right for samples whose features are all equal",
                "flat",
                ("dx",),
                _FLAT,
            ),
        ),
        over_batch=False,
    ),
}
