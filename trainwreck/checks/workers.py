"""Each worker of a data loader has its own examples and its own random numbers."""

import hashlib
import random
import sys
from collections.abc import Generator
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils.data import IterableDataset

from trainwreck.check import Check
from trainwreck.events import LoaderUse
from trainwreck.finding import Outcome
from trainwreck.trees import tensor_bytes, tensors
from trainwreck.trial import Probe

_TWICE = 2
_SEEDS = (11, 12)  # the state before the script's own function differs, as torch makes it


class Workers(Check):
    """The workers of a loader give other batches than each other, and draw other random numbers.

    A child calls the `worker_init_fn` of each loader for two workers, and compares their random states.
    """

    name = "workers"
    question = "Does each worker have its own examples and its own random numbers?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "same-batches": Outcome(
            "alarm",
            "The workers of an iterable data set give the same batches.",
            "Give each worker its own part, with torch.utils.data.get_worker_info().",
        ),
        "same-seed": Outcome(
            "alarm",
            "All workers of a data loader draw the same random numbers.",
            "Add the number of the worker to the seed in worker_init_fn.",
            "duplicate_worker_rng",
        ),
    }

    def __init__(self, watch: Any) -> None:
        super().__init__(watch)
        self._previous: dict[int, bytes] = {}
        self._equal: dict[int, int] = {}

    def on_batch(self, use: LoaderUse, batch: Any, number: int) -> None:
        """Compare neighbouring batches: workers take turns."""
        if not isinstance(use.loader.dataset, IterableDataset) or use.loader.num_workers < _TWICE:
            return
        digest, key = digest_of(batch), id(use)
        if digest is None:
            return
        if number and self._previous.get(key) == digest:
            self._equal[key] = self._equal.get(key, 0) + 1
            if self._equal[key] == _TWICE:
                self.tell("same-batches", f"{use.loader.num_workers} workers", "the iterable data set")
        self._previous[key] = digest

    def trials(self) -> Generator[Probe, Any, None]:
        """Seed two workers of each loader as the script does."""
        for use in self.watch.loaders.values():
            function = getattr(use.loader, "worker_init_fn", None)
            if function is None or use.loader.num_workers < _TWICE:
                continue
            equal = yield lambda function=function: _have_equal_states(function)  # type: ignore[misc]
            if equal:
                self.tell("same-seed", f"{' and '.join(equal)} for workers 0 and 1", "the worker_init_fn of the loader")


def _have_equal_states(function: Any) -> list[str]:
    """Return the generators that have equal states after the function was called for workers 0 and 1."""
    numpy = sys.modules.get("numpy")
    states = []
    for worker, seed in enumerate(_SEEDS):
        random.seed(seed)
        torch.manual_seed(seed)
        if numpy is not None:
            numpy.random.seed(seed)
        function(worker)
        drawn = {"random": random.random(), "torch": float(torch.rand(()))}
        states.append(drawn if numpy is None else {**drawn, "numpy.random": numpy.random.random()})
    return [name for name in states[0] if states[0][name] == states[1][name]]


def digest_of(batch: Any) -> bytes | None:
    """Return a digest of all tensors of a batch, or None for a batch without any or with a single number."""
    found = hashlib.sha256()
    sizes = 0
    for tensor in tensors(batch):
        if isinstance(tensor, Tensor) and tensor.dim():
            sizes += tensor.numel()
            found.update(tensor_bytes(tensor))
    return found.digest() if sizes > 1 else None
