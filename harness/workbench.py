"""An experiment set up on its training data, to be stepped and looked at: what probes and instruments work on."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from harness.batches import deterministic_minibatches
from harness.experiment import Experiment, TensorData
from harness.numerics import canonical_setup


class Bench:
    """An experiment set up on its training data, to be stepped and looked at."""

    def __init__(self, experiment: Experiment, data: TensorData, seed: int) -> None:
        canonical_setup(seed)
        self.experiment = experiment
        (self.inputs, self.labels), self.validation = experiment.load_data(data)
        self.batch_size = min(experiment.batch_size, len(self.inputs))
        self.steps = experiment.epochs * (len(self.inputs) // self.batch_size)
        self.model = experiment.build_model()
        self.optimizer = experiment.build_optimizer(self.model)
        self.scheduler = experiment.build_scheduler(self.optimizer, self.steps)
        self.rng = torch.Generator().manual_seed(seed)

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield prepared training batches, epoch after epoch."""
        while True:
            for inputs, labels in deterministic_minibatches(
                self.inputs, self.labels, self.batch_size, self.rng, drop_last=True
            ):
                yield self.experiment.prepare_batch(inputs, labels, self.rng)

    def step(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Make one training step of the experiment and of its schedule, and return the loss."""
        self.model.train()
        loss = self.experiment.train_step(self.model, self.optimizer, inputs, labels)
        if self.scheduler is not None:
            self.scheduler.step()
        return loss


def worst(values: list[float]) -> float:
    """Return the largest value, or NaN where one of them is: the largest would hide it."""
    return math.nan if any(math.isnan(value) for value in values) else max(values)
