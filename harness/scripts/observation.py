"""Run a script under observation: note what it reads, computes and saves, and intervene where a measurement needs it.

Each observed run is one of three kinds. In a run with *held weights*, the networks get fixed weights before their first
training call, and each update is taken back, so that all losses and gradients belong to the same weights. In a run
with *artificial gradients*, the networks get the same fixed weights, and the optimizers get fixed numbers as gradients,
so that the weights depend on the update rule alone. A *natural* run changes nothing. In the first two, random numbers
are *pinned*: they depend on the place in the run, and not on how many a program has drawn before. These two run without
autocast, because two orders of the same operations differ by a hundredth in bfloat16.
"""

import copy
import hashlib
import io
import math
import os
import random
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import DataLoader, IterableDataset

from harness.canonical_setup import canonical_setup
from harness.run.checkpoint import canonical, restore_rng_states, rng_states
from harness.run.recorder import guard_hook
from harness.run.settings import RunSettings
from harness.run.step_hooks import LastStepHook, note_losses
from harness.scripts import workers
from harness.scripts.numerics import apply_script_numerics
from harness.scripts.ranks import SecondRank
from harness.scripts.recording import first_tensor
from harness.scripts.run import call_script, main_program, module_track, parts_of
from harness.scripts.script import CHECKPOINT, Script

Kind = Literal["held weights", "artificial gradients", "natural"]
_MOST_DRAWN = 4096  # entries of an artificial gradient that are drawn; longer ones repeat


class _Stop(BaseException):
    """Ends an observed run. Scripts do not catch it, as it is no `Exception`."""


@dataclass(frozen=True)
class Call:
    """A call of a network by the script itself.

    with_gradients: whether autograd was on. training: the mode of the network. output: the first tensor of the output.
    network: the network, which goes on changing.
    """

    network: nn.Module
    with_gradients: bool
    training: bool
    output: Tensor | None


@dataclass(frozen=True)
class Update:
    """A step of an optimizer.

    names: the parameters. gradients: the gradients that the optimizer used, None for a parameter without. moves: the
    changes of the weights.
    """

    names: list[str]
    gradients: list[Tensor | None]
    moves: list[Tensor]


@dataclass
class Observation:
    """What was seen of one run.

    training, validation: the first epoch's batches, as lists of their tensors. orders: the indices of each epoch of
    the training loader. versions: a digest of the same example for each worker of each epoch. calls: the calls of
    networks by the script itself. updates: the updates that `keep` chose, by number. rates, losses: for each update,
    the first learning rate, and the values from which backward passes started. figures: the figures of each validation,
    with the number of updates before it. saved: each checkpoint as bytes, with the number of updates before it.
    first_weights: the norm of each parameter before the first training call. evaluated: the weights at the first call
    of each validation. features: how often the script used dropout, autocast and so on. made: the number of updates.
    states: the sum of all weights after each update that `keep` chose. second: the orders, losses and states of the
    second process of a distributed script.
    """

    training: list[list[Tensor]] = field(default_factory=list)
    validation: list[list[Tensor]] = field(default_factory=list)
    orders: list[list[Any]] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    updates: dict[int, Update] = field(default_factory=dict)
    rates: list[float] = field(default_factory=list)
    losses: list[list[float]] = field(default_factory=list)
    figures: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    saved: list[tuple[int, bytes]] = field(default_factory=list)
    networks: list[nn.Module] = field(default_factory=list)
    first_weights: dict[str, float] = field(default_factory=dict)
    evaluated: list[list[Tensor]] = field(default_factory=list)
    features: Counter[str] = field(default_factory=Counter)
    made: int = 0
    states: list[float] = field(default_factory=list)
    second: Mapping[str, Any] = field(default_factory=dict)


Ends = Callable[[Observation], bool]


def observe(
    script: Script,
    data: Path,
    settings: RunSettings,
    kind: Kind,
    *,
    keep: Callable[[int], bool] = lambda update: False,
    ends: Ends = lambda seen: False,
    resume_from: bytes | None = None,
    seed: int | None = None,
) -> Observation:
    """Run a script under observation, until it ends or `ends(what was seen)` is true.

    That is asked for each new network, after each update, after the figures of a validation, and after each checkpoint.

    data: the folder for `--data`. keep: tells for which updates gradients and moves are kept. resume_from: the
    checkpoint with which the script continues. Raises `UserError` for a mistake in the script.
    """
    observer = _Observer(kind, keep, ends)
    number = settings.seed if seed is None else seed
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as folder:
        out = Path(folder)
        arguments = ["--data", str(data), "--out", str(out), "--seed", str(number)]
        if resume_from is not None:
            (out / CHECKPOINT).write_bytes(resume_from)
            arguments.append("--resume")
        canonical_setup(number, numerics=settings.numerics)
        apply_script_numerics()
        silent = redirect_stdout(io.StringIO())
        with ExitStack() as stack:
            stack.enter_context(suppress(_Stop))
            pair = stack.enter_context(SecondRank(script.ranks, observer.tell))
            for context in (observer.install(), module_track(observer.log), main_program(), silent):
                stack.enter_context(context)
            call_script(script, arguments)
    observer.seen.second = pair.told or {}
    return observer.seen


