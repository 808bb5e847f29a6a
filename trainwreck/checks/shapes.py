"""Outputs and targets meet one by one."""

from typing import Any, ClassVar

import torch

from trainwreck.check import Check
from trainwreck.events import LossCall
from trainwreck.finding import Outcome

_CLASSES = ("cross_entropy", "nll_loss", "ctc_loss", "multi_margin_loss")


class Shapes(Check):
    """No output is compared with the target of another example because shapes broadcast."""

    name = "shapes"
    question = "Is each output compared with its own target alone?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "all-pairs": Outcome(
            "alarm",
            "Shapes broadcast, so each output is compared with every target.",
            "Give outputs and targets one shape, for example with squeeze(1).",
            "broadcast_loss",
        ),
        "all-products": Outcome(
            "advice",
            "A product broadcasts, so what the network gives for an example is multiplied with values of all examples.",
            "Give both factors one shape, for example with squeeze(1).",
        ),
        "all-comparisons": Outcome(
            "advice",
            "A comparison broadcasts, so each prediction is compared with every target.",
            "Give predictions and targets one shape before you count equal ones.",
            "accuracy_broadcast",
        ),
        "reshaped": Outcome(
            "advice",
            "A reshape gives the dimensions another order, but leaves the values where they are.",
            "Use permute or transpose to change the order of dimensions.",
            "reshape_mixes_batch",
        ),
        "norm-of-parts": Outcome(
            "advice",
            "The norm of a gradient leaves out dimensions of the example, so each part of an example has its own norm.",
            "Flatten the gradient of each example first: gradient.flatten(1).norm(dim=1).",
        ),
    }

    def on_loss(self, loss: LossCall) -> None:
        """Look at the shapes that a loss gets."""
        if loss.name in _CLASSES or loss.outputs.shape == loss.targets.shape:
            return
        try:
            pairs = torch.broadcast_shapes(loss.outputs.shape, loss.targets.shape).numel()
        except RuntimeError:
            return
        if pairs > max(loss.outputs.numel(), loss.targets.numel()):
            text = f"{loss.name} of {tuple(loss.outputs.shape)} and {tuple(loss.targets.shape)}: {pairs} pairs"
            self.tell("all-pairs", text, loss.place)

    def on_operation(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """Look at norms of gradients, reshapes, and differences, products or comparisons of a column and a row."""
        if name == "gradient norm" and result.numel() > args[0].size(0):
            text = f"the gradient {tuple(args[0].shape)} of one value for each example has norms {tuple(result.shape)}"
            self.tell("norm-of-parts", text)
        if name == "reshape":
            self.tell("reshaped", f"{tuple(args[0].shape)} becomes {tuple(result.shape)}")
        if name not in ("difference", "comparison", "product"):
            return
        one, other = sorted(args, key=lambda tensor: -tensor.dim())
        if one.dim() != 2 or other.dim() != 1 or one.size(1) != 1 or not one.size(0) == other.size(0) > 1:
            return
        if name != "comparison" and one.requires_grad == other.requires_grad:
            return  # distances or products of all pairs are wanted
        text = f"{tuple(one.shape)} and {tuple(other.shape)} give {tuple(result.shape)}"
        names = {"difference": "all-pairs", "comparison": "all-comparisons", "product": "all-products"}
        self.tell(names[name], text)
