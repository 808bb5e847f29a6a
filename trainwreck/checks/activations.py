"""Units answer differently for different examples: they are neither dead nor saturated."""

from collections.abc import Generator
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from trainwreck.check import Check
from trainwreck.events import KeptCall
from trainwreck.finding import Outcome
from trainwreck.trees import clone
from trainwreck.trial import Probe

# figure                                               | healthy    | broken | bound
# share of a layer's units that are 0 for all examples | below 0.6  | > 0.95 | DEAD 0.9
# share of a layer's outputs within 0.01 of a bound    | below 0.5  | > 0.95 | SATURATED 0.9
DEAD, SATURATED = 0.9, 0.9
_NEAR, _LEAST = 0.01, 8
_RELUS = {F.relu, torch.relu, Tensor.relu, torch.relu_, Tensor.relu_, F.relu6, nn.functional.relu_}
_BOUNDED = {torch.sigmoid: 0.0, Tensor.sigmoid: 0.0, torch.tanh: -1.0, Tensor.tanh: -1.0, F.sigmoid: 0.0, F.tanh: -1.0}


class Activations(Check):
    """Most units of a layer are alive for some example of a batch, and most outputs of a sigmoid or tanh can move.

    A child repeats the last forward pass and looks at each activation.
    """

    name = "activations"
    question = "Are the units alive and not saturated?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "dead": Outcome(
            "advice",
            "Most units of a layer are 0 for all examples of the batch, so they get no gradient.",
            "Lower the learning rate, and look at the first biases and at the scale of the inputs.",
            "dead_relu_bias",
            symptom=True,
        ),
        "saturated": Outcome(
            "advice",
            "Most outputs of a sigmoid or tanh inside the network are at their bounds, so gradients vanish there.",
            "Use smaller first weights, normalize the inputs, or use a ReLU.",
            "vanishing_sigmoid",
        ),
    }

    def trials(self) -> Generator[Probe, Any, None]:
        """Probe each network that was trained."""
        for kept in self.watch.kept.values():
            found = yield lambda kept=kept: _worst_shares(kept)  # type: ignore[misc]
            network = type(kept.network).__name__
            for outcome, share, bound in zip(("dead", "saturated"), found or (), (DEAD, SATURATED), strict=False):
                if share > bound:
                    text = f"{share:.0%} in one activation of {network}"
                    self.tell(outcome, text, f"the forward pass of {network}")


def _worst_shares(kept: KeptCall) -> tuple[float, float]:
    """Return the largest share of dead units, and of saturated outputs, of all activations of a forward pass."""
    with torch._C._EnableTorchFunction(), torch.no_grad(), _Seen() as seen:
        kept.network(*clone(kept.args), **clone(kept.kwargs))
    # The last activation may be the output, which may be near 0 or 1.
    return max(seen.dead, default=0.0), max(seen.saturated[:-1], default=0.0)


class _Seen(TorchFunctionMode):
    """Measures each ReLU, sigmoid and tanh."""

    def __init__(self) -> None:
        super().__init__()
        self.dead: list[float] = []
        self.saturated: list[float] = []

    def __torch_function__(
        self, function: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        if not isinstance(result, Tensor) or result.dim() < 2 or result.size(0) < _LEAST:
            return result
        if result.layout is not torch.strided or not bool(result.isfinite().all()):
            return result
        if function in _RELUS and result.size(1) >= _LEAST:
            # A unit is a channel of an image, or a feature in the last dimension of a sequence.
            axis = 1 if result.dim() in (2, 4, 5) else result.dim() - 1
            alive = (result > 0).transpose(0, axis).reshape(result.size(axis), -1).any(1)
            self.dead.append(1 - float(alive.float().mean()))
        elif function in _BOUNDED:
            low = _BOUNDED[function]
            self.saturated.append(float(((result > 1 - _NEAR) | (result < low + _NEAR)).float().mean()))
        return result
