"""The experiment that a check measures: it is reloaded for each measurement and trained in the same way as a run."""

import copy
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.optim.lr_scheduler import LRScheduler

from harness.canonical_setup import canonical_setup
from harness.data.datasets import Dataset
from harness.run.experiment import Experiment, TensorData, load_experiment, tensor_data
from harness.run.metrics_log import Record
from harness.run.recorder import Recorder
from harness.run.settings import RunSettings
from harness.run.setup import Adapt, TrainingSetup, advance_schedule, get_dataloader
from harness.run.step_hooks import LastStepHook

Gradients = dict[str, Tensor]
ROUNDING = 1e-5
ALIKE, PARALLEL = 0.5, 0.999  # cosines of two gradients; above PARALLEL, one loss is a multiple of the other


@dataclass(frozen=True)
class Subject:
    """The source of an experiment, its settings and its data; error messages name the file `path`."""

    path: Path
    source: str
    settings: RunSettings
    data: Dataset

    def experiment(self) -> Experiment:
        """Return a newly loaded experiment."""
        experiment = load_experiment(self.path, self.source)
        experiment.apply(self.settings)
        return experiment

    def tensors(self) -> TensorData:
        """Return a copy of the data as `load_data` receives it."""
        return tensor_data(self.data)

    def trial(self, *, steps: int | None = None, adapt: Adapt | None = None, **switches: Any) -> "Trial":
        """Return a new trial of the experiment; `switches` are further settings, such as `disable_amp=True`."""
        settings = replace(self.settings, **switches)
        # Set up first, because tensors that the experiment creates on loading must have the dtype of its training.
        canonical_setup(settings.seed, settings.verify)
        return Trial(self.experiment(), self.tensors(), settings, steps=steps, adapt=adapt)


