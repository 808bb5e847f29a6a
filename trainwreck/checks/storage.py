"""Reading an example changes nothing in the data set."""

from collections.abc import Generator, Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils.data import IterableDataset

from trainwreck.check import Check
from trainwreck.checks.workers import digest_of
from trainwreck.finding import Outcome
from trainwreck.trial import Probe

_EXAMPLES, _LEAST = 8, 16  # examples to read; entries of an array that counts as stored data
_MOST = 2**28  # bytes to compare, so that a large data set needs little time
_DEPTH = 3  # of containers and data sets inside of each other


class Storage(Check):
    """A data set gives its examples without changing what it stores.

    A child compares the arrays and tensors of each training data set before and after it reads some examples.
    """

    name = "storage"
    question = "Are the stored examples the same after they were read?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "changed": Outcome(
            "advice",
            "Reading an example changes the stored data, so the changes of all epochs may add up.",
            "Copy the example before a transform that works in place: image.copy() or image.clone().",
        )
    }

    def trials(self) -> Generator[Probe, Any, None]:
        """Probe the data sets that were trained on."""
        for use in self.watch.loaders.values():
            data = getattr(use.loader, "dataset", None)
            if not use.training or data is None or isinstance(data, IterableDataset):
                continue
            names = yield lambda data=data: _changed(data)  # type: ignore[misc]
            if names:
                self.tell("changed", f"{names[0]} of {type(data).__name__}", "the data set")


def _changed(data: Any) -> list[str]:
    """Return the names of the stored arrays that change while examples are read."""
    before = {name: digest_of(array) for name, array in _arrays(data, "", _DEPTH)}
    for index in range(min(_EXAMPLES, len(data))):
        data[index]
    after = {name: digest_of(array) for name, array in _arrays(data, "", _DEPTH)}
    return [name for name, value in before.items() if after.get(name, value) != value]


def _arrays(holder: Any, name: str, depth: int) -> Iterator[tuple[str, Tensor]]:
    """Yield the stored numbers of a data set, or of the first examples of a list, with their names."""
    array = _as_tensor(holder)
    if array is not None:
        if array.numel() >= _LEAST and array.numel() * array.element_size() <= _MOST:
            yield name, array
        return
    if depth == 0:
        return
    if isinstance(holder, list | tuple):
        for place, part in enumerate(holder[:_EXAMPLES]):
            yield from _arrays(part, f"{name}[{place}]", depth - 1)
    elif hasattr(holder, "__getitem__") and hasattr(holder, "__dict__"):
        for key, part in vars(holder).items():
            yield from _arrays(part, f"{name}.{key}" if name else key, depth - 1)


def _as_tensor(value: Any) -> Tensor | None:
    """Return a tensor, or an array of NumPy as a tensor that shares its memory; otherwise None."""
    if isinstance(value, Tensor):
        return value if value.layout is torch.strided else None
    if type(value).__module__ == "numpy" and type(value).__name__ == "ndarray" and value.dtype.kind in "fiub":
        try:
            return torch.as_tensor(value)
        except (TypeError, ValueError):
            return None
    return None
