"""Statistics of the output of every layer of a model, and quantiles of tensors too large to sort."""

import math
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TypedDict

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from harness.run.recorder import Scalar, mean_and_variance, numbers

QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99)
# torch.quantile sorts, and refuses more than 16 million numbers. With a million, the sampling error of a
# quantile is below 0.05 percentage points (one standard deviation, sqrt(q (1 - q) / n)).
SAMPLE_LIMIT = 2**20


class Statistics(TypedDict):
    """Mean and variance over all entries of a tensor; the variance divides by their number."""

    mean: float
    var: float


class ActivationRecorder:
    """Records statistics of the output of each leaf module of a model, while it is open as a context manager.

        with ActivationRecorder(model) as recorder:
            model(inputs)
        recorder.statistics()  # {"0": {"mean": ..., "var": ...}, "1": ...}

    A leaf module is one without children; the key is its name in `model.named_modules()`, or its class name
    if the model is a single module. The statistics are of its latest call. Of a tuple (an LSTM's output)
    the first tensor counts; modules whose output is no tensor are left out. `quantiles` are numbers from 0 to 1.
    """

    def __init__(self, model: nn.Module, quantiles: Sequence[float] = ()) -> None:
        self._modules = {
            name or type(module).__name__: module
            for name, module in model.named_modules()
            if next(module.children(), None) is None
        }
        self._levels = tuple(quantiles)
        self._statistics: dict[str, tuple[Scalar, Scalar]] = {}
        self._quantiles: dict[str, Tensor] = {}
        self._handles: list[RemovableHandle] = []

    def __enter__(self) -> "ActivationRecorder":
        for name, module in self._modules.items():
            self._handles.append(module.register_forward_hook(self._hook(name)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        while self._handles:
            self._handles.pop().remove()

    def statistics(self) -> dict[str, Statistics]:
        """Return mean and variance of each leaf module's output, by name, in the order of the calls."""
        found = iter(numbers([scalar for pair in self._statistics.values() for scalar in pair]))
        return {name: {"mean": next(found), "var": next(found)} for name in self._statistics}

    def quantiles(self) -> dict[str, list[float]]:
        """Return the quantiles of each leaf module's output, by name; empty if none were asked for."""
        return as_lists(self._quantiles)

    def _hook(self, name: str) -> Callable[[nn.Module, object, object], None]:
        def record(_module: nn.Module, _inputs: object, output: object) -> None:
            while isinstance(output, tuple | list) and output:
                output = output[0]
            if not isinstance(output, Tensor) or output.numel() == 0:
                return
            self._statistics[name] = mean_and_variance(output)
            if self._levels:
                self._quantiles[name] = quantiles_on_device(output.detach(), self._levels)

        return record


def quantiles_on_device(tensor: Tensor, levels: Sequence[float]) -> Tensor:
    """Return the quantiles of all entries of `tensor` (any shape, not empty), `[levels]`, on its device.

    They are interpolated linearly (NumPy's default method). Tensors above `SAMPLE_LIMIT` entries are sampled
    evenly, without chance. A tensor that holds a NaN gives NaN.
    """
    flat = tensor.detach().to(torch.promote_types(tensor.dtype, torch.float32)).flatten()
    if len(flat) > SAMPLE_LIMIT:
        stride = -(-len(flat) // SAMPLE_LIMIT)
        # A stride that shares a factor with a dimension would visit only some of its columns or channels.
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
