"""Something that is not linear lies between two linear layers."""

from typing import Any, ClassVar

from torch import Tensor, nn

from trainwreck.check import Check
from trainwreck.events import LossCall
from trainwreck.finding import Outcome

# Operations that change the shape alone. The name of the graph's node begins with one of these.
_SHAPES = ("View", "UnsafeView", "Reshape", "Alias", "Expand", "Squeeze", "Unsqueeze")


class Layers(Check):
    """Two linear layers in a row compute no more than one, unless the values between them are fewer than on both sides.

    The graph of the loss shows which layer gets the output of another one as it is.
    """

    name = "layers"
    question = "Is there an activation between linear layers?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "no-activation": Outcome(
            "advice",
            "The output of a linear layer goes into the next one without an activation, so the two work as one.",
            "Put an activation between them, such as a ReLU.",
            "missing_activation",
        )
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._judged: set[int] = set()  # networks, by `id`

    def on_loss(self, loss: LossCall) -> None:
        """Follow the graph from the outputs, once for each network."""
        call = loss.call
        if not loss.with_gradients or call is None or id(call.network) in self._judged:
            return
        self._judged.add(id(call.network))
        owners = {
            id(layer.weight): (name, layer)
            for name, layer in call.network.named_modules()
            if type(layer) is nn.Linear and isinstance(layer.weight, Tensor)
        }
        for first, last in _pairs(loss.outputs, owners):
            (inner_name, inner), (outer_name, outer) = owners[first], owners[last]
            if inner.out_features >= min(inner.in_features, outer.out_features) and inner.in_features > 1:
                network = type(call.network).__name__
                text = f"{network}.{inner_name} ({inner.in_features} to {inner.out_features}) and {outer_name}"
                self.tell("no-activation", text, f"the forward pass of {network}")


def _pairs(outputs: Tensor, owners: dict[int, Any]) -> list[tuple[int, int]]:
    """Return pairs of weights, by `id`: the second one multiplies the output of the first one, perhaps reshaped."""
    found: list[tuple[int, int]] = []
    seen: set[Any] = set()
    ahead: list[tuple[Any, int | None]] = [(outputs.grad_fn, None)]
    while ahead:
        node, after = ahead.pop()
        if node is None or (node, after) in seen:
            continue
        seen.add((node, after))
        name = node.name().lstrip("_")
        inputs = [inner for inner, _ in node.next_functions if inner is not None]
        if name.startswith(("Addmm", "Mm")):
            weight = next((key for inner in inputs if (key := _weight(inner)) in owners), None)
            if weight is not None and after is not None:
                found.append((weight, after))
            ahead += [(inner, weight) for inner in inputs if _weight(inner) is None]
        else:
            keeps = name.startswith(_SHAPES) and len(inputs) == 1
            ahead += [(inner, after if keeps else None) for inner in inputs]
    return found


def _weight(node: Any) -> int | None:
    """Return the `id` of the parameter behind a node, or None if the node is an operation on values."""
    while node is not None and node.name().startswith("TBackward") and node.next_functions:
        node = node.next_functions[0][0]
    leaf = getattr(node, "variable", None)
    return id(leaf) if leaf is not None else None
