"""An experiment set up on its training data, to be stepped and looked at: what probes and instruments work on."""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from harness.canonical_setup import canonical_setup
from harness.run.batches import deterministic_minibatches, run_generators
from harness.run.experiment import Experiment, TensorData

Adapt = Callable[[nn.Module, torch.optim.Optimizer], None]


class Bench:
    """An experiment set up on its training data, to be stepped and looked at.

    `steps` is the length of the schedule, by default that of a whole run; `verify` computes in float64; `adapt` may
    change network and optimizer before the schedule is made. With `as_run` the first epoch is that of a run, to the
    bit; else order and augmentation are drawn from one generator.
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
        as_run: bool = False,
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
        self.rng = torch.Generator().manual_seed(seed)
        self.augmentation = run_generators(seed)["augmentation"] if as_run else self.rng

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield prepared training batches, epoch after epoch."""
        while True:
            for inputs, labels in deterministic_minibatches(
                self.inputs, self.labels, self.batch_size, self.rng, drop_last=True
            ):
                yield self.prepare(inputs, labels)

    def prepare(self, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return a batch as the network is to see it."""
        return self.experiment.prepare_batch(inputs, labels, self.augmentation)

    def step(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Make one training step of the experiment and of its schedule, and return the loss."""
        self.model.train()
        loss = self.experiment.train_step(self.model, self.optimizer, inputs, labels)
        if self.scheduler is not None:
            self.scheduler.step()
        return loss


def _as_default(split: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    dtype = torch.get_default_dtype()
    inputs, labels = (part.to(dtype) if part.is_floating_point() else part for part in split)
    return inputs, labels


def worst(values: list[float]) -> float:
    """Return the largest value, or NaN where one of them is: the largest would hide it."""
    return math.nan if any(math.isnan(value) for value in values) else max(values)
