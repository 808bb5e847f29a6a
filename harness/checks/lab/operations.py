"""Watches every operation of a step, forward, backward and in the update, for the first result that is not finite."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from harness.checks.lab.finding import Cell

# New memory may hold any value until it is written.
_ANY_VALUE = ("empty", "new_empty", "_local_scalar")
_UPDATE = "the optimizer's step"


class OperationWatch(TorchDispatchMode):
    """Finds the first operation whose result holds NaN or infinity.

    `origin` is None until there is one. Then it holds the figures of a finding: ATen's name of the operation, the
    pass, the layer or autograd node, the tensor that came out, the line of the experiment, and what went in.
    """

    def __init__(self, model: nn.Module, path: Path) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.origin: dict[str, Cell] | None = None
        self._path = str(path)
        self._places = ["outside any layer"]
        self._names = {parameter.data_ptr(): name for name, parameter in model.named_parameters()}
        self._model = model
        self._handles: list[Any] = []

    def __enter__(self) -> "OperationWatch":
        """Begin to watch, with hooks in the network and all optimizers: they tell the layer, or the update."""
        self._handles = [
            register_optimizer_step_pre_hook(self._enter(_UPDATE)),
            register_optimizer_step_post_hook(self._leave),
        ]
        for name, module in self._model.named_modules():
            label = f"{name} ({type(module).__name__})" if name else type(module).__name__
            self._handles.append(module.register_forward_pre_hook(self._enter(label)))
            self._handles.append(module.register_forward_hook(self._leave, always_call=True))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        """Stop watching, and remove the hooks."""
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        for handle in self._handles:
            handle.remove()

    def _enter(self, label: str) -> Callable[..., None]:
        return lambda *_: self._places.append(label)

    def _leave(self, *_: object) -> None:
        self._places.pop()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation and look at its result."""
        given = [] if self.origin else _tensors((args, kwargs))
        fresh = all(_finite(tensor) for tensor in given)
        largest = max((_largest(tensor) for tensor in given), default=0.0)
        result = func(*args, **(kwargs or {}))
        if self.origin is None:
            for tensor in _tensors(result):
                if not _finite(tensor) and not func.__name__.startswith(_ANY_VALUE):
                    self.origin = self._describe(func, tensor, largest, fresh)
                    break
        return result

    def _describe(self, func: Any, tensor: Tensor, largest: float, fresh: bool) -> dict[str, Cell]:
        node = torch._C._current_autograd_node()
        phase, where = "forward", self._places[-1]
        if where == _UPDATE:
            phase = "update"
        elif node is not None:
            phase, where = "backward", str(node.name())
        name = self._names.get(tensor.data_ptr())
        shape = "x".join(map(str, tensor.shape)) or "a number"
        words = f"{shape} of {str(tensor.dtype).removeprefix('torch.')}"
        frames = [frame for frame in traceback.extract_stack() if frame.filename == self._path]
        return {
            "first operation": str(func.overloadpacket.__name__),
            "pass": phase,
            "in": where,
            "result": f"{name}, {words}" if name else words,
            "experiment": f"line {frames[-1].lineno}, in {frames[-1].name}" if frames else "-",
            "largest value that went in": largest,
            "everything that went in was finite": fresh,
        }


def _tensors(values: Any) -> list[Tensor]:
    return [
        value
        for value in tree_leaves(values)
        if isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex()) and value.numel()
    ]


def _finite(tensor: Tensor) -> bool:
    return bool(tensor.detach().isfinite().all())


def _largest(tensor: Tensor) -> float:
    return float(tensor.detach().abs().nan_to_num(0.0, 0.0, 0.0).max())
