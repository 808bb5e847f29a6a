"""Define a hook that runs before each optimizer step, but after the experiment's own hooks; note losses."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.hooks import RemovableHandle

StepHook = Callable[..., Any]
# The attributes in which torch keeps the hooks of one optimizer.
OPTIMIZER_HOOKS = "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"


class LastStepHook:
    """Calls `hook(optimizer, args, kwargs)` before each step of any optimizer, until it is removed.

    torch calls global hooks before the hooks of a single optimizer, which an experiment may use to clip or average
    gradients. So when an optimizer first steps, a global hook adds `hook` to that optimizer, after the experiment's
    hooks.
    """

    def __init__(self, hook: StepHook) -> None:
        self._hook = hook
        self._joined: dict[torch.optim.Optimizer, RemovableHandle] = {}
        self._every = register_optimizer_step_pre_hook(self._join)

    def _join(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        if optimizer not in self._joined:
            self._joined[optimizer] = optimizer.register_step_pre_hook(self._hook)

    def remove(self) -> None:
        """Remove the hook from every optimizer."""
        self._every.remove()
        for handle in self._joined.values():
            handle.remove()
        self._joined.clear()


@contextmanager
def note_losses(losses: list[float]) -> Iterator[None]:
    """Note the value of each scalar from which a backward pass starts."""
    backward = torch.autograd.backward

    def note(tensors: Any, *arguments: Any, **options: Any) -> None:
        if isinstance(tensors, Tensor) and tensors.numel() == 1:
            losses.append(float(tensors.detach()))
        backward(tensors, *arguments, **options)

    torch.autograd.backward = note
    try:
        yield
    finally:
        torch.autograd.backward = backward
