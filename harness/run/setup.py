"""An experiment set up to train from the seed: its data, network, optimizer and schedule."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from harness.canonical_setup import canonical_setup
from harness.run.batches import run_generators
from harness.run.experiment import Experiment, TensorData, disable_dropout
from harness.run.settings import RunSettings

Adapt = Callable[[nn.Module, torch.optim.Optimizer], None]


class TrainingSetup:
    """The parts of a training, in the state before its first step.

    `steps` is the length of the schedule, by default that of the whole run. `adapt` may change network and optimizer
    before the schedule is made.
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
        canonical_setup(settings.seed, settings.verify)
        self.experiment, self.settings = experiment, settings
        self.device = torch.device(settings.device)
        experiment.apply(settings)
        self.class_names = data.class_names
        training, validation = experiment.load_data(data)
        self.inputs, self.labels = self._place(training)
        self.validation = self._place(validation)
        self.batch_size = min(settings.overfit_batch or experiment.batch_size, len(self.inputs))
        self.steps_per_epoch = len(self.inputs) // min(experiment.batch_size, len(self.inputs))
        self.steps = steps or experiment.epochs * self.steps_per_epoch
        if settings.max_steps is not None:
            self.steps = min(self.steps, settings.max_steps)
        self.model = experiment.build_model().to(self.device)
        if settings.disable_dropout or settings.overfit_batch:
            disable_dropout(self.model)
        self.optimizer = experiment.build_optimizer(self.model)
        if adapt is not None:
            adapt(self.model, self.optimizer)
        self.scheduler = experiment.build_scheduler(self.optimizer, self.steps)
        self.generators = run_generators(settings.seed)

    def _place(self, split: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        dtype = torch.get_default_dtype()
        inputs, labels = (part.to(self.device, dtype if part.is_floating_point() else None) for part in split)
        return inputs, labels

    def prepare(self, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return a batch as the network is to see it."""
        return self.experiment.prepare_batch(inputs, labels, self.generators["augmentation"])

    def train_on(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Make one step of the experiment and of its schedule on a prepared batch; return the loss."""
        loss = self.experiment.train_step(self.model, self.optimizer, inputs, labels)
        if self.scheduler is not None:
            self.scheduler.step()
        return loss
