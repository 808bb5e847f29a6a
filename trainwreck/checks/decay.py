"""Weight decay is slow beside the training."""

from typing import Any, ClassVar

import torch

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer
from trainwreck.finding import Outcome

# figure                                                  | usual settings           | bound
# share of the weights that decay takes away in an update | 1e-4 (rate 1e-3 by 0.1)  | STRONG 0.01
STRONG = 0.01


class Decay(Check):
    """Weight decay takes away less than a hundredth of the weights in an update.

    Source: I. Loshchilov and F. Hutter, "Decoupled Weight Decay Regularization" (2019).
    """

    name = "decay"
    question = "Is weight decay slow beside the training?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "strong": Outcome(
            "advice",
            "Weight decay takes away a large part of the weights in each update.",
            "Use a weight_decay of 1e-4 to 0.1.",
            "excess_weight_decay",
        ),
        "inside-adam": Outcome(
            "note",
            "Adam adds the weight decay to the gradient and then divides it by the size of the gradients.",
            "Use AdamW if you want decay that does not depend on the gradients.",
            "adam_l2",
        ),
    }

    def before_step(self, optimizer: AnyOptimizer) -> None:
        """Look at the settings of each group."""
        kind = type(optimizer).__name__
        for group in optimizer.param_groups:
            decay, rate = _number(group.get("weight_decay")), _number(group.get("lr"))
            if not decay:
                continue
            if isinstance(optimizer, torch.optim.AdamW | torch.optim.SGD) and decay * rate > STRONG:
                text = f"{kind}: {decay:g} times the learning rate {rate:g} is {decay * rate:.2g} in each update"
                self.tell("strong", text, self.watch.place_of(optimizer))
            if type(optimizer) is torch.optim.Adam and not group.get("decoupled_weight_decay"):
                self.tell("inside-adam", f"weight_decay {decay:g}", self.watch.place_of(optimizer))


def _number(value: Any) -> float:
    return float(value) if value is not None else 0.0
