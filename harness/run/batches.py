"""Minibatches in an order that depends on one generator only."""

from collections.abc import Iterator

import torch
from torch import Tensor


def deterministic_minibatches(
    inputs: Tensor, labels: Tensor, batch_size: int, rng: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """Return one epoch of shuffled batches `(inputs, labels)`, as copies; examples that fill no batch are left out.

    `rng` is a generator on the CPU, so the order is the same on every device. One permutation advances it when this
    function is called, however many batches are read.
    """
    order = torch.randperm(len(inputs), generator=rng).to(inputs.device)
    batches = order.split(batch_size)[: len(inputs) // batch_size]
    return ((inputs[batch], labels[batch]) for batch in batches)


def run_generators(seed: int) -> dict[str, torch.Generator]:
    """Return the generators of a run: one for the order of the examples, one for augmentation.

    They are two, so that the augmentation of an experiment never changes the order of its examples.
    """
    return {
        "order": torch.Generator().manual_seed(seed),
        "augmentation": torch.Generator().manual_seed(seed + 2**32),
    }
