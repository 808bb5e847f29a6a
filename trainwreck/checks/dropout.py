"""Dropout leaves most values in place."""

from typing import Any, ClassVar

from torch import Tensor, nn

from trainwreck.check import Check
from trainwreck.events import ModelCall
from trainwreck.finding import Outcome

# figure                 | usual (source below) | broken               | bound
# probability of dropout | 0.2 to 0.5           | 0.9: a share to keep | MOST 0.85
# layers of images that drop half | 0 to 1 | 3 | OFTEN 3
MOST, HALF, OFTEN = 0.85, 0.5, 3
_IMAGE_DIMS = 4


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
            "keep_probability",
        ),
        "drops-often": Outcome(
            "advice",
            "Each of several convolutions loses half of its outputs to dropout, so little of an image is left.",
            "Use a lower probability in convolutions, such as 0.1, or dropout only before the last layers.",
            "keep_probability",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._half: list[ModelCall] = []  # a call for each of its dropouts of half of an image

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
            elif p >= HALF and given and isinstance(given[0], Tensor) and given[0].dim() == _IMAGE_DIMS:
                self._half = [*(one for one in self._half if one is call), call]
                if len(self._half) == OFTEN:
                    self.tell("drops-often", f"{OFTEN} times p = {p:g} in {type(call.network).__name__}", call.place)

    def _tell(self, p: float, call: ModelCall) -> None:
        self.tell("drops-most", f"p = {p:g} in {type(call.network).__name__}", call.place)
