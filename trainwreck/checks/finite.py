"""Losses are finite, and the first operation that makes another value is named."""

import math
from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from trainwreck.check import Check
from trainwreck.events import BackwardPass, ModelCall
from trainwreck.finding import Outcome
from trainwreck.places import Place, here
from trainwreck.trees import clone, tensors

# These give infinities on purpose, as in masks, or have no defined values yet.
_FILLS = ("full", "empty", "fill", "masked_fill", "new_", "triu", "tril", "where", "scalar_tensor", "zeros", "ones")


class Finite(Check):
    """A loss is finite. If it is not, a child repeats the forward pass and finds the first operation to blame."""

    name = "finite"
    question = "Is each loss finite?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "inputs": Outcome(
            "alarm", "The inputs of the network are not finite.", "Look at how the data is prepared.", "nan_blank_image"
        ),
        "weights": Outcome(
            "alarm",
            "An update has made weights that are not finite.",
            "Lower the learning rate, clip the gradients, and look at the first gradient that is not finite.",
            "huge_lr",
        ),
        "operation": Outcome(
            "alarm",
            "An operation of the forward pass makes a value that is not finite.",
            "Bound its inputs: add an epsilon, clamp them, or use a function that is stable.",
            "nan_blank_image",
        ),
        "loss": Outcome(
            "alarm",
            "The loss is not finite, and the outputs of the network are.",
            "Look at the arguments of the loss, and at what is computed between the network and the loss.",
            "empty_selection",
        ),
    }

    def before_backward(self, backward: BackwardPass) -> None:
        """Look at the first loss that is not finite."""
        watch = self.watch
        if self.findings or watch.trial is not None or _are_finite(backward.roots):
            return
        if watch.scale != 1 and all(_are_finite([loss.value]) for loss in watch.loss_calls):
            return  # the factor of the scaler makes it overflow, and the scaler lowers it
        wrong = [call for call in watch.calls if not _are_finite(tensors((call.args, call.kwargs)))]
        if wrong:
            self.tell("inputs", f"{type(wrong[0].network).__name__} gets them", wrong[0].place)
            return
        if not _are_finite(state.tensor for state in watch.parameters.values()):
            self.tell("weights", f"after update {watch.step}", "learning rate, or the gradients of that update")
            return
        for call in watch.calls:
            found = watch.probe(lambda call=call: _first_operation(call))  # type: ignore[misc]
            if found:
                self.tell("operation", found["text"], Place(**found["place"]))
                return
        self._blame_loss(backward)

    def _blame_loss(self, backward: BackwardPass) -> None:
        for loss in self.watch.loss_calls:
            if not _are_finite([loss.value]):
                text = f"{loss.name} gives {float(loss.value.sum()):g}"
                self.tell("loss", text, loss.place)
                return
        self.tell("loss", f"the loss is {float(backward.roots[0].sum()):g}", backward.place)


def _are_finite(given: Iterable[Tensor]) -> bool:
    dense = (one for one in given if one.is_floating_point() and one.layout is torch.strided)
    return all(bool(one.isfinite().all()) for one in dense)


def _first_operation(call: ModelCall) -> dict[str, Any] | None:
    """Repeat the call of a network, and return the first operation that makes a value that is not finite."""
    with torch._C._EnableTorchFunction(), torch.enable_grad(), _FirstOperation() as seen:
        call.network(*clone(call.args), **clone(call.kwargs))
    found: dict[str, Any] | None = seen.found
    return found


class _FirstOperation(TorchDispatchMode):
    """Finds the first operation that makes NaN or an infinity from finite inputs."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: dict[str, Any] | None = None

    def __torch_dispatch__(
        self, function: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if self.found is None and not name.startswith(_FILLS):
            self._look(name, [one for one in tensors((args, kwargs or {})) if one.is_floating_point()], result)
        return result

    def _look(self, name: str, given: list[Tensor], result: Any) -> None:
        made = [one for one in tensors(result) if one.is_floating_point()]
        if _are_finite(made):
            return
        is_nan = any(bool(one.isnan().any()) for one in made)
        # An infinity may be wanted, as in a mask. It is to blame if it comes from finite values, and NaN if it is new.
        if not (_are_finite(given) or (is_nan and not any(bool(one.isnan().any()) for one in given))):
            return
        sizes = [float(one.abs().nan_to_num(0.0, 0.0, 0.0).max()) for one in given if one.numel()]
        largest = max(sizes, default=math.nan)
        kind = "NaN" if is_nan else "an infinity"
        place = here()
        self.found = {
            "text": f"{name.strip('_')} makes {kind}; the largest of its finite inputs is {largest:.3g}",
            "place": {"file": place.file, "line": place.line, "function": place.function},
        }
