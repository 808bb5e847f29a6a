"""Calls the functions of a loaded `experiment.py` so that an error names the student's line."""

import inspect
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from harness.data import CLASS_NAMES
from harness.data.datasets import Dataset, Split
from harness.errors import UserError

FUNCTIONS = {
    "load_data": 1,
    "build_model": 0,
    "build_optimizer": 1,
    "build_scheduler": 2,
    "prepare_batch": 3,
    "compute_loss": 2,
    "train_step": 4,
    "evaluate": 3,
}


class HarnessFault(Exception):
    """An error of ours that happened below a student's frame; it must not be blamed on the student."""


@dataclass(frozen=True)
class TensorSplit:
    """One split as torch sees it: images uint8 (N, C, H, W), labels int64 (N,)."""

    images: Tensor
    labels: Tensor


@dataclass(frozen=True)
class TensorData:
    """What `load_data` receives."""

    name: str
    train: TensorSplit
    validation: TensorSplit
    class_names: tuple[str, ...]


def tensor_data(data: Dataset) -> TensorData:
    """Return the data set as torch tensors, copied so that an experiment may change them."""

    def split(part: Split) -> TensorSplit:
        return TensorSplit(torch.tensor(part.images), torch.tensor(part.labels))

    return TensorData(data.name, split(data.train), split(data.validation), CLASS_NAMES[data.name])


