"""Gradients reach all layers with a similar size."""

from collections.abc import Mapping, Sequence
from math import hypot, isfinite
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from trainwreck.check import Check
from trainwreck.events import AnyOptimizer
from trainwreck.finding import Outcome
from trainwreck.state import parameters_of

# figure (medians of tests/data/scripts: 125 corrected scripts)  | healthy      | broken     | bound
# gradient of a layer over the largest of all layers (rms)       | above 0.0029 | up to 8e-9 | VANISHED 1e-6
# norm of all gradients over the norm of all weights             | up to 16     | above 2.8e4 | EXPLODED 1e3
VANISHED, EXPLODED = 1e-6, 1e3
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
            symptom=True,
        ),
        "exploding": Outcome(
            "advice",
            "The gradients are very long beside the weights.",
            "Clip the gradients, scale the targets or the loss, and look at the first weights.",
            "exploding_init",
            symptom=True,
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._small: dict[str, int] = {}
        self._long = 0
        self._length = 0.0  # of the weights, when they were last looked at

    def before_step(self, optimizer: AnyOptimizer) -> None:
        """Compare the gradients of the layers of each network."""
        parameters = [
            one
            for one in parameters_of(optimizer)
            if one.grad is not None and one.grad.layout is torch.strided and one.is_floating_point()
        ]
        gradients = [one.grad for one in parameters if one.grad is not None]
        if not gradients:
            return
        norms = torch.stack([norm.float() for norm in torch._foreach_norm(gradients)]).tolist()
        if not isfinite(sum(norms)):
            return
        sizes = {id(one): norm / one.numel() ** 0.5 for one, norm in zip(parameters, norms, strict=True)}
        for network in self.watch.networks.values():
            self._judge_layers(type(network).__name__, _weights(network, sizes))
        self._judge_length(parameters, hypot(*norms) / self.watch.scale)

    def _judge_layers(self, network: str, sizes: Mapping[str, float]) -> None:
        largest = max(sizes.values(), default=0.0)
        for name, size in sizes.items():
            if size < VANISHED * largest:
                key = f"{network}.{name}"
                self._small[key] = self._small.get(key, 0) + 1
                if self._small[key] == _LEAST:
                    text = f"{key}: {size:.1g}, the largest one {largest:.1g} (root mean square)"
                    self.tell("vanishing", text, f"the forward pass of {network}")

    def _judge_length(self, parameters: Sequence[Tensor], pull: float) -> None:
        if pull <= EXPLODED * self._length:
            return  # most often, without a look at the weights
        self._length = hypot(*torch.stack(torch._foreach_norm([one.detach() for one in parameters])).tolist())
        if pull > EXPLODED * self._length > 0:
            self._long += 1
            if self._long == _LEAST:
                text = f"a norm of {pull:.2g}, the weights {self._length:.2g}, in {_LEAST} updates"
                self.tell("exploding", text)


def _weights(network: nn.Module, sizes: Mapping[int, float]) -> dict[str, float]:
    """Return the size of the gradient of each weight matrix. Of an embedding, a batch uses few rows."""
    return {
        f"{name}.{own}".lstrip("."): sizes[id(one)]
        for name, layer in network.named_modules()
        if not isinstance(layer, nn.Embedding | nn.EmbeddingBag)
        for own, one in layer.named_parameters(recurse=False)
        if one.dim() > 1 and one.numel() > 1 and id(one) in sizes
    }
