"""Nested containers of tensors: find the tensors, and make a changed copy."""

import ctypes
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor


def tensors(tree: Any) -> Iterator[Tensor]:
    """Yield all tensors in a tree of dictionaries, lists, tuples and dataclasses, in a fixed order."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, Mapping) or _is_mapping(tree):
        for value in tree.values():
            yield from tensors(value)
    elif isinstance(tree, tuple | list):
        for value in tree:
            yield from tensors(value)
    elif is_dataclass(tree) and not isinstance(tree, type):
        for field in fields(tree):
            yield from tensors(getattr(tree, field.name))


def parts_of(tree: Any) -> Iterator[Any]:
    """Yield a tree of dictionaries, lists and tuples, and all its parts."""
    yield tree
    for part in tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, list | tuple) else ():
        yield from parts_of(part)


def map_leaves(tree: Any, function: Callable[[Any], Any]) -> Any:
    """Return an equal tree whose leaves are results of `function`. Containers are new."""
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):  # a named tuple
        return type(tree)(*(map_leaves(value, function) for value in tree))
    if isinstance(tree, tuple | list):
        return type(tree)(map_leaves(value, function) for value in tree)
    if isinstance(tree, dict):
        return _filled(tree, {key: map_leaves(value, function) for key, value in tree.items()})
    if _is_mapping(tree):  # such as the BatchEncoding of transformers
        return type(tree)({key: map_leaves(value, function) for key, value in tree.items()})
    if is_dataclass(tree) and not isinstance(tree, type):
        return replace(tree, **{field.name: map_leaves(getattr(tree, field.name), function) for field in fields(tree)})
    return function(tree)


def map_tensors(tree: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """Return an equal tree whose tensors are results of `function`. Containers are new, other values are shared."""
    return map_leaves(tree, lambda leaf: function(leaf) if isinstance(leaf, Tensor) else leaf)


def tensor_bytes(tensor: Tensor) -> bytes:
    """Return the entries of a dense tensor as bytes. It needs no NumPy, which torch does not install."""
    whole = tensor.detach().cpu().contiguous()
    return ctypes.string_at(whole.data_ptr(), whole.numel() * whole.element_size())


def clone(tree: Any) -> Any:
    """Return the tree with a detached copy of each tensor, and a copy of each generator of random numbers."""

    def copy(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return leaf.detach().clone()
        return leaf.clone_state() if isinstance(leaf, torch.Generator) else leaf

    return map_leaves(tree, copy)


def checksum(tensor: Tensor) -> Tensor:
    """Return a sum that changes if entries change their places. For a tensor that is not dense it is 0."""
    if tensor.layout is not torch.strided:
        return torch.zeros((), dtype=torch.double, device=tensor.device)
    flat = tensor.detach().double().flatten()
    return (flat * torch.arange(1, flat.numel() + 1, device=flat.device)).sum()


def _is_mapping(tree: Any) -> bool:
    return hasattr(tree, "keys") and hasattr(tree, "items") and not isinstance(tree, type)


def _filled(old: dict[Any, Any], values: dict[Any, Any]) -> dict[Any, Any]:
    """Return `values` in a dictionary of the same type: a subclass may have its own constructor."""
    if type(old) is dict:
        return values
    new = old.copy()
    new.update(values)
    return new
