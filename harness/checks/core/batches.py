"""Read batches from loaders of any project without changing the state of any random generator."""

import functools
import itertools
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from harness.errors import UserError

Batch = tuple[Tensor, Tensor]


def read_batches(source: Any, name: str, most: int) -> list[Batch]:
    """Return at most `most` batches of the loader `source`, or a list with one batch if `source` is a batch."""
    if _is_batch(source):
        found = [source]
    elif isinstance(source, Iterator):
        raise UserError(
            f"Training: {name} is an iterator, and reading it would use up your batches. Pass the loader that makes it,"
            " or a list of batches."
        )
    elif not isinstance(source, Iterable) and not hasattr(source, "__getitem__"):
        raise UserError(f"Training: {name} must be a loader or one batch (inputs, targets), not {_kind(source)}.")
    else:
        found = list(itertools.islice(source, most))
    if not found:
        raise UserError(f"Training: {name} has no batch.")
    for batch in found:
        if isinstance(batch, dict):
            keys = [*map(repr, batch), "'targets'"]
            raise UserError(
                f"Training: a batch of {name} is a dict with {', '.join(keys[:-1])}. Pass pairs of tensors, for example"
                f" [(batch[{keys[0]}], batch[{keys[1]}]) for batch in itertools.islice(loader, {most})]."
            )
        if not _is_batch(batch):
            raise UserError(
                f"Training: a batch of {name} must be (inputs, targets), two tensors with one row per example, but is"
                f" {_kind(batch)}."
            )
    return [(inputs.detach(), targets.detach()) for inputs, targets in found]


def _is_batch(value: Any) -> bool:
    """Return whether a value is a pair of tensors with the same number of rows, at least one."""
    if not (isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(one, Tensor) for one in value)):
        return False
    inputs, targets = value
    return inputs.dim() > 0 and targets.dim() > 0 and len(inputs) == len(targets) > 0


def _kind(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_kind, value[:4]))}{', ...' if len(value) > 4 else ''})"
    return f"a {type(value).__name__}"


def join_batches(batches: list[Batch]) -> Batch:
    """Return all batches as one batch. Raises `UserError` if their rows have different shapes."""
    try:
        inputs, targets = (torch.cat(parts) for parts in zip(*batches, strict=True))
    except RuntimeError as error:
        raise UserError(
            f"Training: batches have rows of different shapes ({error}). Pass one batch, or pad all rows to one shape."
        ) from None
    return inputs, targets


@contextmanager
def chance_kept(*sources: object) -> Iterator[None]:
    """When the block ends, restore the random state of Python, NumPy, torch, and all generators in the sources."""
    own = list(inside(sources, torch.Generator, np.random.Generator, np.random.RandomState, random.Random))
    states = [_generator_state(one) for one in own]
    python, numpy, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(cpu)
        for generator, state in zip(own, states, strict=True):
            _generator_state(generator, state)


def _generator_state(generator: Any, state: Any = None) -> Any:
    """Return the state of a generator of any library; if `state` is given, restore it."""
    if isinstance(generator, np.random.Generator):
        bits = generator.bit_generator
        if state is not None:
            bits.state = state
        return bits.state
    get, put = ("getstate", "setstate") if isinstance(generator, random.Random) else ("get_state", "set_state")
    return getattr(generator, get)() if state is None else getattr(generator, put)(state)


def inside(roots: Iterable[object], *kinds: type, depth: int = 6) -> Iterator[Any]:
    """Yield each object of the given types once: from the roots, and from their attributes, lists, tuples and dicts."""
    seen: set[int] = set()
    level = list(roots)
    for _ in range(depth):
        below: list[Any] = []
        for one in level:
            if id(one) in seen or isinstance(one, Tensor | ModuleType | type):
                continue
            seen.add(id(one))
            if isinstance(one, kinds):
                yield one
            if isinstance(one, dict):
                below += one.values()
            elif isinstance(one, list | tuple):
                below += one[:100]
            elif isinstance(one, MethodType):
                below.append(one.__self__)
            elif isinstance(one, functools.partial):
                below += (one.func, one.args, one.keywords)
            else:
                below.append(getattr(one, "__dict__", None))
        level = below
