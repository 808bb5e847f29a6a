"""The first loss of a classifier is near the loss of a guess."""

import math
from typing import Any, ClassVar

from trainwreck.check import Check
from trainwreck.events import LossCall
from trainwreck.finding import Outcome

# figure                             | healthy    | broken | bound
# first loss over ln C, new weights  | 0.9 to 1.4 | > 1.5  | HIGH 1.5
# first loss over ln C, no answer    | > 0.7      | < 0.5  | LOW 0.5
HIGH, LOW = 1.5, 0.5


class FirstLoss(Check):
    """A network with new weights guesses, so the first cross-entropy among C classes is near ln C.

    Source: A. Karpathy, "A Recipe for Training Neural Networks" (2019), "verify loss @ init".
    """

    name = "first-loss"
    question = "Is the first loss the loss of a guess?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "one-class": Outcome(
            "alarm",
            "A cross-entropy over a single output is always 0.",
            "Use one output for each class, or binary_cross_entropy_with_logits.",
        ),
        "high": Outcome(
            "advice",
            "The first loss is far above the loss of a guess: the first outputs are too large.",
            "Use smaller first weights in the last layer, and normalize the inputs.",
            "exploding_init",
        ),
        "low": Outcome(
            "advice",
            "The first loss is far below the loss of a guess.",
            "If the network is not trained before, look for the target in its inputs.",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._seen = False

    def on_loss(self, loss: LossCall) -> None:
        """Look at the first cross-entropy."""
        if not loss.with_gradients or self._seen or loss.name not in ("cross_entropy", "nll_loss"):
            return
        if self.watch.step or loss.options.get("weight") is not None or not loss.outputs.numel():
            return
        self._seen = True
        classes = loss.outputs.size(1 if loss.outputs.dim() > 1 else 0)
        if classes < 2:
            self.tell("one-class", f"outputs of shape {tuple(loss.outputs.shape)}", loss.place)
            return
        if loss.targets.is_floating_point():
            count = loss.outputs.numel() // classes
        else:
            count = int((loss.targets != loss.options.get("ignore_index", -100)).sum())
        if not count or not math.isfinite(float(loss.value.sum())):
            return
        value = float(loss.value.sum()) / (count if loss.options.get("reduction", "mean") != "mean" else 1)
        text = f"the first loss is {value:.3g}; a guess among {classes} has ln {classes} = {math.log(classes):.3g}"
        if value > HIGH * math.log(classes):
            self.tell("high", text, loss.place)
        elif value < LOW * math.log(classes):
            self.tell("low", text, loss.place)
