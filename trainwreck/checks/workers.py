"""Each worker of a data loader has its own examples and its own random numbers."""

import hashlib
import random
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
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
_SEEDS = (11, 12, 111)  # the state before the script's own function differs, as torch makes it
_READS = 16  # if two variants are equally likely, sound workers agree once in 65,536 times


class Workers(Check):
    """The workers of a loader give other batches than each other, and draw other random numbers.

    A child calls the `worker_init_fn` of each loader for two workers, and compares their random states. Other children
    read an example several times, as a worker does, and compare the variants.
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
        ),
        "same-draws": Outcome(
            "alarm",
            "The workers of a data loader read the same random variants of an example.",
            "Each worker gets a copy of the data set, with the state of its generators: give each copy a new generator"
            " in worker_init_fn, with the seed get_worker_info().seed.",
        ),
        "same-epochs": Outcome(
            "advice",
            "A worker reads the same random variants of an example in each epoch.",
            "Workers start anew in each epoch: seed them with get_worker_info().seed, which changes, and not with a"
            " constant.",
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
            if use.loader.num_workers < _TWICE:
                continue
            if equal := (yield partial(_have_equal_states, use.loader)):
                self.tell("same-seed", f"{' and '.join(equal)} for workers 0 and 1", "the worker_init_fn of the loader")
                continue
            if isinstance(use.loader.dataset, IterableDataset):
                continue
            found = []
            for worker, seed in ((0, _SEEDS[0]), (1, _SEEDS[1]), (0, _SEEDS[2])):  # the third: in another epoch
                found.append((yield partial(_variants, use.loader, worker, seed)))
            first, second, later = found
            if not first or len({*first}) == 1:
                continue
            if first == second:
                self.tell("same-draws", f"{_READS} variants of example 0 in workers 0 and 1", "the data set")
            elif first == later and not use.loader.persistent_workers:
                self.tell("same-epochs", f"{_READS} variants of example 0 in two epochs", "the worker_init_fn")


def _have_equal_states(loader: Any) -> list[str]:
    """Return the generators of the process that have equal states in workers 0 and 1."""
    numpy = sys.modules.get("numpy")
    states = []
    for worker, seed in enumerate(_SEEDS[:_TWICE]):
        with _as_worker(loader, worker, seed):
            drawn = {"random": random.random(), "torch": float(torch.rand(()))}
            states.append(drawn if numpy is None else {**drawn, "numpy.random": numpy.random.random()})
    return [name for name in states[0] if states[0][name] == states[1][name]]


def _variants(loader: Any, worker: int, seed: int) -> list[str]:
    """Read example 0 several times as a worker does. Return the digests, or [] if that fails."""
    try:
        with _as_worker(loader, worker, seed):
            digests = [digest_of(loader.collate_fn([loader.dataset[0]])) for _ in range(_READS)]
    except Exception:  # a data set with other keys, for example
        return []
    return [] if None in digests else [digest.hex() for digest in digests if digest]


@contextmanager
def _as_worker(loader: Any, worker: int, seed: int) -> Iterator[None]:
    """Give this process, which only answers a probe, the seed and the state of a worker."""
    random.seed(seed)
    torch.manual_seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed)
    workers = torch.utils.data._utils.worker
    workers._worker_info = workers.WorkerInfo(
        id=worker, num_workers=loader.num_workers, seed=seed, dataset=loader.dataset
    )
    try:
        if loader.worker_init_fn is not None:
            loader.worker_init_fn(worker)
        yield
    finally:
        workers._worker_info = None


def digest_of(batch: Any) -> bytes | None:
    """Return a digest of all tensors of a batch, or None for a batch without any or with a single number."""
    found = hashlib.sha256()
    sizes = 0
    for tensor in tensors(batch):
        if isinstance(tensor, Tensor) and tensor.dim():
            sizes += tensor.numel()
            found.update(tensor_bytes(tensor))
    return found.digest() if sizes > 1 else None
