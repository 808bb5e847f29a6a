"""Labels vary, and some of them count."""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from trainwreck.check import Check
from trainwreck.events import LossCall
from trainwreck.finding import Outcome
from trainwreck.places import Place
from trainwreck.trees import tensors

_CLASSES = ("cross_entropy", "nll_loss")
_NUMBERS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
# figure                                   | healthy  | broken            | bound
# largest size of a target of a regression | below 30 | 1e5, such as euro | LARGE 100
# the same, in each batch                  | near 1   | 0.01              | SMALL 0.05
LARGE, SMALL = 100.0, 0.05
_LEAST = 64  # equal labels, before it is said that they do not vary
_KEPT = 3
_BATCHES = 4


class Labels(Check):
    """The labels of a classification vary, and at least one label of a batch counts."""

    name = "labels"
    question = "Do the labels vary, and do they count?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "constant": Outcome(
            "alarm",
            "All labels are equal.",
            "Shuffle the examples, and look at how the labels are read.",
            "truthy_labels",
        ),
        "all-ignored": Outcome(
            "alarm",
            "No label of a batch counts: all are ignored, and the mean over no label is not a number.",
            "Look at ignore_index and at the padding of the labels.",
        ),
        "large": Outcome(
            "advice",
            "The targets of a regression are large, so gradients are long and the network begins far away.",
            "Scale the targets to mean 0 and deviation 1, and scale predictions back.",
        ),
        "small": Outcome(
            "advice",
            "The targets of a regression are so small that a constant near 0 has a low loss.",
            "Scale the targets to mean 0 and deviation 1, and scale predictions back.",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._small = 0
        self._seen: dict[tuple[str, tuple[int, ...]], tuple[set[float], list[int], Place]] = {}

    def on_loss(self, loss: LossCall) -> None:
        """Note the labels of a loss for classes."""
        labels = loss.targets.detach()
        if not loss.with_gradients or not labels.numel():
            return
        if loss.name in _NUMBERS and labels.is_floating_point():
            size = float(labels.abs().max())
            if LARGE < size < float("inf") and self._are_of_data(loss.targets):
                self.tell("large", f"targets up to {size:.3g}", loss.place)
            if 0 < size < SMALL and labels.numel() > 1 and self._are_of_data(loss.targets):
                self._small += 1
                if self._small == _BATCHES:
                    self.tell("small", f"targets of at most {size:.2g}, in {_BATCHES} batches", loss.place)
        if loss.name in _CLASSES and not labels.is_floating_point():
            labels = labels[labels != loss.options.get("ignore_index", -100)]
            if not labels.numel():
                self.tell("all-ignored", f"{loss.targets.numel()} labels", loss.place)
                return
        elif not loss.name.startswith("binary"):
            return
        if not self._are_of_data(loss.targets, list(self.watch.parts)):
            return  # such as the index of the positive pair in a contrastive loss
        kinds, count, _ = self._seen.setdefault((loss.name, tuple(loss.outputs.shape[1:])), (set(), [0], loss.place))
        count[0] += labels.numel()
        if len(kinds) < _KEPT:
            kinds.update(labels.flatten().unique()[:_KEPT].tolist())

    def _are_of_data(self, labels: Tensor, parts: Sequence[Tensor] = ()) -> bool:
        """Return whether the labels are in a batch of a loader, or one of these parts of tensors."""
        batches = [use.last for use in self.watch.loaders.values()]
        given = [tensor for tensor in tensors([batches, *parts]) if tensor.numel() == labels.numel()]
        return any(torch.equal(one.flatten().to(labels), labels.flatten()) for one in given)

    def at_end(self) -> None:
        """Say whether all labels were equal."""
        for kinds, [count], place in self._seen.values():
            if len(kinds) == 1 and count >= _LEAST:
                self.tell("constant", f"{count} labels are {next(iter(kinds)):g}", place)