class Experiment:
    """A loaded experiment. Each method calls the function of the same name and checks what it returns.

    Every method raises `UserError` where the student's function raises or returns the wrong thing.
    """

    def __init__(self, path: Path, module: ModuleType) -> None:
        self.path = path
        self.module = module
        self._functions: dict[str, Callable[..., Any]] = {name: getattr(module, name) for name in FUNCTIONS}

    @property
    def epochs(self) -> int:
        """The number of passes over the training split."""
        return int(self.module.EPOCHS)

    @property
    def batch_size(self) -> int:
        """The number of examples in a batch."""
        return int(self.module.BATCH_SIZE)

    @property
    def uses_amp(self) -> bool:
        """Whether the experiment trains under autocast, as far as its constant AMP says."""
        return bool(getattr(self.module, "AMP", False))

    def set_constant(self, name: str, value: object) -> bool:
        """Replace a constant of the experiment; return whether it has one of that name."""
        if not hasattr(self.module, name):
            return False
        setattr(self.module, name, value)
        return True

    def scalers(self) -> dict[str, torch.amp.GradScaler]:
        """Return the gradient scalers that the experiment keeps at module level, by name."""
        return {
            name: value
            for name, value in vars(self.module).items()
            if isinstance(value, torch.amp.GradScaler)
        }

    def call(self, name: str, *arguments: object) -> Any:
        """Call one function of the experiment; what it raises becomes a `UserError` with the student's frames."""
        try:
            return self._functions[name](*arguments)
        except (HarnessFault, KeyboardInterrupt):
            raise
        except (Exception, SystemExit) as error:
            raise self._blame(name, error) from error

    def load_data(self, data: TensorData) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Return ((train inputs, train targets), (validation inputs, validation targets)), batch first."""
        result = self.call("load_data", data)
        if not (_is_sequence(result, 2) and all(_is_tensor_pair(part) for part in result)):
            raise self._wrong("load_data", "((inputs, labels), (inputs, labels)), each a tensor", result)
        for (inputs, labels), split in zip(result, ("training", "validation"), strict=True):
            if len(inputs) != len(labels):
                raise self._wrong("load_data", f"as many {split} labels as inputs", (inputs, labels))
        (train_inputs, train_labels), (validation_inputs, validation_labels) = result
        return (train_inputs, train_labels), (validation_inputs, validation_labels)

    def build_model(self) -> nn.Module:
        """Return the network."""
        model = self.call("build_model")
        if not isinstance(model, nn.Module):
            raise self._wrong("build_model", "a torch.nn.Module", model)
        return model

    def build_optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Return the optimizer of the network's parameters."""
        optimizer = self.call("build_optimizer", model)
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise self._wrong("build_optimizer", "a torch.optim.Optimizer", optimizer)
        return optimizer

    def build_scheduler(
        self, optimizer: torch.optim.Optimizer, total_steps: int
    ) -> torch.optim.lr_scheduler.LRScheduler | None:
        """Return the schedule that is stepped once a batch, or None."""
        scheduler = self.call("build_scheduler", optimizer, total_steps)
        if scheduler is not None and not isinstance(scheduler, torch.optim.lr_scheduler.LRScheduler):
            raise self._wrong(
                "build_scheduler",
                "a scheduler of torch.optim.lr_scheduler that steps once a batch, or None",
                scheduler,
            )
        return scheduler

    def prepare_batch(self, inputs: Tensor, labels: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return the batch as the network is to see it."""
        result = self.call("prepare_batch", inputs, labels, rng)
        if not _is_tensor_pair(result):
            raise self._wrong("prepare_batch", "(inputs, labels), two tensors", result)
        if len(result[0]) != len(result[1]):
            raise self._wrong("prepare_batch", "as many labels as inputs", result)
        return result[0], result[1]

    def compute_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss, a scalar tensor."""
        loss = self.call("compute_loss", outputs, labels)
        if not (isinstance(loss, Tensor) and loss.numel() == 1):
            raise self._wrong("compute_loss", "a scalar tensor", loss)
        return loss

    def train_step(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, labels: Tensor
    ) -> Tensor:
        """Make one step and return the loss, a detached scalar tensor."""
        loss = self.call("train_step", model, optimizer, inputs, labels)
        if isinstance(loss, float):
            return torch.tensor(loss, dtype=torch.float64)
        if not (isinstance(loss, Tensor) and loss.numel() == 1):
            raise self._wrong("train_step", "the loss, a scalar tensor", loss)
        return loss.detach()

    def evaluate(self, model: nn.Module, inputs: Tensor, labels: Tensor) -> dict[str, float | None]:
        """Return `val_loss` and `val_accuracy` (None where the experiment gives none)."""
        result = self.call("evaluate", model, inputs, labels)
        if not isinstance(result, dict) or "val_loss" not in result:
            raise self._wrong("evaluate", 'a dict with "val_loss" and, for classes, "val_accuracy"', result)
        metrics: dict[str, float | None] = {}
        for name in ("val_loss", "val_accuracy"):
            value = result.get(name)
            if isinstance(value, Tensor) and value.numel() == 1:
                value = value.item()
            if value is not None and not isinstance(value, int | float):
                raise self._wrong("evaluate", f"a number as {name!r}", value)
            metrics[name] = None if value is None else float(value)
        if metrics["val_loss"] is None:
            raise self._wrong("evaluate", "a number as 'val_loss'", None)
        return metrics

    def _wrong(self, function: str, expected: str, found: object) -> UserError:
        # Below decorators: `torch.no_grad` wraps a function in one of its own, with a line of torch's.
        code = getattr(inspect.unwrap(self._functions[function]), "__code__", None)
        line = code.co_firstlineno if code is not None else "?"
        return UserError(
            f"{self.path}, line {line}: {function} must return {expected}, but returned {describe(found)}."
        )

    def _blame(self, function: str, error: BaseException) -> UserError:
        return UserError(
            f"{self.path}: {function} raised {headline(error)}\n{student_frames(error, self.path)}"
            "Mend that line, then run the same command again."
        )


def describe(value: object) -> str:
    """Return what a value is, in a few words: its type and, for tensors and sequences, its shape."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, list | tuple):
        return f"({', '.join(describe(item) for item in value[:4])}{', ...' if len(value) > 4 else ''})"
    if value is None:
        return "None"
    return f"{type(value).__name__} {str(value)[:60]!r}"


def student_frames(error: BaseException, path: Path) -> str:
    """Return the lines of a traceback that lie in the student's file, the outermost first."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return "".join(f"  line {frame.lineno}, in {frame.name}: {frame.line}\n" for frame in frames[-5:])


def headline(error: BaseException) -> str:
    """Return the type of an error and the first line of what it says."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def _is_sequence(value: object, length: int) -> bool:
    return isinstance(value, list | tuple) and len(value) == length


def _is_tensor_pair(value: object) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(isinstance(item, Tensor) and item.dim() >= 1 for item in value)
    )
