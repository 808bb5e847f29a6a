"""Let checks measure your own training; checks train copies of your objects and do not change the originals."""

import copy
import functools
import inspect
import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.data import DataLoader, Dataset

from harness.checks.core.batches import Batch, chance_kept, inside, join_batches, read_batches
from harness.checks.core.subject import Subject, Trial
from harness.errors import UserError
from harness.run.evaluation import loss_and_accuracy
from harness.run.experiment import FUNCTIONS, Experiment, HarnessFault, TensorData, TensorSplit
from harness.run.settings import RunSettings
from harness.run.setup import Adapt
from harness.run.step_hooks import OPTIMIZER_HOOKS

Batches = Iterable[Any]
_NOT_USERS = (str(Path(torch.__file__).parent), str(Path(__file__).parents[2]), functools.__file__)
_SCHEDULED = "_wrapped_by_lr_sched"


class NotGiven(HarnessFault):
    """Raised if a check needs something that the training does not have; the message says what."""


class FileNeeded(NotGiven):
    """Raised if a check needs an experiment file, because it measures how the file loads a data set."""


@dataclass(frozen=True)
class _Parts:
    """The objects that a trial changes, copied together so that a copied optimizer holds copied parameters."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    loss_fn: Callable[..., Any]
    train_step: Callable[..., Any] | None
    evaluate: Callable[..., Any] | None


class Training:
    """Your own training, in a form that checks can measure.

    model, optimizer: your own objects. Checks train copies of them on the CPU.
    loss_fn(outputs, targets): returns the mean loss of a batch as a scalar tensor.
    train_batches, validation: a loader of pairs `(inputs, targets)` of tensors, or one such pair. At most
    `most_batches` batches of each loader are read, once, when you create the `Training`.
    train_step(model, optimizer, inputs, targets): makes one step and returns the loss. By default, a step clears the
    gradients, computes the loss, calls `backward` and lets the optimizer step.
    evaluate(model, inputs, targets): returns the loss, or `(loss, accuracy)`, or a dict with "val_loss" and
        "val_accuracy".
    scheduler(optimizer, steps): returns a schedule of torch.optim.lr_scheduler, which is advanced after each batch.
    seed: the random seed that each check uses.

    `train_step` and `evaluate` may be methods of an object that holds the model, such as a trainer. Such a method
    receives only `(inputs, targets)`, and the check uses a copy of the object, which holds a copy of the model.

    Raises `UserError` if a batch is not a pair of tensors.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        loss_fn: Callable[..., Any],
        train_batches: Batches,
        *,
        validation: Batches | None = None,
        train_step: Callable[..., Any] | None = None,
        evaluate: Callable[..., Any] | None = None,
        scheduler: Callable[[torch.optim.Optimizer, int], LRScheduler | None] | None = None,
        most_batches: int = 32,
        seed: int = 0,
    ) -> None:
        for name, value, kind in ("model", model, nn.Module), ("optimizer", optimizer, torch.optim.Optimizer):
            if not isinstance(value, kind):
                raise UserError(f"Training: the {name} must be a torch {kind.__name__}, not a {type(value).__name__}.")
        self._parts = _Parts(model, optimizer, loss_fn, train_step, evaluate)
        self.not_copied = [train_batches, validation, *inside((train_step, evaluate), DataLoader, Dataset)]
        self.scheduler = scheduler
        self.seed = seed
        self.path = _source_of(train_step, type(model), evaluate, loss_fn)
        with chance_kept(train_batches, validation):
            self.batches = read_batches(train_batches, "train_batches", most_batches)
            self.validation = (
                None if validation is None else join_batches(read_batches(validation, "validation", most_batches))
            )
        self.data = join_batches(self.batches)

    @contextmanager
    def subject(self) -> Iterator["TrainingSubject"]:
        """Yield a subject for one check; then restore the random state and verify that your objects have not changed.

        If one of your functions changed your own model or optimizer, undo the change and raise `UserError`.
        """
        dtype = torch.get_default_dtype()
        kept = tree_map_only(Tensor, Tensor.clone, _state(self._parts))
        self.copy_parts(in_float64=False)  # an error in copying must not look like an error of a check
        try:
            with chance_kept(*self.not_copied), torch.enable_grad():
                yield TrainingSubject(self)
        finally:
            torch.set_default_dtype(dtype)
            if not _equal(kept, _state(self._parts)):
                _put_back(self._parts, kept)
                raise UserError(
                    f"{self.path}: train_step or evaluate changed your own model or optimizer instead of its arguments."
                    " Use its arguments; or pass a method of the object that holds the model, which is copied."
                )

    def copy_parts(self, *, in_float64: bool) -> _Parts:
        """Return copies of your objects on the CPU. Raises `UserError` if an object cannot be copied."""
        memo: dict[int, Any] = {id(one): one for one in self.not_copied}
        try:
            parts = copy.deepcopy(self._parts, memo)
            for name in OPTIMIZER_HOOKS:  # a copy by torch lacks the hooks
                setattr(parts.optimizer, name, copy.deepcopy(getattr(self._parts.optimizer, name), memo))
            if hasattr(self._parts.optimizer.step, _SCHEDULED):
                _mark_as_scheduled(parts.optimizer)
        except (RuntimeError, TypeError) as error:
            raise UserError(
                f"{self.path}: checks train copies, but something that the model, the optimizer, train_step or evaluate"
                f" holds cannot be copied: {str(error).splitlines()[0]}. Remove it: for example a logger, or a tensor"
                " with its graph."
            ) from None
        for part in (parts.model, parts.loss_fn):
            if isinstance(part, nn.Module):
                part.to("cpu", torch.float64 if in_float64 else None)
        if parts.optimizer.state:
            # Loading the state moves it to the device and dtype of the weights.
            parts.optimizer.load_state_dict(parts.optimizer.state_dict())
        return parts


