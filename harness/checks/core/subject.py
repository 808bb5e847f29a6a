"""The experiment that a check measures: loaded anew for each measurement, and stepped as a run steps it."""

import copy
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from harness.data.datasets import Dataset
from harness.run.experiment import Experiment, TensorData, load_experiment, tensor_data
from harness.run.metrics_log import Record
from harness.run.recorder import Recorder
from harness.run.settings import RunSettings
from harness.run.setup import Adapt, TrainingSetup, deterministic_minibatches

Gradients = dict[str, Tensor]


@dataclass(frozen=True)
class Subject:
    """An experiment's source, the settings of its run, and its data; errors name the file `path`."""

    path: Path
    source: str
    settings: RunSettings
    data: Dataset

    def experiment(self) -> Experiment:
        """Return the experiment, loaded anew."""
        experiment = load_experiment(self.path, self.source)
        experiment.apply(self.settings)
        return experiment

    def tensors(self) -> TensorData:
        """Return a copy of the data as `load_data` receives it."""
        return tensor_data(self.data)

    def trial(self, *, steps: int | None = None, adapt: Adapt | None = None, **switches: Any) -> "Trial":
        """Return a trial of the experiment; `switches` are further settings, such as `disable_amp=True`."""
        settings = replace(self.settings, **switches)
        return Trial(self.experiment(), self.tensors(), settings, steps=steps, adapt=adapt)


class Trial(TrainingSetup):
    """A short training of the experiment, which a check steps and looks into.

    The first epoch has the batches of the run, to the bit.
    """

    def batches(self, most: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Return prepared training batches, epoch after epoch; at most so many."""
        epochs = (
            deterministic_minibatches(self.inputs, self.labels, self.batch_size, self.generators["order"])
            for _ in itertools.count()
        )
        prepared = (self.prepare(*batch) for batch in itertools.chain.from_iterable(epochs))
        return itertools.islice(prepared, most)

    def step(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Make one training step on a prepared batch; return the loss."""
        self.model.train()
        return self.train_on(inputs, labels)

    def records(self, batches: Iterable[tuple[Tensor, Tensor]]) -> Iterator[Record]:
        """Make a step on each prepared batch, and yield what the log of a run would hold."""
        with Recorder(self.model) as recorder:
            for step, batch in enumerate(batches):
                found = recorder.end_batch(self.step(*batch))
                yield {"step": step, **found}


def worst(values: list[float]) -> float:
    """Return the largest value, or NaN if any value is NaN: taking the largest alone would hide it."""
    return math.nan if any(math.isnan(value) for value in values) else max(values)


@contextmanager
def fresh_gradients(model: nn.Module) -> Iterator[Gradients]:
    """Collect what backward passes add to each parameter, before anything clears, scales or clips it."""
    gradients: Gradients = {}

    def collect(name: str) -> Callable[[Tensor], None]:
        def add(gradient: Tensor) -> None:
            gradients[name] = gradients[name] + gradient if name in gradients else gradient.clone()

        return add

    handles = [p.register_hook(collect(name)) for name, p in model.named_parameters() if p.requires_grad]
    try:
        yield gradients
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def used_gradients(model: nn.Module) -> Iterator[Gradients]:
    """Collect the gradient of each parameter when an optimizer first uses it, without the factor of a scaler."""
    gradients: Gradients = {}

    def collect(optimizer: torch.optim.Optimizer, *_: object) -> None:
        scale = getattr(optimizer, "grad_scale", None)
        for name, parameter in model.named_parameters():
            if parameter.grad is not None and name not in gradients:
                gradients[name] = parameter.grad.detach() / (1.0 if scale is None else scale)

    handle = register_optimizer_step_pre_hook(collect)
    try:
        yield gradients
    finally:
        handle.remove()


def reference_gradients(
    model: nn.Module, loss: Callable[[Tensor, Tensor], Tensor], inputs: Tensor, labels: Tensor
) -> Gradients:
    """Return the gradients of a loss on one batch, for a copy of the network in training mode.

    Dropout draws what the next step on the network itself will draw: the state of chance is put back.
    """
    reference = copy.deepcopy(model).train()
    reference.zero_grad()
    state = torch.get_rng_state()
    loss(reference(inputs), labels).backward()
    torch.set_rng_state(state)
    return {name: p.grad for name, p in reference.named_parameters() if p.grad is not None}


def as_vector(gradients: Gradients, like: Gradients) -> Tensor:
    """Return the gradients of the parameters in `like` as one float64 vector, with zeros for those that are missing."""
    parts = [gradients.get(name, torch.zeros_like(one)) for name, one in like.items()]
    return torch.cat([part.double().flatten() for part in parts])
