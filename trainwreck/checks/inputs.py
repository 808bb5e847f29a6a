"""The inputs of a network have a common scale, and the examples of a batch differ."""

from typing import ClassVar

import torch
from torch import Tensor

from trainwreck.check import Check
from trainwreck.events import ModelCall
from trainwreck.finding import Outcome
from trainwreck.trees import tensors

# figure                            | healthy  | broken         | bound
# largest size of an input value    | below 30 | 255 for images | LARGE 100
LARGE = 100.0
_UPDATES, _LEAST = 3, 4


class Inputs(Check):
    """Input values have a size near 1, and the examples of a batch are not all equal.

    Source: Y. LeCun et al., "Efficient BackProp" (1998), section 4.3.
    """

    name = "inputs"
    question = "Are inputs scaled, and do the examples of a batch differ?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "large": Outcome(
            "advice",
            "The inputs of the network have large values.",
            "Scale them to mean 0 and deviation 1, with the statistics of the training examples.",
            "unnormalized_input",
        ),
        "equal": Outcome(
            "advice",
            "All examples of a batch are equal.",
            "Look at how examples are read, and at the index of the data set.",
            "blank_pixels",
        ),
    }

    def on_call(self, call: ModelCall) -> None:
        """Look at the first inputs."""
        if not call.with_gradients or self.watch.step >= _UPDATES:
            return
        name = type(call.network).__name__
        for tensor in tensors((call.args, call.kwargs)):
            if tensor.layout is not torch.strided or tensor.requires_grad or not tensor.numel():
                continue
            if not tensor.is_floating_point() or tensor.dim() < 2:
                continue
            size = float(tensor.abs().max())
            if LARGE < size < float("inf"):
                self.tell("large", f"{name} gets values up to {size:.3g}", call.place)
            if _are_equal(tensor):
                self.tell("equal", f"{name} gets {tensor.size(0)} equal examples", call.place)


def _are_equal(tensor: Tensor) -> bool:
    """Return whether all rows are equal, but not all entries."""
    if tensor.size(0) < _LEAST or tensor[0].numel() < 2:
        return False
    return bool((tensor == tensor[:1]).all()) and not bool((tensor == tensor.flatten()[0]).all())