class Trial(TrainingSetup):
    """A short training of the experiment that a check controls step by step.

    The first epoch has exactly the batches of the run, and the trial uses the schedule of the run. If `steps` is given,
    the schedule is stretched to this number of steps. After the end of the schedule, the learning rate does not change.
    """

    def __init__(
        self,
        experiment: Experiment,
        data: TensorData,
        settings: RunSettings,
        *,
        steps: int | None = None,
        adapt: Adapt | None = None,
    ) -> None:
        super().__init__(experiment, data, settings, adapt=adapt)
        self.stretched_to = steps or self.steps

    def batches(self, most: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Return an iterator of at most `most` prepared training batches, epoch after epoch."""
        drop_last = not self.settings.keep_last
        loader = get_dataloader(
            self.inputs, self.labels, self.batch_size, self.generators["order"], drop_last=drop_last
        )
        prepared = (self.prepare(*batch) for batch in itertools.chain.from_iterable(itertools.repeat(loader)))
        return itertools.islice(prepared, most)

    def step(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Make one training step on a prepared batch and return the loss."""
        if self.made % self.steps_per_epoch == 0:
            self.model.train()  # as in a run; until the next epoch, only the experiment changes the mode
        return self.train_on(inputs, labels)

    def step_schedule(self, scheduler: LRScheduler) -> None:
        """Advance the schedule by as many steps as its stretched form requires after this training step."""
        due = [made * self.steps // self.stretched_to for made in (self.made, self.made + 1)]
        for _ in range(min(due[1], self.steps) - min(due[0], self.steps)):
            advance_schedule(scheduler)

    def records(self, batches: Iterable[tuple[Tensor, Tensor]]) -> Iterator[Record]:
        """Make a step on each prepared batch, and yield the record that the log of a run would contain."""
        with Recorder(self.model) as recorder:
            for step, batch in enumerate(batches):
                found = recorder.end_batch(self.step(*batch))
                yield {"step": step, **found}


def disable_unheld_gradients(trial: Trial) -> None:
    """Switch off gradients of frozen parameters outside the optimizer: nothing uses or clears these gradients."""
    held = {id(parameter) for group in trial.optimizer.param_groups for parameter in group["params"]}
    for name, parameter in trial.model.named_parameters():
        if name.startswith(trial.experiment.frozen) and id(parameter) not in held:
            parameter.requires_grad_(False)


def worst(values: list[float]) -> float:
    """Return the largest value, or NaN if any value is NaN; `max` may ignore a NaN."""
    return math.nan if any(math.isnan(value) for value in values) else max(values)


@contextmanager
def no_autocast() -> Iterator[None]:
    """Disable every `torch.autocast` within the block."""
    enter = torch.autocast.__enter__

    def enter_disabled(self: torch.autocast) -> Any:
        self._enabled = False
        return enter(self)  # type: ignore[no-untyped-call]

    with patch.object(torch.autocast, "__enter__", enter_disabled):
        yield


@contextmanager
def fresh_gradients(model: nn.Module) -> Iterator[Gradients]:
    """Collect the gradients that backward passes add to each parameter, before any clearing, scaling or clipping."""
    gradients: Gradients = {}

    def collect(name: str) -> Callable[[Tensor], None]:
        def add(gradient: Tensor) -> None:
            gradients[name] = gradients[name] + gradient if name in gradients else gradient

        return add

    handles = [p.register_hook(collect(name)) for name, p in model.named_parameters() if p.requires_grad]
    try:
        yield gradients
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def used_gradients(model: nn.Module) -> Iterator[Gradients]:
    """Collect the gradient of each parameter when an optimizer first uses it, without the factor of a scaler.

    Hooks of the experiment, which may clip or average gradients, run before the gradients are collected.
    """
    gradients: Gradients = {}

    def collect(optimizer: torch.optim.Optimizer, *_: object) -> None:
        scale = getattr(optimizer, "grad_scale", None)
        for name, parameter in model.named_parameters():
            if parameter.grad is not None and name not in gradients:
                gradients[name] = parameter.grad.detach() / (1.0 if scale is None else scale)

    handle = LastStepHook(collect)
    try:
        yield gradients
    finally:
        handle.remove()


def reference_gradients(
    model: nn.Module, loss: Callable[[Tensor, Tensor], Tensor], inputs: Tensor, labels: Tensor
) -> Gradients:
    """Return the gradients of a loss on one batch, from a copy of the network in training mode.

    The random state is restored, so dropout drops the same units as in the next step of the network itself.
    """
    reference = copy.deepcopy(model).train()
    reference.zero_grad()
    state = torch.get_rng_state()
    loss(reference(inputs), labels).backward()
    torch.set_rng_state(state)
    return {name: p.grad for name, p in reference.named_parameters() if p.grad is not None}


def minimizes_another_loss(subject: Subject) -> bool:
    """Return whether `train_step` openly minimizes another loss than `compute_loss`, for example for distillation.

    "Openly" means that `train_step` returns the loss of its backward passes. In two cases, the result is False, because
    they are faults: the other loss is only a multiple of `compute_loss`, or its gradient points in a very different
    direction.
    """
    trial = subject.trial(disable_amp=True)
    inputs, labels = next(trial.batches())
    model, passed = trial.model, list[float]()
    state = torch.get_rng_state()
    with torch.no_grad():
        computed = float(trial.experiment.compute_loss(copy.deepcopy(model).train()(inputs), labels))
    torch.set_rng_state(state)
    expected = reference_gradients(model, trial.experiment.compute_loss, inputs, labels)
    backward = torch.Tensor.backward

    def record_gradients(loss: Tensor, *arguments: Any, **options: Any) -> None:
        passed.append(loss.sum().item())
        backward(loss, *arguments, **options)  # type: ignore[no-untyped-call]

    with patch.object(torch.Tensor, "backward", record_gradients), fresh_gradients(model) as found:
        returned = float(trial.step(inputs, labels))
    scale = math.prod(scaler.get_scale() for scaler in trial.experiment.scalers().values())
    own, reference = as_vector(found, expected), as_vector(expected, expected)
    likeness = float(torch.nn.functional.cosine_similarity(own, reference, dim=0))
    as_returned = abs(sum(passed) / scale - returned) <= ROUNDING * abs(returned)
    return as_returned and abs(returned - computed) > ROUNDING * abs(computed) and ALIKE < likeness < PARALLEL


def as_vector(gradients: Gradients, like: Gradients) -> Tensor:
    """Return the gradients of the parameters in `like` as one float64 vector; missing gradients are zero."""
    parts = [gradients.get(name, torch.zeros_like(one)) for name, one in like.items()]
    return torch.cat([part.double().flatten() for part in parts])


def leaves_of(value: Tensor) -> list[Tensor]:
    """Return each leaf tensor in the autograd graph of a value once."""
    waiting, seen, leaves = [value.grad_fn], set(), []
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if (leaf := getattr(node, "variable", None)) is not None:
            leaves.append(leaf)
        waiting += [further for further, _ in node.next_functions]
    return leaves


def matrix_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Return the modules that directly hold a parameter with two or more dimensions, by name."""
    return {
        name or type(module).__name__: module
        for name, module in model.named_modules()
        if any(parameter.dim() > 1 for parameter in module.parameters(recurse=False))
    }


@torch.no_grad()
def without_zeros(model: nn.Module) -> nn.Module:
    """Replace every matrix of zeros by small random weights, as torch initializes a layer, and return the network.

    Otherwise, a last layer of zeros or a residual branch that ends in zeros would hide what the other layers do. If the
    scale of a normalization layer is zero, it becomes 1. The random state does not change.
    """
    generator = torch.Generator().manual_seed(0)
    for layer in matrix_layers(model).values():
        for parameter in layer.parameters(recurse=False):
            if parameter.dim() > 1 and not parameter.any():
                bound = parameter[0].numel() ** -0.5
                parameter.copy_((2 * torch.rand(parameter.shape, generator=generator) - 1) * bound)
    for norm in model.modules():
        if isinstance(norm, _NormBase | nn.GroupNorm | nn.LayerNorm | nn.RMSNorm) and norm.weight is not None:
            norm.weight.masked_fill_(~norm.weight.any(), 1.0)
    return model
