"""The outputs of a network differ from example to example."""

from typing import ClassVar

import torch

from trainwreck.check import Check
from trainwreck.checks.loss_form import source_of
from trainwreck.events import LossCall
from trainwreck.finding import Outcome
from trainwreck.trees import tensors

# figure (medians of tests/data/scripts: 110 corrected scripts) | healthy     | broken      | bound
# spread of an output over the batch, over its size             | above 0.028 | up to 2e-7  | EQUAL 1e-6
EQUAL = 1e-6
_LEAST, _UPDATES = 4, 3


class Outputs(Check):
    """A network gives other outputs for other inputs."""

    name = "outputs"
    question = "Do the outputs differ from example to example?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "softmax-of-one": Outcome(
            "alarm",
            "A softmax over a single output is always 1.",
            "Use a sigmoid for one output, or two outputs with a softmax.",
        ),
        "constant": Outcome(
            "advice",
            "The network gives the same outputs for all examples of a batch.",
            "Look for units that are dead, for inputs that do not arrive, and at the learning rate.",
        ),
    }
    _constant = 0

    def on_loss(self, loss: LossCall) -> None:
        """Compare the outputs of a batch."""
        values = loss.outputs.detach()
        if not loss.with_gradients or not values.dim() or values.size(0) < _LEAST or not values.is_floating_point():
            return
        if source_of(loss.outputs) == "Softmax" and bool((values == 1).all()):
            self.tell("softmax-of-one", f"{loss.name} gets {values.numel()} values of 1", loss.place)
            return
        inputs = next(tensors((loss.call.args, loss.call.kwargs)), None) if loss.call is not None else None
        if inputs is None or not inputs.dim() or inputs.size(0) != values.size(0):
            return
        if bool((inputs == inputs[:1]).all()) or loss.call is None or not loss.call.with_gradients:
            return
        spread = (values - values[:1]).abs().max()
        if bool(torch.le(spread, EQUAL * values.abs().max())):
            self._constant += 1
            if self._constant == _UPDATES:
                self.tell("constant", f"{values.size(0)} equal outputs in {_UPDATES} batches", loss.place)