def fixed_numbers(name: str, shape: torch.Size, *, salt: int = 0) -> Tensor:
    """Return normal random numbers of a shape that depend on the name and on `salt` alone."""
    size = math.prod(shape)
    drawn = torch.randn(
        min(size, _MOST_DRAWN), generator=torch.Generator().manual_seed(zlib.crc32(f"{name} {salt}".encode()))
    )
    return drawn.repeat(-(-size // max(len(drawn), 1)))[:size].reshape(shape) if size else torch.zeros(shape)


@torch.no_grad()
def _give_weights(network: nn.Module) -> None:
    """Overwrite the weights and running statistics of a network with fixed numbers by name. Tied weights stay tied."""
    for name, tensor in [*network.named_parameters(), *network.named_buffers()]:
        is_statistic = name.endswith(("running_mean", "running_var"))
        if not tensor.is_floating_point() or not (isinstance(tensor, nn.Parameter) or is_statistic):
            continue
        drawn = fixed_numbers(name, tensor.shape)
        if name.endswith("running_var"):
            drawn = 0.5 + drawn.abs()
        elif tensor.dim() > 1:
            drawn = drawn / math.sqrt(max(tensor[0].numel(), 1))
        else:
            drawn = 0.1 * drawn + (1.0 if name.endswith("weight") else 0.0)
        tensor.copy_(drawn)


class _Observer:
    """The hooks of one observed run, and the notes that they write."""

    def __init__(self, kind: Kind, keep: Callable[[int], bool], ends: Ends) -> None:
        self.seen = Observation()
        self._kind, self._keep, self._ends = kind, keep, ends
        self._names: dict[int, str] = {}
        self._held: list[tuple[Tensor, Tensor]] = []
        self._depth = 0
        self._fetched: list[tuple[DataLoader[Any], int, Any]] = []
        self._epochs: Counter[int] = Counter()
        self._losses: list[float] = []
        self._before: dict[int, Tensor] = {}
        self._gradients: list[Tensor | None] = []
        self._evaluates = False
        self._generators: list[np.random.Generator] = []
        self._loaders: list[DataLoader[Any]] = []  # kept alive, because ids stand for them
        self._orders: dict[int, list[list[Any]]] = {}
        self._versions: dict[int, list[str]] = {}
        self._originals: dict[str, Any] = {}

    @contextmanager
    def install(self) -> Iterator[None]:
        """Install all hooks while the context lasts."""
        with ExitStack() as stack:
            stack.enter_context(note_losses(self._losses))
            for handle in (
                register_module_forward_pre_hook(guard_hook(self._enter)),
                register_module_forward_hook(guard_hook(self._leave), always_call=True),
                LastStepHook(guard_hook(self._before_step)),
                register_optimizer_step_post_hook(guard_hook(self._after_step)),
            ):
                stack.callback(handle.remove)
            for owner, name, own in (
                (DataLoader, "__iter__", self._iterate),
                (torch, "save", self._save),
                (torch, "randperm", self._randperm),
                (np.random, "default_rng", self._default_rng),
                (workers, "_start", self._start_worker),
                (nn.functional, "dropout", self._note_dropout),
                (nn.utils, "clip_grad_norm_", self._count_calls("clipping", nn.utils.clip_grad_norm_)),
                (nn.utils, "clip_grad_value_", self._count_calls("clipping", nn.utils.clip_grad_value_)),
                (torch.autocast, "__enter__", self._note_autocast(torch.autocast.__enter__)),
                (torch.autograd, "backward", self._note_backward(torch.autograd.backward)),
            ):
                self._originals[name] = getattr(owner, name)
                stack.enter_context(patch.object(owner, name, _as_method(own) if owner is DataLoader else own))
            yield

    def tell(self) -> dict[str, Any]:
        """Return the notes of the second process of a distributed script for the first one."""
        seen = self.seen
        return {"orders": seen.orders, "losses": seen.losses, "states": seen.states}

    @property
    def _is_pinned(self) -> bool:
        return self._kind != "natural"

    # --- random numbers ---

    def _pin(self, *place: Any) -> None:
        """Let the random numbers that follow depend on the place alone."""
        if not self._is_pinned:
            return
        seed = zlib.crc32(repr(place).encode())
        random.seed(seed)
        np.random.seed(seed)
        torch.default_generator.manual_seed(seed)  # measured on the CPU; torch.manual_seed takes 2 ms for other devices
        for number, generator in enumerate(self._generators):
            generator.bit_generator.state = np.random.PCG64(seed + number).state

    def _default_rng(self, seed: Any = None) -> np.random.Generator:
        made: np.random.Generator = self._originals["default_rng"](seed)
        if isinstance(made.bit_generator, np.random.PCG64):
            self._generators.append(made)
        return made

    def _randperm(self, n: int, *arguments: Any, **options: Any) -> Tensor:
        permute = self._originals["randperm"]
        if not self._is_pinned:
            found: Tensor = permute(n, *arguments, **options)
            return found
        number = self.seen.features[f"randperm {n}"]
        self.seen.features[f"randperm {n}"] += 1
        own = torch.Generator().manual_seed(zlib.crc32(f"randperm {n} {number}".encode()))
        drawn: Tensor = permute(n, generator=own, **{key: one for key, one in options.items() if key != "generator"})
        return drawn

    # --- batches ---

    def _iterate(self, loader: DataLoader[Any]) -> Iterator[Any]:
        key = id(loader)
        if key not in self._epochs:
            self._loaders.append(loader)
        epoch = self._epochs[key]
        self._epochs[key] += 1
        self._pin("epoch", len(self._loaders), epoch)
        order: list[Any] = []
        sampler = DataLoader._index_sampler.fget(loader)  # type: ignore[attr-defined]
        if not (self._is_pinned or loader.num_workers or isinstance(loader.dataset, IterableDataset)):
            self._add_version(loader.dataset, rng_states())
        with patch.object(DataLoader, "_index_sampler", property(lambda _: _Noting(sampler, order))):
            made = workers.EmulatedWorkers(loader) if loader.num_workers else self._originals["__iter__"](loader)
        return self._batches(loader, epoch, order, made)

    def _batches(self, loader: DataLoader[Any], epoch: int, order: list[Any], made: Iterator[Any]) -> Iterator[Any]:
        if loader.num_workers:
            self.seen.features["workers"] += 1
        number = 0
        while True:
            if not loader.num_workers:
                self._pin("batch", epoch, number)
            try:
                batch = next(made)
            except StopIteration:
                break
            self._fetched.append((loader, epoch, batch))
            if number == 0:
                self._orders.setdefault(id(loader), []).append(order)
            number += 1
            yield batch

    def _start_worker(self, loader: DataLoader[Any], number: int, base: int) -> Any:
        epoch = self._epochs[id(loader)]
        self._pin("worker", epoch, number)
        found = self._originals["_start"](loader, number, base)
        fetcher, info, states = found
        if self._is_pinned:
            self._pin("worker", epoch, number)
            states = rng_states()
        elif not isinstance(info.dataset, IterableDataset):
            self._add_version(info.dataset, states)
        return fetcher, info, states

    def _add_version(self, dataset: Any, states: dict[str, Any]) -> None:
        """Note the first example as a data set gives it in this state, and restore everything."""
        before = rng_states()
        restore_rng_states(states)
        try:
            example = copy.deepcopy(dataset)[0]
            digest = hashlib.sha256()
            for part in parts_of(example):
                digest.update(part.numpy().tobytes() if isinstance(part, Tensor) else repr(part).encode())
            self._versions.setdefault(len(dataset), []).append(digest.hexdigest())
        except Exception:  # noqa: S110 - only the script's own loop has to work with its data set
            pass
        finally:
            restore_rng_states(before)

    def _consume(self, with_gradients: bool) -> None:
        """Note fetched batches as training or validation batches: a network is now called on them."""
        for loader, epoch, batch in self._fetched:
            kept = self.seen.training if with_gradients else self.seen.validation
            if not epoch:
                kept.append([part.clone() for part in parts_of(batch) if isinstance(part, Tensor) and part.dim()])
            if with_gradients:
                self.seen.orders = self._orders.get(id(loader), [])
                self.seen.versions = self._versions.get(_length(loader.dataset), [])
        self._fetched.clear()

    # --- networks ---

    def _enter(self, module: nn.Module, _: object) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        with_gradients = torch.is_grad_enabled()
        if with_gradients:
            self._add(module)
            self._evaluates = False
        elif not self._evaluates:
            self._evaluates = True
            self.seen.evaluated.append([p.detach().clone() for p in module.parameters()])
        self._consume(with_gradients)
        self._pin("call", self.seen.made, len(self._losses), with_gradients)

    def _leave(self, module: nn.Module, inputs: object, output: object) -> None:
        self._depth -= 1
        if self._depth:
            return
        found = first_tensor(output)
        self.seen.calls.append(
            Call(module, torch.is_grad_enabled(), module.training, None if found is None else found.detach().clone())
        )

    def _add(self, network: nn.Module) -> None:
        new = {name: p for name, p in network.named_parameters() if p.requires_grad and id(p) not in self._names}
        if not new:
            return
        seen = self.seen
        prefix = f"{type(network).__name__}." if seen.networks else ""
        seen.networks.append(network)
        for name, parameter in new.items():
            self._names[id(parameter)] = prefix + name
            seen.first_weights[prefix + name] = float(parameter.detach().double().norm())
        if self._is_pinned:
            _give_weights(network)
            self._held += [(p, p.detach().clone()) for p in network.parameters()]
        if self._ends(seen):
            raise _Stop

    # --- updates ---

    def _before_step(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        number = self.seen.made
        held = [p for group in optimizer.param_groups for p in group["params"]]
        if self._keep(number):
            self._before = {id(p): p.detach().clone() for p in held}
            self._gradients = [None if p.grad is None else p.grad.detach().clone() for p in held]
        if self._kind == "artificial gradients":
            for place, p in enumerate(held):
                if p.grad is not None:
                    name = self._names.get(id(p), f"parameter {place}")
                    p.grad.copy_(0.1 * fixed_numbers(name, p.shape, salt=1 + number % 7))

    def _after_step(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        number, seen = self.seen.made, self.seen
        seen.rates.append(float(optimizer.param_groups[0]["lr"]))
        seen.losses.append(list(self._losses))
        if self._keep(number):
            held = [p for group in optimizer.param_groups for p in group["params"]]
            seen.updates[number] = Update(
                [self._names.get(id(p), f"parameter {place}") for place, p in enumerate(held)],
                self._gradients,
                [p.detach() - self._before[id(p)] for p in held],
            )
            seen.states.append(sum(float(p.detach().double().sum()) for p in held))
        self._losses.clear()
        if self._kind == "held weights":
            with torch.no_grad():
                for p, value in self._held:
                    p.copy_(value)
        seen.made += 1
        if self._ends(seen):
            raise _Stop

    # --- figures, files, features ---

    def log(self, values: Mapping[str, Any], *, step: int | None = None) -> None:
        """Note the figures of a validation."""
        figures = {
            name: float(value) for name, value in values.items() if name.startswith("val_") and value is not None
        }
        if figures:
            self.seen.figures.append((self.seen.made, figures))
            if self._ends(self.seen):
                raise _Stop

    def _save(self, state: Any, file: Any, *arguments: Any, **options: Any) -> None:
        self._originals["save"](canonical(state), file, *arguments, **options)
        if isinstance(file, str | os.PathLike) and Path(file).name == CHECKPOINT:
            self.seen.saved.append((self.seen.made, Path(file).read_bytes()))
            if self._ends(self.seen):
                raise _Stop

    def _count_calls(self, feature: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def note(*arguments: Any, **options: Any) -> Any:
            self.seen.features[feature] += 1
            return function(*arguments, **options)

        return note

    def _note_dropout(self, values: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        if training and p:
            self.seen.features["dropout"] += 1
        found: Tensor = self._originals["dropout"](values, p, training, inplace)
        return found

    def _note_autocast(self, enter: Callable[..., Any]) -> Callable[..., Any]:
        seen = self.seen

        def note(context: torch.autocast) -> Any:
            if context._enabled:
                seen.features[f"autocast {context.fast_dtype}"] += 1
            context._enabled &= not self._is_pinned
            return enter(context)

        return note

    def _note_backward(self, backward: Callable[..., None]) -> Callable[..., None]:
        def note(tensors: Any, *arguments: Any, **options: Any) -> None:
            if isinstance(tensors, Tensor):
                self.seen.features[f"loss in {tensors.dtype}"] += 1
            backward(tensors, *arguments, **options)

        return note


class _Noting:
    """A sampler of indices that notes what it gives."""

    def __init__(self, sampler: Any, order: list[Any]) -> None:
        self._sampler, self._order = sampler, order

    def __iter__(self) -> Iterator[Any]:
        for indices in self._sampler:
            self._order.append(indices)
            yield indices

    def __len__(self) -> int:
        return len(self._sampler)


def _as_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a plain function, which becomes a method of a class where a bound method would not."""

    def call(owner: Any) -> Any:
        return function(owner)

    return call


def _length(dataset: Any) -> int:
    return len(dataset) if hasattr(dataset, "__len__") else 0
