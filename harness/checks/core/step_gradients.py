"""The gradients of a training step: as the backward pass computes them, and as the optimizer uses them."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

Gradients = dict[str, Tensor]


@contextmanager
def fresh_gradients(model: nn.Module) -> Iterator[Gradients]:
    """Collect what backward passes add to each parameter, before anything clears, scales or clips it."""
    gradients: Gradients = {}

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


@contextmanager
def used_gradients(model: nn.Module) -> Iterator[Gradients]:
    """Collect the gradient of each parameter when an optimizer first uses it, without the factor of a scaler."""
    gradients: Gradients = {}

    def collect(optimizer: torch.optim.Optimizer, *_: object) -> None:
        scale = getattr(optimizer, "grad_scale", None)
        for name, parameter in model.named_parameters():
            if parameter.grad is not None and name not in gradients:
                gradients[name] = parameter.grad.detach() / (1.0 if scale is None else scale)

    handle = register_optimizer_step_pre_hook(collect)
    try:
        yield gradients
    finally:
        handle.remove()


def reference_gradients(
    model: nn.Module, loss: Callable[[Tensor, Tensor], Tensor], inputs: Tensor, labels: Tensor
) -> Gradients:
    """Return the gradients of a loss on one batch, for a copy of the network in training mode.

    Dropout draws what the next step on the network itself will draw: the state of chance is put back.
    """
    reference = copy.deepcopy(model).train()
    reference.zero_grad()
    state = torch.get_rng_state()
    loss(reference(inputs), labels).backward()
    torch.set_rng_state(state)
    return {name: p.grad for name, p in reference.named_parameters() if p.grad is not None}


def as_vector(gradients: Gradients, like: Gradients) -> Tensor:
    """Return the gradients of the parameters in `like` as one float64 vector, with zeros for those that are missing."""
    parts = [gradients.get(name, torch.zeros_like(one)) for name, one in like.items()]
    return torch.cat([part.double().flatten() for part in parts])
