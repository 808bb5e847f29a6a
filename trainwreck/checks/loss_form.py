"""A loss gets what it expects: logits, log-probabilities or probabilities."""

import math
import weakref
from collections import Counter
from typing import Any, ClassVar

import torch
from torch import Tensor

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer, LossCall, ModelCall
from trainwreck.finding import Outcome
from trainwreck.places import Place, here

# Operations that move values without changing them. The name of the graph's node begins with one of these.
_MOVES = (
    "View", "Reshape", "UnsafeView", "Squeeze", "Unsqueeze", "Transpose", "Permute", "TBackward", "Slice", "Select",
    "Index", "Clone", "ToCopy", "Copy", "Expand", "Alias",
)  # fmt: skip
# Losses that compare values, and the range of activations. The outputs of a softmax also sum to 1.
_DISTANCES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy")
_RANGES = {"Sigmoid": (0.0, 1.0), "Tanh": (-1.0, 1.0), "Relu": (0.0, math.inf), "Softmax": (0.0, 1.0)}
_MANY = 0.05  # a sound training may have a few targets outside
_UPDATES = 4  # of each loss, the first ones are enough
_ACTIONS, _ALIKE = 8, 1e-4  # actions of an update; difference of their weights, as a share
# Sums of probabilities may differ from 1 by this much in float16 and bfloat16.
_NEAR_ONE = 2e-2


