"""What gradients and activations look like: norms, quantiles, zeros, and numbers that are not finite.

Every function computes where the tensors are and brings its results over in one transfer.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

import torch
from torch import Tensor, nn

from harness.run.scalars import mean_and_variance, numbers

QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99)
# torch.quantile sorts, and refuses more than 16 million numbers. With a million, the sampling error of a
# quantile is below 0.05 percentage points (one standard deviation, sqrt(q (1 - q) / n)).
SAMPLE_LIMIT = 2**20


class Statistics(TypedDict):
    """Mean and variance over all entries of a tensor; the variance divides by their number."""

    mean: float
    var: float


def global_gradient_norm(parameters: Iterable[Tensor]) -> float:
    """Return the 2-norm of all gradients taken as one vector; 0.0 if no parameter has one.

    Computed in float64: squares of float32 gradients overflow above 1e19 and vanish below 1e-23, and such
    gradients are what one is looking for. Parameters must be on one device.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not gradients:
        return 0.0
    norms = [torch.linalg.vector_norm(gradient, dtype=torch.float64) for gradient in gradients]
    return float(torch.linalg.vector_norm(torch.stack(norms)))


def gradient_quantiles(model: nn.Module, quantiles: Sequence[float] = QUANTILES) -> dict[str, list[float]]:
    """Return, for each parameter that has a gradient, the quantiles of its absolute values, by name.

    Quantiles are numbers from 0 to 1, interpolated linearly (NumPy's default method). Tensors above
    `SAMPLE_LIMIT` entries are sampled evenly and without chance. A gradient that holds a NaN gives NaN, an
    empty one is left out. Raises `ValueError` for a quantile outside 0..1.
    """
    wanted = checked_quantiles(quantiles)
    rows = {
        name: quantiles_on_device(parameter.grad.abs(), wanted)
        for name, parameter in model.named_parameters()
        if parameter.grad is not None and parameter.grad.numel() > 0
    }
    return as_lists(rows)


def activation_quantiles(tensor: Tensor, quantiles: Sequence[float] = QUANTILES) -> list[float]:
    """Return the quantiles of all entries of `tensor` (any shape, not empty); sampled as gradients are.

    Raises `ValueError` for a quantile outside 0..1, or an empty tensor.
    """
    _refuse_empty(tensor)
    return as_lists({"": quantiles_on_device(tensor.detach(), checked_quantiles(quantiles))})[""]


def activation_statistics(tensor: Tensor) -> Statistics:
    """Return mean and variance over all entries of `tensor` (any shape, not empty), in at least float32.

    Raises `ValueError` for an empty tensor.
    """
    _refuse_empty(tensor)
    mean, variance = numbers(list(mean_and_variance(tensor)))
    return {"mean": mean, "var": variance}


def zero_fraction(tensors: Iterable[Tensor]) -> float:
    """Return the share, 0 to 1, of entries over all tensors that are exactly 0; 0.0 where there are none.

    In float16 gradients it shows underflow: what is not above 2**-25 in size is rounded to 0.
    """
    tensors = list(tensors)
    entries = sum(tensor.numel() for tensor in tensors)
    if entries == 0:
        return 0.0
    alive = torch.stack([torch.count_nonzero(tensor) for tensor in tensors]).sum().item()
    return (entries - alive) / entries


def non_finite_entries(named: Iterable[tuple[str, Tensor]]) -> list[str]:
    """Return the names of the tensors that hold a NaN or an infinity, in order.

    `named` is, for example, `model.named_parameters()`.
    """
    names, finite_everywhere = [], []
    for name, tensor in named:
        names.append(name)
        finite_everywhere.append(torch.isfinite(tensor.detach()).all())
    finite = torch.stack(finite_everywhere).tolist() if names else []
    return [name for name, good in zip(names, finite, strict=True) if not good]


def assert_finite(name: str, tensor: Tensor) -> None:
    """Raise `FloatingPointError` that names the tensor and counts its NaNs and infinities, if it has any."""
    values = tensor.detach()
    nans, infinities = torch.stack([torch.isnan(values).sum(), torch.isinf(values).sum()]).tolist()
    if nans or infinities:
        raise FloatingPointError(
            f"{name}: of {values.numel()} entries {nans} are NaN and {infinities} infinite; "
            "look at the first step where this happens, and at what was computed just before it"
        )


def _widened(tensor: Tensor) -> Tensor:
    return tensor.detach().to(torch.promote_types(tensor.dtype, torch.float32))


def quantiles_on_device(tensor: Tensor, levels: Sequence[float]) -> Tensor:
    """Return `[levels]`: `activation_quantiles` as a tensor on the device, so that many can come over together."""
    flat = _widened(tensor).flatten()
    if len(flat) > SAMPLE_LIMIT:
        stride = -(-len(flat) // SAMPLE_LIMIT)
        # A stride that shares a factor with a dimension would only ever visit some of its columns or
        # channels.
        while math.gcd(stride, len(flat)) > 1:
            stride += 1
        flat = flat[::stride]
    return torch.quantile(flat, torch.tensor(levels, dtype=flat.dtype, device=flat.device))


def as_lists(rows: Mapping[str, Tensor]) -> dict[str, list[float]]:
    """Return named rows of equal length, `[n]` on one device, as lists of Python floats, in one transfer."""
    if not rows:
        return {}
    values: list[list[float]] = torch.stack([row.double() for row in rows.values()]).tolist()
    return dict(zip(rows, values, strict=True))


def checked_quantiles(quantiles: Sequence[float]) -> tuple[float, ...]:
    """Return `quantiles`; raise `ValueError` where one is outside 0..1."""
    for quantile in quantiles:
        if not 0.0 <= quantile <= 1.0:
            raise ValueError(f"quantile {quantile} does not exist: choose numbers from 0 to 1")
    return tuple(quantiles)


def _refuse_empty(tensor: Tensor) -> None:
    if tensor.numel() == 0:
        raise ValueError(f"a tensor of shape {list(tensor.shape)} has no entries to take statistics of")
