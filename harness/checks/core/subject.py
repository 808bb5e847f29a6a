"""The experiment that a check measures: loaded anew for each measurement, and stepped as a run steps it."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from harness.canonical_setup import canonical_setup
from harness.data.datasets import Dataset
from harness.run.batches import deterministic_minibatches, run_generators
from harness.run.experiment import Experiment, TensorData, load_experiment, tensor_data
from harness.run.metrics_log import Record
from harness.run.recorder import Recorder
from harness.run.settings import RunSettings

Adapt = Callable[[nn.Module, torch.optim.Optimizer], None]


@dataclass(frozen=True)
class Subject:
    """An experiment's source, the settings of its run, and its data; errors name the file `path`."""

    path: Path
    source: str
    settings: RunSettings
    data: Dataset

    def experiment(self, **switches: Any) -> Experiment:
        """Return the experiment, loaded anew; `switches` are further settings, such as `disable_amp=True`."""
        experiment = load_experiment(self.path, self.source)
        experiment.apply(replace(self.settings, **switches))
        return experiment

    def tensors(self) -> TensorData:
        """Return a copy of the data as `load_data` receives it."""
        return tensor_data(self.data)

    def trial(self, experiment: Experiment | None = None, **options: Any) -> "Trial":
        """Return a trial of the experiment; `options` are those of `Trial`."""
        return Trial(experiment or self.experiment(), self.tensors(), self.settings.seed, **options)


class Trial:
    """A short training of the experiment, which a check steps and looks into.

    The first epoch has the batches of the run, to the bit. `steps` is the length of the schedule, by default that of
    the whole run. `verify` computes in float64. `adapt` may change network and optimizer before the schedule is made.
    """

    def __init__(
        self,
        experiment: Experiment,
        data: TensorData,
        seed: int,
        *,
        steps: int | None = None,
        verify: bool = False,
        adapt: Adapt | None = None,
    ) -> None:
        canonical_setup(seed, verify)
        self.experiment = experiment
        training, validation = experiment.load_data(data)
        (self.inputs, self.labels), self.validation = _as_default(training), _as_default(validation)
        self.batch_size = min(experiment.batch_size, len(self.inputs))
        self.steps = steps or experiment.epochs * (len(self.inputs) // self.batch_size)
        self.model = experiment.build_model()
        self.optimizer = experiment.build_optimizer(self.model)
        if adapt is not None:
            adapt(self.model, self.optimizer)
        self.scheduler = experiment.build_scheduler(self.optimizer, self.steps)
        self._generators = run_generators(seed)

    def batches(self, most: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Return prepared training batches, epoch after epoch; at most so many."""
        epochs = (
            deterministic_minibatches(self.inputs, self.labels, self.batch_size, self._generators["order"])
            for _ in itertools.count()
        )
        prepared = (self.prepare(*batch) for batch in itertools.chain.from_iterable(epochs))
        return itertools.islice(prepared, most)

    def prepare(self, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return a batch as the network is to see it."""
        return self.experiment.prepare_batch(inputs, labels, self._generators["augmentation"])

    def step(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Make one training step of the experiment and of its schedule; return the loss."""
        self.model.train()
        loss = self.experiment.train_step(self.model, self.optimizer, inputs, labels)
        if self.scheduler is not None:
            self.scheduler.step()
        return loss

    def records(self, batches: Iterable[tuple[Tensor, Tensor]], *, prepare: bool = False) -> Iterator[Record]:
        """Make a step on each batch, prepared first if it is not yet, and yield what the log of a run would hold."""
        with Recorder(self.model) as recorder:
            for step, batch in enumerate(batches):
                found = recorder.end_batch(self.step(*(self.prepare(*batch) if prepare else batch)))
                yield {"step": step, **found}


def _as_default(split: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    dtype = torch.get_default_dtype()
    inputs, labels = (part.to(dtype) if part.is_floating_point() else part for part in split)
    return inputs, labels


def worst(values: list[float]) -> float:
    """Return the largest value, or NaN if any value is NaN: taking the largest alone would hide it."""
    return math.nan if any(math.isnan(value) for value in values) else max(values)
