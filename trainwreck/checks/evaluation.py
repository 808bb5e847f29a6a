"""Predictions compare the classes of an example, and the evaluation has a loader of its own."""

import re
from collections import Counter
from types import CodeType
from typing import Any, ClassVar

import torch
from torch import Tensor

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer, LossCall
from trainwreck.finding import Outcome
from trainwreck.places import words_in_use

_LEAST, _BATCHES = 2, 4
_COUNTED = 0.5  # the share of ignored places that count as hits
_KINDS, _LABELS, _PLACES = 1000, 200, 10  # labels that are kept; labels of training and places, at least
_EVALUATED = re.compile(r"(?i)(.*_)?(valid|validation|val|test|dev|eval)(id)?(_|loader|dataloader|$)")
_TRAINED = re.compile(r"(?i).*(train|fit)")
# The words for phases, and whether each means training.
_PHASES = dict.fromkeys(("train", "training", "fit"), True) | dict.fromkeys(
    ("val", "valid", "validate", "validation", "eval", "evaluate", "evaluation", "dev", "test", "testing"), False
)


class Evaluation(Check):
    """An evaluation picks the best class of each example, from examples that training has not seen."""

    name = "evaluation"
    question = "Does the evaluation look at each example, and at other examples than training?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "best-example": Outcome(
            "advice",
            "The largest output is taken over the examples of the batch in place of the classes.",
            "Use argmax(dim=1) on outputs of shape (batch, classes).",
        ),
        "one-output": Outcome(
            "alarm",
            "The largest of a single output is taken, so the prediction is always 0.",
            "Compare a single output with a threshold: 0 for a logit, 0.5 for a probability.",
        ),
        "other-activation": Outcome(
            "advice",
            "The loss takes each output as a class of its own, with a sigmoid, and the evaluation takes a softmax.",
            "Use a sigmoid in the evaluation, too.",
        ),
        "threshold-on-logits": Outcome(
            "advice",
            "Logits are compared with a threshold that is meant for probabilities.",
            "Take the sigmoid before the comparison, or compare logits with 0.",
        ),
        "counts-ignored": Outcome(
            "advice",
            "The metric counts places with a label that the loss ignores, such as padding.",
            "Count only the places whose label is not ignore_index.",
        ),
        "counts-elements": Outcome(
            "advice",
            "The metric counts the numbers of one-hot targets one by one, so an answer of only zeros is nearly right.",
            "Compare the classes: outputs.argmax(1) == targets.argmax(1).",
        ),
        "training-loader": Outcome(
            "advice",
            "Each evaluation reads the data loader that training reads.",
            "Evaluate on examples that training does not see.",
        ),
        "trains-on-validation": Outcome(
            "advice",
            "The network is trained on the batches of a loader that the script names as one for evaluations.",
            "Make the backward pass and the update only in the phase of training.",
        ),
        "trains-in-each-phase": Outcome(
            "advice",
            "A variable of the script tells training from validation, and the optimizer makes updates in both.",
            "Make the backward pass and the update only in the phase of training.",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._trained: set[int] = set()  # the labels of losses
        self._labels = 0  # their number
        # By optimizer, function and variable, the updates while the variable holds the word of a phase.
        self._phases: dict[tuple[int, CodeType, str], Counter[bool]] = {}

    def on_loss(self, loss: LossCall) -> None:
        """Note the labels that are trained."""
        if loss.with_gradients and not loss.targets.is_floating_point() and len(self._trained) < _KINDS:
            self._trained.update(loss.targets.unique()[:_KINDS].tolist())
            self._labels += loss.targets.numel()

    def after_step(self, optimizer: AnyOptimizer) -> None:
        """Look at the variables that say whether the script trains or validates."""
        for (code, name), word in words_in_use(_PHASES).items():
            updates = self._phases.setdefault((id(optimizer), code, name), Counter())
            updates[_PHASES[word]] += 1
            if not _PHASES[word] and updates[True] >= _LEAST and updates[False] == _LEAST:
                self.tell("trains-in-each-phase", f"an update while {name} is {word!r}, others while it is not")

    def on_operation(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """Look outside of networks at the dimension of a maximum, and at what becomes of logits."""
        if name == "masked losses":
            self._judge_mask(*args)
        if name.startswith("hits"):
            self._judge_hits(name, *args)
        if name in ("squash", "threshold"):
            self._judge_logits(name, args, str(result))
        if name != "maximum":
            return
        values, dim = args
        calls = [*self.watch.calls[-1:], *self.watch.evaluations[-1:]]
        is_output = any(tuple(values.shape) in call.output_shapes for call in calls)
        if is_output and values.dim() == 2 and dim in (1, -1) and values.size(1) == 1 < values.size(0):
            self.tell("one-output", f"a maximum over dimension {dim} of outputs of shape {tuple(values.shape)}")
        if not self.watch.evaluations:
            return
        shapes = self.watch.evaluations[-1].output_shapes
        if dim == 0 and values.dim() == 2 and tuple(values.shape) in shapes and values.size(0) > 1 < values.size(1):
            self.tell("best-example", f"a maximum over dimension 0 of outputs of shape {tuple(values.shape)}")

    def _judge_hits(self, name: str, predictions: Tensor, labels: Tensor) -> None:
        """Look at predictions that are compared with labels, and counted without a mask."""
        if labels.dim() == 2 and labels.is_floating_point() and bool((labels.sum(1) == 1).all()):
            self.tell("counts-elements", f"{labels.size(0)} targets of {labels.size(1)} numbers")
        if predictions.shape != labels.shape or predictions.is_floating_point() or not _are_classes(labels):
            return
        ignored = torch.isin(labels, torch.tensor(sorted(self.watch.ignored), device=labels.device))
        count, hits = int(ignored.sum()), int((ignored & (predictions == labels)).sum())
        if not count and self._labels >= _LABELS and len(self._trained) < _KINDS:
            # A label that no loss gets: a network cannot learn it, so a hit is a place that the script fills itself.
            unknown = ~torch.isin(labels, torch.tensor(sorted(self._trained), device=labels.device))
            hits = int((unknown & (predictions == labels)).sum())
            if hits >= _PLACES and hits > _COUNTED * int(unknown.sum()):
                self.tell("counts-ignored", f"{hits} of {labels.numel()} labels occur in no loss")
        # A sum is right if no ignored place counts as a hit. A mean divides by all places.
        if count and (name == "hits mean" or hits > count * _COUNTED):
            self.tell("counts-ignored", f"{count} of {labels.numel()} labels are ignored by the loss")

    def _judge_mask(self, labels: Tensor, mask: Tensor) -> None:
        """Look at a mask that keeps the losses of labels that no loss of the training gets, such as padding."""
        if labels.shape != mask.shape or not labels.dim() or not _are_classes(labels) or self._labels < _LABELS:
            return
        unknown = ~torch.isin(labels, torch.tensor(sorted(self._trained), device=labels.device))
        kept = labels[unknown & (mask != 0)]
        # One label in most rows, such as padding, and not many rare ones.
        is_common = kept.numel() >= max(_PLACES, _COUNTED * labels.size(0)) and kept.unique().numel() == 1
        if is_common and len(self._trained) < _KINDS:
            self.tell("counts-ignored", f"{kept.numel()} places with the label {int(kept[0])}, which no loss gets")

    def _judge_logits(self, name: str, args: tuple[Any, ...], function: str) -> None:
        """Look at the outputs that binary cross-entropy takes as logits."""
        watch = self.watch
        if watch.inside is not None or watch.answered != {"binary logits"} or not watch.evaluations:
            return
        if not watch.evaluations[-1].has_made(args[0]):
            return
        if name == "threshold" and 0 < args[1] < 1:
            self.tell("threshold-on-logits", f"a threshold of {args[1]:g}")
        elif name == "squash" and "softmax" in function and args[0].dim() > 1 and args[0].size(-1) > _LEAST:
            self.tell("other-activation", f"a {function} of outputs of shape {tuple(args[0].shape)}")

    def at_end(self) -> None:
        """Compare the loaders of training and of evaluation."""
        uses = self.watch.loaders.values()
        for use in uses:
            named = [name for name in sorted(use.names) if _EVALUATED.match(name)]
            if named and use.training >= _BATCHES and not any(map(_TRAINED.match, use.names)):
                self.tell("trains-on-validation", f"{use.training} batches of {named[0]}", "the loop over the batches")
        # A script may look at one batch of a loader before the training begins.
        evaluated = [use for use in uses if use.training >= _LEAST and use.evaluating >= _LEAST]
        if evaluated and all(use.training >= _LEAST or not use.epochs for use in uses):
            calls = [call for call in self.watch.evaluations if not call.training]
            if calls:
                self.tell("training-loader", f"{evaluated[0].evaluating} batches", calls[-1].place)


def _are_classes(labels: Tensor) -> bool:
    return not labels.is_floating_point() and labels.dtype is not torch.bool
