"""Statistics of what every layer of a model puts out, through forward hooks."""

from collections.abc import Callable, Sequence
from types import TracebackType

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from harness.run.diagnostics import (
    Statistics,
    as_lists,
    checked_quantiles,
    quantiles_on_device,
)
from harness.run.scalars import Scalar, mean_and_variance, numbers


class ActivationRecorder:
    """Records statistics of what each leaf module of a model puts out, while it is open as a context manager.

        with ActivationRecorder(model) as recorder:
            model(inputs)
        recorder.statistics()  # {"0": {"mean": ..., "var": ...}, "1": ...}

    A leaf module is one without children; the key is its name in `model.named_modules()`, or its class name
    if the model is a single module. The statistics are of its latest call. Of a tuple (an LSTM's output)
    the first tensor counts; modules that put out no tensor are left out. Activations themselves are not
    kept, and the model computes what it would compute without it.
    """

    def __init__(self, model: nn.Module, quantiles: Sequence[float] = ()) -> None:
        self._modules = {
            name or type(module).__name__: module
            for name, module in model.named_modules()
            if next(module.children(), None) is None
        }
        self._levels = checked_quantiles(quantiles)
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
        """Return the quantiles asked for at the start of each leaf module's output; empty if none were."""
        return as_lists(self._quantiles)

    def _hook(self, name: str) -> Callable[[nn.Module, object, object], None]:
        def record(_module: nn.Module, _inputs: object, output: object) -> None:
            tensor = _first_tensor(output)
            if tensor is None or tensor.numel() == 0:
                return
            self._statistics[name] = mean_and_variance(tensor)
            if self._levels:
                self._quantiles[name] = quantiles_on_device(tensor.detach(), self._levels)

        return record


def _first_tensor(output: object) -> Tensor | None:
    while isinstance(output, tuple | list) and output:
        output = output[0]
    return output if isinstance(output, Tensor) else None
