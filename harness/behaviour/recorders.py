"""Record calls in a training step: calls of the network, of gradient clipping and of autocast."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import nn


@contextmanager
def record_batch_sizes(model: nn.Module) -> Iterator[list[int]]:
    """Yield a list that collects the number of rows in each call of the network."""
    sizes: list[int] = []
    handle = model.register_forward_pre_hook(lambda _model, given: sizes.append(len(given[0]) if given else 0))
    try:
        yield sizes
    finally:
        handle.remove()


@contextmanager
def record_clipping() -> Iterator[list[float]]:
    """Yield a list that collects `max_norm` of each call of `clip_grad_norm_`."""
    bounds: list[float] = []
    clip = nn.utils.clip_grad_norm_

    def record(parameters: Any, max_norm: float, *arguments: Any, **options: Any) -> Any:
        bounds.append(float(max_norm))
        return clip(parameters, max_norm, *arguments, **options)

    with patch.object(nn.utils, "clip_grad_norm_", record):
        yield bounds


@contextmanager
def record_autocast() -> Iterator[set[str]]:
    """Yield a set that collects the data type of each enabled `torch.autocast` block."""
    entered: set[str] = set()
    enter = torch.autocast.__enter__

    def record(self: torch.autocast) -> Any:
        if self._enabled:
            entered.add(str(self.fast_dtype))
        return enter(self)  # type: ignore[no-untyped-call]

    with patch.object(torch.autocast, "__enter__", record):
        yield entered