class TrainingSubject(Subject):
    """A subject that measures a `Training` instead of an experiment file."""

    training: Training

    def __init__(self, training: Training) -> None:
        object.__setattr__(self, "training", training)
        object.__setattr__(self, "path", training.path)
        object.__setattr__(self, "settings", RunSettings(seed=training.seed, dataset="own"))

    def __getattr__(self, name: str) -> Any:
        if name in ("source", "data"):
            raise FileNeeded(f"it measures the {name} of an experiment file")
        raise AttributeError(name)

    def experiment(self) -> Experiment:
        """Return your training as an experiment; if you gave no `evaluate`, it uses a default evaluation."""
        return OwnExperiment(self.training, evaluates=True)

    def tensors(self) -> TensorData:
        """Return empty data as the argument of `load_data`."""
        nothing = TensorSplit(torch.empty(0), torch.empty(0))
        return TensorData("own", nothing, nothing, ())

    def trial(self, *, steps: int | None = None, adapt: Adapt | None = None, **switches: Any) -> Trial:
        """Return a new trial on copies of your objects."""
        settings = replace(self.settings, **switches)
        return OwnTrial(OwnExperiment(self.training), self.tensors(), settings, steps=steps, adapt=adapt)


class OwnExperiment(Experiment):
    """A `Training` in the form of an experiment. Each call of `build_model` makes new copies of your objects.

    The numerical settings and the number of threads of the process do not change. If you gave no `evaluate` function,
    the argument `evaluates` decides: if it is true, the experiment measures loss and accuracy in eval mode; if it is
    false, evaluating raises `NotGiven`.
    """

    called = MappingProxyType({"compute_loss": "loss_fn", "build_scheduler": "scheduler"})

    def __init__(self, training: Training, *, evaluates: bool = False) -> None:
        module = ModuleType("training")
        vars(module).update({name: getattr(self, f"_{name}", None) for name in FUNCTIONS})
        vars(module).update(EPOCHS=1, BATCH_SIZE=len(training.batches[0][1]), AMP=True)
        super().__init__(training.path, module)
        self.training = training
        self._evaluates = evaluates
        self._in_float64 = False
        self._parts: _Parts | None = None

    def set_up(self, settings: RunSettings) -> None:
        """Seed the CPU generators, and compute in float64 if the settings say `verify`."""
        self._in_float64 = settings.verify
        random.seed(settings.seed)
        np.random.seed(settings.seed)
        torch.default_generator.manual_seed(settings.seed)
        if settings.verify:
            torch.set_default_dtype(torch.float64)

    def place(self, split: Batch, device: torch.device) -> Batch:
        """Return copies of inputs and labels on the device, in float64 if the experiment computes in float64."""
        inputs, labels = (
            part.to(device, torch.float64 if self._in_float64 and part.is_floating_point() else None, copy=True)
            for part in split
        )
        return inputs, labels

    def call(self, name: str, *arguments: object) -> Any:
        """Call a function and return its result. An error in float64 raises `NotGiven`: it is not your mistake."""
        try:
            return super().call(name, *arguments)
        except UserError as error:
            if self._in_float64:
                raise NotGiven(f"your code does not compute in float64 ({str(error).splitlines()[0]})") from error
            raise

    def scalers(self) -> dict[str, torch.amp.GradScaler]:
        """Return the gradient scalers of the object that `train_step` is a method of."""
        found = inside((self._copies().train_step,), torch.amp.GradScaler)
        return {str(index): scaler for index, scaler in enumerate(found)}

    def load_data(self, data: TensorData) -> tuple[Batch, Batch]:
        """Return the training and validation examples from your loaders; without validation, return training twice."""
        return self.training.data, self.training.validation or self.training.data

    def _build_model(self) -> nn.Module:
        self._parts = self.training.copy_parts(in_float64=self._in_float64)
        return self._parts.model

    def _build_optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        if model is not self._copies().model:
            raise NotGiven("it needs an optimizer for a separate network")
        return self._copies().optimizer

    def _build_scheduler(self, optimizer: torch.optim.Optimizer, total_steps: int) -> LRScheduler | None:
        return self.training.scheduler(optimizer, total_steps) if self.training.scheduler else None

    @staticmethod
    def _prepare_batch(inputs: Tensor, labels: Tensor, _rng: torch.Generator) -> Batch:
        return inputs, labels

    def _compute_loss(self, outputs: Tensor, labels: Tensor) -> Any:
        return self._copies().loss_fn(outputs, labels)

    def _train_step(self, model: nn.Module, optimizer: torch.optim.Optimizer, *batch: Tensor) -> Any:
        with nullcontext() if self.uses_amp else no_autocast():
            step = self._of(model, optimizer).train_step
            if step is None:
                optimizer.zero_grad()
                loss = self._compute_loss(model(batch[0]), batch[1])
                loss.backward()
                optimizer.step()
                return loss
            return step(*batch) if _has_its_own(model, step) else step(model, optimizer, *batch)

    def _evaluate(self, model: nn.Module, *batch: Tensor) -> Any:
        evaluate = self._of(model).evaluate
        if evaluate is None:
            if not self._evaluates:
                raise NotGiven("give evaluate=...")
            found: Any = loss_and_accuracy(self, model.eval(), *batch)
        else:
            found = evaluate(*batch) if _has_its_own(model, evaluate) else evaluate(model, *batch)
        if isinstance(found, tuple) and len(found) == 2:
            return {"val_loss": found[0], "val_accuracy": found[1]}
        return found if isinstance(found, dict) else {"val_loss": found}

    def _of(self, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> _Parts:
        """Return the copies of your objects; if `model` is another network, return copies that hold this network."""
        parts = self._copies()
        if model is parts.model:
            return parts
        memo: dict[int, Any] = {id(one): one for one in self.training.not_copied}
        memo |= {id(parts.model): model, id(parts.optimizer): optimizer or parts.optimizer}
        return copy.deepcopy(parts, memo)

    def _copies(self) -> _Parts:
        if self._parts is None:
            self._parts = self.training.copy_parts(in_float64=self._in_float64)
        return self._parts


class OwnTrial(Trial):
    """A trial that repeats the batches of your loader, in the order of the loader."""

    experiment: OwnExperiment

    def __init__(self, experiment: OwnExperiment, *arguments: Any, **options: Any) -> None:
        super().__init__(experiment, *arguments, **options)
        if experiment.training.validation is None:
            del self.validation

    def __getattr__(self, name: str) -> Any:
        if name == "validation":
            raise NotGiven("give validation=...")
        raise AttributeError(name)

    def batches(self, most: int | None = None) -> Iterator[Batch]:
        """Return an iterator of at most `most` copies of the batches."""
        given = itertools.cycle(self.experiment.training.batches)
        return itertools.islice((self.prepare(*self.experiment.place(batch, self.device)) for batch in given), most)


def _mark_as_scheduled(optimizer: torch.optim.Optimizer) -> None:
    """Mark a copied optimizer as wrapped by a schedule, as torch does; without the mark, torch warns."""
    step = optimizer.step

    @functools.wraps(step)
    def step_marked(*arguments: Any, **options: Any) -> Any:
        return step(*arguments, **options)

    vars(step_marked)[_SCHEDULED] = True
    vars(optimizer).update(step=step_marked, _opt_called=True)


def _source_of(*candidates: object) -> Path:
    """Return the file of the first candidate that is code of the user; error messages name this file."""
    for one in candidates:
        code = one.func if isinstance(one, functools.partial) else one
        try:
            file = inspect.getsourcefile(inspect.unwrap(code)) if callable(code) else None
        except TypeError:
            continue
        if file is not None and not file.startswith(_NOT_USERS):
            return Path(file)
    return Path("your training")


def _has_its_own(model: nn.Module, function: Callable[..., Any]) -> bool:
    """Return whether a function is a method of an object that holds the model, and takes only a batch."""
    try:
        inspect.signature(function).bind("inputs", "targets")
    except TypeError:
        return False
    return any(one is model for one in inside((function,), nn.Module))


@contextmanager
def no_autocast() -> Iterator[None]:
    """Disable every `torch.autocast` within the block."""
    enter = torch.autocast.__enter__

    def enter_disabled(self: torch.autocast) -> Any:
        self._enabled = False
        return enter(self)  # type: ignore[no-untyped-call]

    with mock.patch.object(torch.autocast, "__enter__", enter_disabled):
        yield


def _state(parts: _Parts) -> list[Any]:
    """Return the state that a training changes: tensors, gradients, modes, and the state of the optimizer."""
    tensors, modules = _tensors(parts)
    return [
        [tensor.detach() for tensor in tensors],
        [tensor.grad for tensor in tensors],
        [module.training for module in modules],
        parts.optimizer.state_dict(),
    ]


def _tensors(parts: _Parts) -> tuple[list[Tensor], list[nn.Module]]:
    """Return two lists for the network and for a loss that is a module: parameters with buffers, and modules."""
    roots = [part for part in (parts.model, parts.loss_fn) if isinstance(part, nn.Module)]
    tensors = [tensor for root in roots for tensor in (*root.parameters(), *root.buffers())]
    return tensors, [module for root in roots for module in root.modules()]


def _equal(kept: list[Any], now: list[Any]) -> bool:
    """Return whether two states are equal; NaN counts as equal to NaN."""
    first, second = tree_leaves(kept), tree_leaves(now)
    return len(first) == len(second) and all(map(_same, first, second))


def _same(first: Any, second: Any) -> bool:
    if not (isinstance(first, Tensor) and isinstance(second, Tensor)):
        return bool(first is second or first == second)
    return first.shape == second.shape and bool(((first == second) | (first.isnan() & second.isnan())).all())


@torch.no_grad()
def _put_back(parts: _Parts, kept: list[Any]) -> None:
    values, gradients, modes, optimizer = kept
    tensors, modules = _tensors(parts)
    for tensor, value, gradient in zip(tensors, values, gradients, strict=True):
        tensor.copy_(value)
        tensor.grad = gradient
    for module, mode in zip(modules, modes, strict=True):
        module.training = mode
    parts.optimizer.load_state_dict(optimizer)
