"""Dropout leaves most values in place."""

from typing import Any, ClassVar

from torch import nn

from trainwreck.check import Check
from trainwreck.events import ModelCall
from trainwreck.finding import Outcome

# figure                 | usual (source below) | broken               | bound
# probability of dropout | 0.2 to 0.5           | 0.9: a share to keep | MOST 0.85
MOST = 0.85


class Dropout(Check):
    """A dropout layer zeroes a minority of the values, or at most a few more than half.

    Source: N. Srivastava et al., "Dropout" (2014), section A.4: retain 0.5 to 0.8 of the hidden units.
    """

    name = "dropout"
    question = "Does dropout leave most values in place?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "drops-most": Outcome(
            "advice",
            "A dropout layer zeroes nearly all values.",
            "The argument of torch's dropout is the share that it zeroes, not the share that it keeps.",
        )
    }

    def on_call(self, call: ModelCall) -> None:
        """Look at the layers that ran."""
        for layer, training in call.layers if call.with_gradients else ():
            if isinstance(layer, nn.modules.dropout._DropoutNd) and training and layer.p > MOST:
                self._tell(layer.p, call)

    def on_operation(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """Look at functional dropout inside a network."""
        call = self.watch.inside
        if name == "dropout" and call is not None and call.training:
            given, options = args
            p = options.get("p", given[1] if len(given) > 1 else 0.5)
            if options.get("training", given[2] if len(given) > 2 else True) and p > MOST:
                self._tell(p, call)

    def _tell(self, p: float, call: ModelCall) -> None:
        self.tell("drops-most", f"p = {p:g} in {type(call.network).__name__}", call.place)
