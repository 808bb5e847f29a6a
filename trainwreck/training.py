"""Check the parts of a training in a test: train the user's own objects for some updates, then put them back."""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from trainwreck.finding import DEFAULT_STEPS, Finding
from trainwreck.session import Session, Unsound, raise_alarms
from trainwreck.state import Watch
from trainwreck.trees import clone
from trainwreck.usage import UsageError

_MOST_CALLS = 100  # of `train_step` without an update
_MOST_EVALUATED = 8  # batches
_SHOWN = 4


class Training:
    """The parts of a training.

    models, optimizers: the user's own objects, before training: one, or several in a list, tuple or dictionary. An
    optimizer may be wrapped, as by accelerate. optimizers also takes None if `train_step` changes the weights itself.
    loss_fn: a function of the outputs and the targets that returns the loss. It may be a module with weights.
    batches: an iterable of batches, such as a loader; it may be endless. A batch for the default step is a pair of
        inputs and targets. A pair of tensors stands for a single batch. Batches begin again when they end.
    train_step: makes one training step. It takes the models, the optimizers and the batch, or only the batch. A batch
        that is a tuple or a list gives one argument for each part. By default a step clears the gradients, computes
        `loss_fn(models(inputs), targets)`, calls `backward`, and updates.
    evaluate: evaluates one batch of `validation`. It takes the models and the batch, or only the batch. Without
        `validation` it is called once, with the models or without arguments. By default it computes the loss in eval
        mode.
    validation: an iterable of batches for the evaluation. At most eight of them are used.
    scheduler: makes a step after each training step. It may be a list.
    frozen: the beginnings of names of parameters that must not change, such as "encoder.".

    Raises `UsageError`, a `ValueError`, if a part is missing that the default step needs.
    """

    def __init__(
        self,
        models: Any,
        optimizers: Any,
        loss_fn: Callable[..., Any] | None,
        batches: Iterable[Any],
        *,
        train_step: Callable[..., Any] | None = None,
        evaluate: Callable[..., Any] | None = None,
        validation: Iterable[Any] | None = None,
        scheduler: Any = None,
        frozen: Iterable[str] = (),
    ) -> None:
        self.models, self.optimizers, self.loss_fn = models, optimizers, loss_fn
        self.batches = _batches(batches, default=train_step is None)
        self.validation = None if validation is None else _batches(validation, default=evaluate is None)
        self.train_step, self.evaluate = train_step, evaluate
        self.frozen = (frozen,) if isinstance(frozen, str) else tuple(frozen)
        self._schedulers = _listed(scheduler)
        if train_step is None and (loss_fn is None or not isinstance(models, nn.Module) or optimizers is None):
            raise UsageError("Training: give train_step, or one model, one optimizer and a loss_fn")
        for model in _listed(models):
            if not isinstance(model, nn.Module):
                raise UsageError(f"Training: a model must be a torch Module, not a {type(model).__name__}")

    def run(self, session: Session, state: Watch, evaluate_after: int) -> None:
        """Train until the watch is over, and evaluate once, after this number of updates.

        Stop if `train_step` makes no update. Raises `UsageError` if there are no batches.
        """
        for model in _listed(self.models):
            if not model.training:
                model.train()
        evaluates = self.evaluate is not None or self.validation is not None
        idle = 0  # calls since the latest update
        for batch in self._endless():
            before = state.step
            self._step(batch)
            for scheduler in self._schedulers:
                scheduler.step()
            if evaluates and state.step >= evaluate_after:
                evaluates = False
                self._evaluate()
            idle = idle + 1 if state.step == before else 0
            if session.is_over or idle > _MOST_CALLS:
                return

    def _endless(self) -> Iterator[Any]:
        while True:
            is_empty = True
            for batch in self.batches:
                is_empty = False
                yield batch
            if is_empty:
                raise UsageError("Training: batches gives no batch; pass a loader or a list, not a used iterator")

    def _step(self, batch: Any) -> None:
        if self.train_step is not None:
            _call(self.train_step, (self.models, self.optimizers), batch)
            return
        inputs, targets = _pair(batch)
        self.optimizers.zero_grad()
        loss = self._loss(inputs, targets)
        loss.backward()
        self.optimizers.step()

    def _loss(self, inputs: Any, targets: Any) -> Any:
        assert self.loss_fn is not None
        return self.loss_fn(self.models(inputs), targets)

    def _evaluate(self) -> None:
        """Evaluate, and put the modes back: code that calls `train_step` may set the mode only once in an epoch."""
        modes = self._modes()
        batches = list(islice(self.validation or (), _MOST_EVALUATED))
        if self.evaluate is not None:
            if self.validation is None:
                self.evaluate(*((self.models,) if _fits(self.evaluate, (self.models,)) else ()))
            # Two calls without a backward pass are an evaluation; one may be anything.
            for batch in batches if len(batches) > 1 else 2 * batches:
                _call(self.evaluate, (self.models,), batch)
        elif self.loss_fn is not None and isinstance(self.models, nn.Module):
            self.models.eval()
            with torch.no_grad():
                for batch in batches:
                    self._loss(*_pair(batch))
        for module, mode in modes:
            module.training = mode

    def _modes(self) -> list[tuple[nn.Module, bool]]:
        roots = [one for one in (*_listed(self.models), self.loss_fn) if isinstance(one, nn.Module)]
        return [(inner, inner.training) for root in roots for inner in root.modules()]

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Put weights, gradients, modes, optimizers, schedulers and random numbers back at the end of the block."""
        modules = [one for one in (*_listed(self.models), self.loss_fn) if isinstance(one, nn.Module)]
        tensors = {id(one): one for root in modules for one in (*root.parameters(), *root.buffers())}.values()
        kept = [(one, None if _is_lazy(one) else one.detach().clone(), _copied(one.grad)) for one in tensors]
        modes = self._modes()
        states = [(one, clone(one.state_dict())) for one in (*_listed(self.optimizers), *self._schedulers)]
        generators = [one for one in map(_generator, (self.batches, self.validation)) if one is not None]
        chance = random.getstate(), torch.get_rng_state(), [one.get_state() for one in generators]
        numpy = sys.modules.get("numpy")
        drawn = None if numpy is None else numpy.random.get_state()
        try:
            yield
        finally:
            with torch.no_grad():
                for tensor, values, gradient in kept:
                    if values is not None:
                        tensor.copy_(values)
                    tensor.grad = gradient
            for inner, mode in modes:
                inner.training = mode
            for one, state in states:
                one.load_state_dict(state)
            random.setstate(chance[0])
            torch.set_rng_state(chance[1])
            for generator, state in zip(generators, chance[2], strict=True):
                generator.set_state(state)
            if numpy is not None:
                numpy.random.set_state(drawn)

    def moved(self) -> Callable[[], list[str]]:
        """Return a function that names the frozen parameters that have changed since this call."""
        before = [
            (name, parameter, parameter.detach().clone())
            for model in _listed(self.models)
            for name, parameter in model.named_parameters()
            if name.startswith(self.frozen)
        ]
        unknown = [start for start in self.frozen if not any(name.startswith(start) for name, _, _ in before)]
        if unknown:
            raise UsageError(f"Training: frozen names no parameter of the models: {', '.join(unknown)}")

        return lambda: [name for name, parameter, values in before if not torch.equal(values, parameter)]


def assert_sound(
    training: Training, *checks: str, steps: int = DEFAULT_STEPS, ignore: Iterable[str] = ()
) -> list[Finding]:
    """Train for some updates under watch, and return the advice and notes of the checks, by default of all checks.

    The objects of the training are trained themselves, and put back afterwards. On Linux and on the CPU, trials and
    probes go on in child processes. `ignore` is the argument of `watch`.

    Raises `Unsound`, an `AssertionError`, with the text of the alarms, and if a frozen parameter changes. Raises
    `UsageError` for an unknown check, or if no update was made. What the user's functions raise is not caught.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    if not isinstance(training, Training):
        raise UsageError(f"assert_sound: give a Training, not a {type(training).__name__}")
    session = Session(checks, ignore)
    moved = training.moved()
    with training.restored():
        state = session.begin(steps)
        try:
            training.run(session, state, evaluate_after=max(1, steps // 2))
            names = moved()
        finally:
            session.end()
    if not state.step:
        raise UsageError(f"Training: train_step made no update in {_MOST_CALLS} calls")
    raise_alarms(state.findings)
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise Unsound(f"frozen parameters have changed: {', '.join(names[:_SHOWN])}{more}")
    return state.findings


def _pair(batch: Any) -> tuple[Any, Any]:
    """Return the two parts of a batch for the default step. Raises `UsageError` if it has others."""
    count = len(batch) if isinstance(batch, tuple | list) else 1
    if count != 2:
        parts = f"{count} parts" if isinstance(batch, tuple | list) else f"a {type(batch).__name__}"
        raise UsageError(
            f"Training: a batch is {parts}, and the default step takes pairs of inputs and targets;"
            " give train_step (and evaluate, with validation)"
        )
    return batch[0], batch[1]


def _batches(given: Iterable[Any], *, default: bool) -> Iterable[Any]:
    """Return batches; a pair of tensors stands for one batch.

    default: whether the default step gets the batches. It needs pairs, so a list of two tensors, as a loader gives it,
    is one batch, too.
    """
    kinds = (tuple, list) if default else (tuple,)
    if isinstance(given, kinds) and len(given) > 1 and all(isinstance(part, Tensor) for part in given):
        return [given]
    return given


def _listed(given: Any) -> list[Any]:
    """Return one object, or several in a container, as a list."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        return list(given.values())
    return list(given) if isinstance(given, list | tuple) else [given]


def _call(function: Callable[..., Any], objects: tuple[Any, ...], batch: Any) -> None:
    """Call a function with the objects and the parts of the batch, or with the parts alone, or with the batch."""
    parts = tuple(batch) if isinstance(batch, tuple | list) else (batch,)
    given = [arguments for arguments in ((*objects, *parts), parts, (batch,)) if _fits(function, arguments)]
    if not given:
        name = getattr(function, "__name__", "a function")
        raise UsageError(f"Training: {name} must take {len(objects)} objects and the {len(parts)} parts of a batch")
    function(*given[0])


def _fits(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bool:
    """Return whether a function can be called with these arguments."""
    try:
        inspect.signature(function).bind(*arguments)
    except (TypeError, ValueError):
        return False
    return True


def _is_lazy(tensor: Tensor) -> bool:
    return isinstance(tensor, nn.parameter.UninitializedParameter | nn.parameter.UninitializedBuffer)


def _copied(gradient: Tensor | None) -> Tensor | None:
    return None if gradient is None else gradient.detach().clone()


def _generator(batches: Any) -> torch.Generator | None:
    """Return the random generator of a loader, or None if it has none."""
    found = getattr(batches, "generator", None)
    return found if isinstance(found, torch.Generator) else None
