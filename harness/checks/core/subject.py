"""The experiment that a check measures: loaded anew for each measurement, and stepped as a run steps it."""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from harness.data.datasets import Dataset
from harness.run.batches import deterministic_minibatches
from harness.run.experiment import Experiment, TensorData, load_experiment, tensor_data
from harness.run.metrics_log import Record
from harness.run.recorder import Recorder
from harness.run.settings import RunSettings
from harness.run.setup import Adapt, TrainingSetup


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
