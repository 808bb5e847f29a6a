"""Each example keeps to itself: its outputs do not depend on the other examples of its batch."""

from collections.abc import Generator
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from trainwreck.check import Check
from trainwreck.events import KeptCall, ModelCall
from trainwreck.finding import Outcome
from trainwreck.trees import clone, map_tensors, tensors
from trainwreck.trial import Probe

# The change of the other outputs over the change of the own output. Sound networks: rounding, below 1e-5.
MIXES = 1e-4


class Mixing(Check):
    """In eval mode, the outputs of an example do not change if another example of the batch changes.

    A child puts one example of the last batch in the place of another one, and compares the outputs. A network that
    gets the same inputs in each update, such as the nodes of one graph, has no batch.
    """

    name = "mixing"
    question = "Does each example keep to itself?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "mixes-examples": Outcome(
            "alarm",
            "In eval mode, the outputs of an example depend on the other examples of the batch.",
            "Look for a softmax, a mean or a reshape over the dimension of the batch.",
            "reshape_mixes_batch",
        )
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._inputs: dict[int, Tensor] = {}  # by network, the first input of the latest call
        self._whole: set[int] = set()  # networks that got the same tensor twice

    def on_call(self, call: ModelCall) -> None:
        """Note whether a network gets the same inputs as before."""
        given = next(tensors((call.args, call.kwargs)), None)
        if given is None or not call.with_gradients:
            return
        key = id(call.network)
        if self._inputs.get(key) is given and self.watch.step:
            self._whole.add(key)
        self._inputs[key] = given

    def trials(self) -> Generator[Probe, Any, None]:
        """Probe each network that was trained."""
        if self._whole:
            return  # other networks may get what this one makes of all examples
        for kept in self.watch.kept.values():
            share = yield lambda kept=kept: _share_of_others(kept)  # type: ignore[misc]
            if share is not None and share > MIXES:
                network = type(kept.network).__name__
                text = f"other outputs of {network} change by {share:.2g} of what the own output does"
                self.tell("mixes-examples", text, f"the forward pass of {network}")


def _share_of_others(kept: KeptCall) -> float | None:
    """Return the change of the other outputs over the change of the own one; the least over both batch dimensions.

    Time may come before the batch, so both of the first two dimensions are tried. Return None if no dimension can be
    tried: for sparse inputs, a single example, outputs without a dimension of the batch, and random outputs.
    """
    network = kept.network.eval()
    if kept.has_foreign_norms:
        return None  # a layer that the network does not know stays in training mode, and other checks say so
    inputs = [tensor for tensor in tensors((kept.args, kept.kwargs)) if tensor.dim()]
    if not inputs or any(tensor.layout != torch.strided for tensor in inputs) or _may_be_single(inputs[0]):
        return None
    first = outputs_of(network, kept.args, kept.kwargs)
    if not are_equal(first, outputs_of(network, kept.args, kept.kwargs)):
        return None
    found = []
    for dim in range(min(2, inputs[0].dim())):
        size = inputs[0].size(dim)
        rows = inputs[0].unbind(dim)
        other = next((row for row in range(1, size) if not torch.equal(rows[0], rows[row])), None)
        if other is None:
            continue

        def swap(tensor: Tensor, dim: int = dim, size: int = size, other: int = other) -> Tensor:
            if tensor.dim() <= dim or tensor.size(dim) != size:
                return tensor
            tensor = tensor.clone()
            tensor.select(dim, 0).copy_(tensor.select(dim, other).clone())
            return tensor

        second = outputs_of(network, map_tensors(kept.args, swap), map_tensors(kept.kwargs, swap))
        share = _compare(first, second, dim, size)
        if share is not None:
            found.append(share)
    return min(found, default=None)


def _may_be_single(tensor: Tensor) -> bool:
    """Return whether an input may be a single example or sequence, perhaps with a batch of one behind the time."""
    if tensor.is_floating_point():
        return tensor.dim() == 1 or (tensor.dim() == 3 and tensor.size(1) == 1)
    return tensor.dim() == 1 or (tensor.dim() == 2 and tensor.size(1) == 1)


def outputs_of(network: nn.Module, args: Any, kwargs: Any) -> list[Tensor]:
    """Return the outputs of a network that are floating-point numbers, as float32, with the same random numbers."""
    torch.manual_seed(0)
    with torch.no_grad():
        found = network(*clone(args), **clone(kwargs))
    return [tensor.float() for tensor in tensors(found) if tensor.is_floating_point() and tensor.dim()]


def are_equal(first: list[Tensor], second: list[Tensor]) -> bool:
    """Return whether two lists of outputs are equal, NaN at the same places included."""
    pairs = zip(first, second, strict=False)
    return all(one.shape == other.shape and torch.equal(one.nan_to_num(), other.nan_to_num()) for one, other in pairs)


def _compare(first: list[Tensor], second: list[Tensor], dim: int, size: int) -> float | None:
    """Return the largest change of other rows over the change of row 0; None if row 0 hardly changes."""
    own = others = largest = 0.0
    for before, after in zip(first, second, strict=False):
        if before.shape != after.shape or before.dim() <= dim or before.size(dim) != size:
            continue
        change = (before - after).transpose(0, dim).reshape(size, -1).abs().nan_to_num(0.0).amax(dim=1)
        own, others = max(own, float(change[0])), max(others, float(change[1:].max()))
        largest = max(largest, float(before.abs().max()))
    return others / own if own > MIXES * largest else None
