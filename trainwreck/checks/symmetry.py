"""The units of a layer learn different things."""

from typing import ClassVar

from torch import nn

from trainwreck.check import Check
from trainwreck.finding import Outcome

_LAYERS = (nn.Linear, nn.modules.conv._ConvNd)
_LEAST_UPDATES = 3


class Symmetry(Check):
    """Two units of a layer that begin alike and get equal gradients stay alike, so a layer needs random weights."""

    name = "symmetry"
    question = "Do the units of each layer differ?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "equal-units": Outcome(
            "alarm",
            "All units of a layer have equal weights, also after updates, so the layer works as a single unit.",
            "Give the layer random first weights.",
        )
    }

    def at_end(self) -> None:
        """Compare the units of each layer whose weights have changed."""
        if self.watch.step < _LEAST_UPDATES:
            return
        for network in self.watch.networks.values():
            for name, layer in network.named_modules():
                if not isinstance(layer, _LAYERS) or layer.weight.size(0) < 2:
                    continue
                state = self.watch.parameters.get(id(layer.weight))
                if state is None or not state.in_step or not state.has_moved():
                    continue
                if bool((layer.weight == layer.weight[:1]).all()) and layer.weight[0].numel() > 1:
                    text = f"the {layer.weight.size(0)} units of {type(network).__name__}.{name} are equal"
                    self.tell("equal-units", text, "where the layer gets its first weights")
