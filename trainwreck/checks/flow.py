"""Gradients reach all layers with a similar size."""

from typing import Any, ClassVar

from torch import nn

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer
from trainwreck.finding import Outcome

# figure                                                         | healthy     | broken | bound
# gradient of a layer over the largest of all layers (rms)       | above 1e-4  | 1e-7   | VANISHED 1e-6
# norm of all gradients over the norm of all weights, each time  | below 10    | 1e5    | EXPLODED 1e3
VANISHED, EXPLODED = 1e-6, 1e3
_LAYERS = (nn.Linear, nn.modules.conv._ConvNd, nn.RNNBase)
_LEAST = 4  # updates; the first ones may begin from zeros


class Flow(Check):
    """The gradient of each layer has at least a millionth of the size that the gradient of another layer has.

    Source: X. Glorot and Y. Bengio, "Understanding the difficulty of training deep feedforward networks" (2010).
    """

    name = "flow"
    question = "Do gradients reach all layers?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "vanishing": Outcome(
            "advice",
            "The gradient of a layer is tiny beside the gradients of other layers, so the layer does not learn.",
            "Use other activations, normalization or residual connections, and look at the first weights.",
            "vanishing_sigmoid",
        ),
        "exploding": Outcome(
            "advice",
            "The gradients are very long beside the weights.",
            "Clip the gradients, scale the targets or the loss, and look at the first weights.",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._small: dict[str, int] = {}
        self._long = 0

    def before_step(self, optimizer: AnyOptimizer) -> None:
        """Compare the gradients of the layers of each network."""
        owned = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        for network in self.watch.networks.values():
            sizes = {
                name: float(layer_weight.grad.float().pow(2).mean().sqrt())
                for name, layer_weight in _weights(network)
                if layer_weight.grad is not None and id(layer_weight) in owned and layer_weight.numel() > 1
            }
            largest = max(sizes.values(), default=0.0)
            if not 0 < largest < float("inf"):
                continue
            for name, size in sizes.items():
                if size < VANISHED * largest:
                    key = f"{type(network).__name__}.{name}"
                    self._small[key] = self._small.get(key, 0) + 1
                    if self._small[key] == _LEAST:
                        text = f"{key}: {size:.1g}, the largest one {largest:.1g} (root mean square)"
                        self.tell("vanishing", text, f"the forward pass of {type(network).__name__}")
        self._judge_length(optimizer)

    def _judge_length(self, optimizer: AnyOptimizer) -> None:
        parameters = [one for group in optimizer.param_groups for one in group["params"] if one.grad is not None]
        pulls = sum(float(one.grad.float().pow(2).sum()) for one in parameters if not one.grad.is_sparse) ** 0.5
        weights = sum(float(one.detach().float().pow(2).sum()) for one in parameters) ** 0.5
        scale = self.watch.scale
        if weights and EXPLODED < pulls / scale / weights < float("inf"):
            self._long += 1
            if self._long == _LEAST:
                text = f"a norm of {pulls / scale:.2g}, the weights {weights:.2g}, in {_LEAST} updates"
                self.tell("exploding", text)


def _weights(network: nn.Module) -> Any:
    for name, layer in network.named_modules():
        if isinstance(layer, _LAYERS):
            yield from ((f"{name}.{own}".lstrip("."), one) for own, one in layer.named_parameters() if one.dim() > 1)
