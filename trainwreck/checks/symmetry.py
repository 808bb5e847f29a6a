"""The units of a layer learn different things."""

import weakref
from typing import Any, ClassVar

from torch import Tensor, nn

from trainwreck.check import Check
from trainwreck.finding import Outcome
from trainwreck.places import Place

_LAYERS = (nn.Linear, nn.modules.conv._ConvNd)
_LEAST_UPDATES, _DRAWS = 3, 3


class Symmetry(Check):
    """Two units of a layer that begin alike and get equal gradients stay alike, so a layer needs random weights."""

    name = "symmetry"
    question = "Do the units of each layer differ?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "equal-units": Outcome(
            "alarm",
            "All units of a layer have equal weights, also after updates, so the layer works as a single unit.",
            "Give the layer random first weights.",
        ),
        "drawn-often": Outcome(
            "advice",
            "One line draws the first weights of a layer several times, so all but the last draw are lost.",
            "Module.apply calls its function for each part of a network: change only the weights of this part.",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._draws: dict[tuple[int, Place], tuple[weakref.ref[Any], int]] = {}  # by parameter and line

    def on_fill(self, is_random: bool, tensor: Tensor, place: Place) -> None:
        """Count how often a line draws the weights of a parameter before the training."""
        if not is_random or self.watch.step or not isinstance(tensor, nn.Parameter):
            return
        ref, count = self._draws.get((id(tensor), place), (weakref.ref(tensor), 0))
        count = count + 1 if ref() is tensor else 1
        self._draws[id(tensor), place] = weakref.ref(tensor), count
        if count == _DRAWS:
            self.tell("drawn-often", f"a weight of shape {tuple(tensor.shape)}, {_DRAWS} times", place)

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