class LossForm(Check):
    """A loss gets values of the kind that it expects."""

    name = "loss-form"
    question = "Does the loss get logits, log-probabilities or probabilities, as it expects?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "normalized-twice": Outcome(
            "alarm",
            "The loss expects logits and gets probabilities, so it normalizes them again.",
            "Remove the softmax or the sigmoid before the loss.",
            "double_softmax",
        ),
        "not-logarithms": Outcome(
            "alarm",
            "The loss expects log-probabilities and gets other values.",
            "Use log_softmax before nll_loss and kl_div, or cross_entropy on logits.",
            "nll_on_logits",
        ),
        "other-dimension": Outcome(
            "alarm",
            "The values are normalized over another dimension than the classes.",
            "Give the softmax the dimension of the classes.",
            "softmax_wrong_dim",
        ),
        "targets-outside": Outcome(
            "alarm",
            "Targets of a binary cross-entropy are outside of 0 to 1.",
            "Scale the targets, or use a loss for other numbers.",
            "logits_as_targets",
        ),
        "out-of-reach": Outcome(
            "alarm",
            "The last activation of the network cannot give the values of the targets.",
            "Remove the last activation, or scale the targets to its range.",
        ),
        "squashed-twice": Outcome(
            "advice",
            "A softmax or a sigmoid gets the outputs of another one.",
            "Remove one of the two.",
            "sigmoid_twice",
        ),
        "idle-term": Outcome(
            "advice",
            "A term of the loss has no gradient, so training does not follow it.",
            "Look for a detach() or no_grad(), and for outputs of the wrong network.",
            "dice_of_hard_masks",
        ),
        "relu-before-loss": Outcome(
            "advice",
            "The logits come from a ReLU, so no logit is below zero.",
            "Remove the activation after the last layer.",
            "logits_rectified",
        ),
        "equal-weights": Outcome(
            "advice",
            "All actions of an episode have the same weight in the loss, so none gets credit for what followed it.",
            "Multiply each log-probability with the return from its own step on, then add them up. If the only reward "
            "comes at the end, equal weights are right.",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._times: Counter[tuple[str, Place]] = Counter()
        self._actor: weakref.ref[ModelCall] | None = None  # the call that made the distribution of the latest action
        self._weights: list[Tensor] = []  # by action of this update, the gradient of the loss at its log-probability
        self._actions: Place | None = None
        self._alike = 0  # updates in a row

    def on_score(self, score: Tensor, call: ModelCall) -> None:
        """Note the weight that the next backward pass gives an action. Each action has a call of its own."""
        if score.numel() == 1 and (self._actor is None or self._actor() is not call):
            self._actor, self._actions = weakref.ref(call), here()
            score.register_hook(self._note_weight)

    def _note_weight(self, gradient: Tensor) -> None:
        self._weights.append(gradient.detach().flatten())

    def after_step(self, optimizer: AnyOptimizer) -> None:
        """Compare the weights of the actions of an update."""
        weights, self._weights = self._weights, []
        if len(weights) < _ACTIONS:
            return
        values = torch.cat(weights)
        size = float(values.abs().max())
        is_alike = 0 < size < math.inf and float(values.max() - values.min()) < _ALIKE * size
        self._alike = self._alike + 1 if is_alike else 0
        if self._alike == _UPDATES:
            self.tell("equal-weights", f"{len(weights)} actions of an episode, in {_UPDATES} updates", self._actions)

    def on_operation(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """Look at what a softmax or a sigmoid gets, and at terms without gradients."""
        if name == "idle term":
            self.tell("idle-term", "a loss whose arguments need no gradient is added to one with gradients", result)
        elif name == "squash" and (source := source_of(args[0])) in ("Softmax", "Sigmoid"):
            self.tell("squashed-twice", f"a {result} of the outputs of a {source.lower()}")

    def on_loss(self, loss: LossCall) -> None:
        """Look at the values that a loss gets, and at the operation that made them."""
        values = loss.outputs.detach().float()
        if not loss.with_gradients or not values.numel():
            return
        self._times[loss.name, loss.place] += 1
        if self._times[loss.name, loss.place] > _UPDATES:
            return
        if not bool(values.isfinite().all()):
            return
        source, dim = source_of(loss.outputs), 1 if values.dim() > 1 else 0
        if loss.name == "cross_entropy":
            self._judge_logits(loss, values, source, dim)
        elif loss.name == "nll_loss" and values.dim() > 1:
            total = values.exp().sum(dim)
            if bool((total - 1).abs().max() > _NEAR_ONE):
                text = f"nll_loss: the exponentials of an example sum to {float(total.flatten()[0]):.3g}, not 1"
                self.tell("not-logarithms", text, loss.place)
        elif loss.name == "binary_cross_entropy_with_logits":
            if source == "Relu":
                self.tell("relu-before-loss", f"{loss.name} gets the outputs of a ReLU", loss.place)
            if source in ("Sigmoid", "Softmax"):
                self.tell("normalized-twice", f"{loss.name} gets the outputs of a {source.lower()}", loss.place)
            if bool(((loss.targets < 0) | (loss.targets > 1)).any()):
                text = f"targets from {float(loss.targets.min()):g} to {float(loss.targets.max()):g}"
                self.tell("targets-outside", text, loss.place)
        elif loss.name in _DISTANCES:
            self._judge_reach(loss, source, dim)
        elif loss.name == "kl_div" and bool((values > 1e-3).any()):
            self.tell("not-logarithms", f"kl_div: a log-probability of {float(values.max()):.3g}", loss.place)

    def _judge_reach(self, loss: LossCall, source: str, dim: int) -> None:
        """Compare targets with the range of the activation that made the outputs."""
        targets = loss.targets.detach().float()
        low, high = _RANGES.get(source, (-math.inf, math.inf))
        if not targets.numel() or loss.targets.requires_grad or targets.shape != loss.outputs.shape:
            return
        outside = (targets < low - _NEAR_ONE) | (targets > high + _NEAR_ONE)
        if source == "Softmax" and loss.outputs.dim() > 1:
            outside = (targets.sum(dim) - 1).abs() > 2 * _NEAR_ONE
        share = float(outside.float().mean())
        if share > _MANY:
            made_by = {"Relu": "a ReLU", "Tanh": "a tanh"}.get(source, f"a {source.lower()}")
            text = f"{share:.0%} of the targets, from {float(targets.min()):.3g} to {float(targets.max()):.3g}"
            self.tell("out-of-reach", f"{text}; the outputs come from {made_by}", loss.place)

    def _judge_logits(self, loss: LossCall, values: Tensor, source: str, dim: int) -> None:
        if source in ("Softmax", "Sigmoid") or _are_shares(values, dim):
            made_by = source.lower() or "softmax"
            self.tell("normalized-twice", f"cross_entropy gets the outputs of a {made_by}", loss.place)
        elif source == "LogSoftmax" and bool((values.exp().sum(dim) - 1).abs().max() > _NEAR_ONE):
            self.tell("other-dimension", f"log_softmax not over dimension {dim}, the classes", loss.place)
        elif source == "Relu":
            self.tell("relu-before-loss", "cross_entropy gets the outputs of a ReLU", loss.place)


def source_of(values: Tensor) -> str:
    """Return the operation that made the values, such as "Softmax", or "" if they are no result."""
    node = values.grad_fn
    while node is not None and node.name().lstrip("_").startswith(_MOVES) and node.next_functions:
        node = node.next_functions[0][0]
    return node.name().removesuffix("Backward0").lstrip("_") if node is not None else ""


def _are_shares(values: Tensor, dim: int) -> bool:
    """Return whether values are probabilities: from 0 to 1, with the sum 1, and not all on one class of two."""
    if values.size(dim) < 2 or bool((values < 0).any()):
        return False
    close = (values.sum(dim) - 1).abs().max()
    return math.isfinite(float(close)) and bool(torch.le(close, _NEAR_ONE / 2))
