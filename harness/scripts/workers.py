"""Emulate the workers of a `DataLoader` in this process: the batches have the same bytes as from real workers.

Each emulated worker has its own copy of the data set, its own random states of Python, NumPy and torch, and its own
`get_worker_info()`, as a worker process has. A sandbox without shared memory needs this.
"""

import collections
import copy
import itertools
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, _utils
from torch.utils.data._utils.worker import WorkerInfo, _generate_state
from torch.utils.data.dataloader import _DatasetKind

from harness.run.checkpoint import restore_rng_states, rng_states


class EmulatedWorkers:
    """The iterator of a loader with workers. `rng_states` are taken and restored around each fetch.

    The order of the draws is the one of `torch.utils.data.dataloader._MultiProcessingDataLoaderIter` in torch 2.13.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._workers = loader.num_workers
        self._indices = iter(loader._index_sampler)
        drawn = torch.empty((), dtype=torch.int64).random_(generator=loader.generator)
        base = int(drawn.item())
        main = rng_states()
        self._fetchers: list[tuple[Any, WorkerInfo, dict[str, Any]]] = []
        for number in range(self._workers):
            restore_rng_states(main)
            self._fetchers.append(_start(loader, number, base))
        restore_rng_states(main)
        self._turn = 0
        # A real worker gets indices ahead of time, so a sampler that draws as it goes has drawn that much earlier.
        ahead = (loader.prefetch_factor or 2) * self._workers
        self._ahead = collections.deque(itertools.islice(self._indices, ahead))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self._ahead:
            raise StopIteration
        number = self._turn % self._workers
        self._turn += 1
        fetcher, info, states = self._fetchers[number]
        main = rng_states()
        restore_rng_states(states)
        new_shared = torch.UntypedStorage._new_shared
        _utils.worker._worker_info = info
        # In a worker, the default collate function asks for shared memory; here nobody shares.
        torch.UntypedStorage._new_shared = classmethod(_new_unshared)  # type: ignore[assignment]
        try:
            batch = fetcher.fetch(self._ahead.popleft())
        finally:
            torch.UntypedStorage._new_shared = new_shared  # type: ignore[method-assign]
            _utils.worker._worker_info = None
            self._fetchers[number] = fetcher, info, rng_states()
            restore_rng_states(main)
        self._ahead.extend(itertools.islice(self._indices, 1))
        return batch


def _new_unshared(kind: type[torch.UntypedStorage], size: int, *, device: Any = "cpu") -> torch.UntypedStorage:
    return kind(size, device=device)


def _start(loader: DataLoader[Any], number: int, base: int) -> tuple[Any, WorkerInfo, dict[str, Any]]:
    """Seed this process as a worker seeds itself, and return its fetcher, its info and its random states."""
    seed = base + number
    random.seed(seed)
    torch.manual_seed(seed)
    np.random.seed(_generate_state(base, number))
    data = copy.deepcopy(loader.dataset)
    info = WorkerInfo(id=number, num_workers=loader.num_workers, seed=seed, dataset=data)
    _utils.worker._worker_info = info
    try:
        if loader.worker_init_fn is not None:
            loader.worker_init_fn(number)
        fetcher = _DatasetKind.create_fetcher(
            loader._dataset_kind, data, loader._auto_collation, loader.collate_fn, loader.drop_last
        )
    finally:
        _utils.worker._worker_info = None
    return fetcher, info, rng_states()
