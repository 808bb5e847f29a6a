"""Describe tensors and distributions of rows by a few numbers: projections and random Fourier features."""

import hashlib
import math
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor, nn

_DIRECTIONS = 3
_SCALES = (0.03, 0.3)  # factors of the phases of the Fourier features


def draw_normal(shape: Sequence[int], seed: int) -> Tensor:
    """Return a tensor of this shape with normal random numbers; equal seeds give equal numbers."""
    return torch.randn(tuple(shape), generator=torch.Generator().manual_seed(seed))


def project(*tensors: Tensor) -> list[float]:
    """Return the norm and random projections of each tensor, after the number of its non-finite entries, if any."""
    found: list[float] = []
    for tensor in tensors:
        values = tensor.detach().double().flatten()
        finite = values.isfinite()
        if not bool(finite.all()):
            found.append(float((~finite).sum()))
            values = values.where(finite, 0.0)
        found.append(float(values.norm()))
        for number in range(_DIRECTIONS):
            found.append(float(values @ _direction(len(values), 60 + number)))
    return found


@lru_cache(maxsize=128)  # drawing takes most of the time, and a measurement projects the same shapes again and again
def _direction(length: int, seed: int) -> Tensor:
    return draw_normal((length,), seed).double()


def project_changes(before: Sequence[Tensor], model: nn.Module) -> list[float]:
    """Return the projections of those buffers of a network that differ from the earlier values in `before`."""
    pairs = zip(before, model.buffers(), strict=True)
    return project(*(new for old, new in pairs if not torch.equal(old, new)))


def describe_rows(*parts: Tensor) -> list[float]:
    """Return Fourier features of rows.

    The features do not depend on the order of the rows, but on which rows of the given parts (inputs and labels) belong
    together.
    """
    return fourier_features(*map(project_rows, parts))


def project_rows(part: Tensor) -> Tensor:
    """Return the projections (B, 3) of rows on random directions; NaN for a row with a non-finite entry."""
    rows = part.detach().reshape(len(part), -1)
    directions = draw_normal((rows.shape[1], _DIRECTIONS), 80 + rows.shape[1]) / math.sqrt(rows.shape[1])
    return rows.double() @ directions.double()


def fourier_features(*phases: Tensor) -> list[float]:
    """Return the means over all rows of random Fourier features (Rahimi and Recht, 2007).

    These means describe the distribution of the rows.
    """
    found: list[float] = []
    for scale in _SCALES:
        phase = sum((one * 10**place * scale for place, one in enumerate(phases)), torch.zeros(()))
        bad = int((~phase.isfinite()).sum())
        phase = phase.nan_to_num(0.0, 0.0, 0.0)
        found += [float(bad)] if bad else []
        found += [*phase.cos().mean(dim=0).tolist(), *phase.sin().mean(dim=0).tolist()]
    return found


def distance_along(moved: Tensor, gradient: Tensor) -> float:
    """Return how far a tensor has moved in the direction opposite to a gradient."""
    direction = gradient.double().flatten()
    return float(-(moved.double().flatten() @ direction) / direction.norm())


def index_equal(contents: Sequence[bytes]) -> list[float]:
    """Return, for each entry of a sequence, a number that is the same for equal entries: the index of the first one."""
    first: dict[str, int] = {}
    digests = [hashlib.sha256(content).hexdigest() for content in contents]
    return [float(first.setdefault(digest, number)) for number, digest in enumerate(digests)]


def round_number(number: float | str) -> float | str:
    """Return a number rounded to eight digits. Return NaN and infinity as text, and a text unchanged."""
    if isinstance(number, str):
        return number
    return float(f"{number:.8g}") if math.isfinite(number) else str(float(number))
