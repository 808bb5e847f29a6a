"""The gradient of a training step beside that of the mean cross-entropy at the same weights."""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.checks.workbench import Bench, worst

# Gradients are accumulated over a few batches; who steps more seldom is taken at each batch's word.
MOST_ACCUMULATED = 8


@contextmanager
def fresh_gradients(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect what backward passes add to each parameter, before anything clears, scales or clips it."""
    gradients: dict[str, Tensor] = {}

    def collect(name: str) -> Callable[[Tensor], None]:
        def add(gradient: Tensor) -> None:
            gradients[name] = gradients[name] + gradient if name in gradients else gradient.clone()

        return add

    handles = [p.register_hook(collect(name)) for name, p in model.named_parameters() if p.requires_grad]
    try:
        yield gradients
    finally:
        for handle in handles:
            handle.remove()


def mean_cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy of what a network puts out: probabilities as such, all else as logits."""
    # Softmax and sigmoid alike; the equal logits of a network that starts at zero are no probabilities.
    probabilities = bool(((scores >= 0) & (scores <= 1)).all()) and bool((scores != scores[0, 0]).any())
    if probabilities:
        return F.nll_loss(scores.clamp(min=1e-30).log(), labels)
    return F.cross_entropy(scores, labels)


def loss_gradient(bench: Bench) -> float:
    """Return the relative distance between the gradient of a training step and that of the mean cross-entropy.

    The larger one of two steps, on a whole batch and on half of it: a mean is one whatever the size. Where the
    optimizer steps on every k-th batch, a batch counts for 1 / k of the mean that it steps on.
    """
    batches = bench.batches()
    inputs, labels = next(batches)
    half = max(len(labels) // 2, 1)
    stepped: list[int] = []
    call = 0
    counter = bench.optimizer.register_step_pre_hook(lambda *_: stepped.append(call))
    pairs = []
    for part in (inputs, labels), (inputs[:half], labels[:half]):
        pairs.append(_gradients(bench, *part))
        call += 1
    while call < 2 * MOST_ACCUMULATED and len(set(stepped)) < 2:
        bench.step(*next(batches))
        call += 1
    counter.remove()
    # Several optimizers' steps in one call are one; calls are in their order.
    apart = [later - earlier for earlier, later in pairwise(dict.fromkeys(stepped))]
    share = 1 / apart[0] if apart else 1.0
    return worst([_distance(found, expected, share) for found, expected in pairs])


def _gradients(bench: Bench, inputs: Tensor, labels: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the gradients of a training step, and those of the mean cross-entropy at the same weights."""
    reference = copy.deepcopy(bench.model).train()
    state = torch.get_rng_state()
    with fresh_gradients(bench.model) as found:
        bench.step(inputs, labels)
    torch.set_rng_state(state)
    with fresh_gradients(reference) as expected:
        mean_cross_entropy(reference(inputs), labels).backward()
    return found, expected


def _distance(found: dict[str, Tensor], expected: dict[str, Tensor], share: float) -> float:
    """Return the relative distance of gradients from a share of others."""
    difference, length = 0.0, 0.0
    for name, gradient in expected.items():
        own = found.get(name, torch.zeros_like(gradient))
        difference += float((own - share * gradient).double().square().sum())
        length += float((share * gradient).double().square().sum())
    if length == 0.0:  # a network that died in the step before has no gradient to be off from
        return 0.0 if difference == 0.0 else math.inf
    return float((difference / length) ** 0.5)
