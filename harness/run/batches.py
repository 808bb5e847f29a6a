"""Minibatches whose order depends on one generator and on nothing else."""

from collections.abc import Iterator

import torch
from torch import Tensor


def deterministic_minibatches(
    inputs: Tensor, labels: Tensor, batch_size: int, rng: torch.Generator, drop_last: bool = False
) -> Iterator[tuple[Tensor, Tensor]]:
    """Return one epoch of shuffled minibatches `(inputs, labels)`, each sample exactly once.

    `inputs` is `[samples, ...]` and `labels` is `[samples, ...]`, both batch-first, on any device; batches
    are copies on the same device. A batch is `[batch_size, ...]`; the last one holds what is left, unless
    `drop_last` leaves it out. `rng` is a generator on the CPU, whatever device the samples are on: the
    order is then the same on every device. It is advanced by one `torch.randperm` when this is called, not
    while the batches are read, so equal states give equal batches, and a loop that is left early disturbs
    nothing.

    Raises `ValueError` if the lengths differ, the batch size is below 1, there would be no batch at all, or
    `rng` is not on the CPU.
    """
    if inputs.dim() == 0 or labels.dim() == 0:
        raise ValueError(
            "inputs and labels must be batch-first tensors, [samples, ...], but one is a single number"
        )
    samples = inputs.shape[0]
    if labels.shape[0] != samples:
        raise ValueError(
            f"inputs hold {samples} samples and labels hold {labels.shape[0]}: "
            "pass one label for each sample, batch-first"
        )
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}: choose 1 or more")
    if rng.device.type != "cpu":
        raise ValueError(f"rng is a generator on {rng.device}: use torch.Generator(), which is on the CPU")
    if samples == 0:
        raise ValueError("there are no samples, so there is no batch: check what load_data returns")
    if drop_last and samples < batch_size:
        raise ValueError(
            f"{samples} samples do not fill one batch of {batch_size}, and drop_last leaves out the rest: "
            f"choose a batch_size of at most {samples}, or drop_last=False"
        )
    order = torch.randperm(samples, generator=rng)
    used = samples - samples % batch_size if drop_last else samples
    return _batches(inputs, labels, order[:used], batch_size)


def _batches(
    inputs: Tensor, labels: Tensor, order: Tensor, batch_size: int
) -> Iterator[tuple[Tensor, Tensor]]:
    input_order, label_order = order.to(inputs.device), order.to(labels.device)
    for start in range(0, len(order), batch_size):
        stop = start + batch_size
        yield inputs[input_order[start:stop]], labels[label_order[start:stop]]


def run_generators(seed: int) -> dict[str, torch.Generator]:
    """Return the generators of a run: the order of the examples, and the experiment's own augmentation.

    Two streams: how an experiment draws its augmentation never changes which examples come together.
    """
    return {
        "order": torch.Generator().manual_seed(seed),
        "augmentation": torch.Generator().manual_seed(seed + 2**32),
    }
