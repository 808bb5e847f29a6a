"""Set up an experiment for training: data, batches, network, optimizer and schedule."""

import base64
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from harness.run.experiment import Experiment, TensorData, disable_dropout
from harness.run.settings import RunSettings

Adapt = Callable[[nn.Module, torch.optim.Optimizer], None]
MOST_IMAGES = 24
MOST_COLUMNS = 32


class TrainingSetup:
    """The parts of a training run, set up for its first step.

    `steps` is the number of steps of the run and its schedule. adapt: a function that may change network and optimizer
    before the schedule is built.
    """

    def __init__(
        self, experiment: Experiment, data: TensorData, settings: RunSettings, *, adapt: Adapt | None = None
    ) -> None:
        experiment.set_up(settings)
        self.experiment, self.settings = experiment, settings
        self.device = torch.device(settings.device)
        experiment.apply(settings)
        self.class_names = data.class_names
        training, validation = experiment.load_data(data)
        self.inputs, self.labels = (
            part[: settings.overfit_examples] for part in experiment.place(training, self.device)
        )
        self.validation = experiment.place(validation, self.device)
        self.batch_size = min(settings.overfit_batch or experiment.batch_size, len(self.inputs))
        whole_batch = min(experiment.batch_size, len(self.inputs))
        self.steps_per_epoch = count_batches(len(self.inputs), whole_batch, drop_last=not settings.keep_last)
        self.steps = experiment.epochs * self.steps_per_epoch
        if settings.max_steps is not None:
            # If the run repeats a single batch, it can have any number of steps.
            self.steps = settings.max_steps if settings.overfit_batch else min(self.steps, settings.max_steps)
        self.model = experiment.build_model().to(self.device)
        if settings.disable_dropout or settings.overfits:
            disable_dropout(self.model)
        self.optimizer = experiment.build_optimizer(self.model)
        if adapt is not None:
            adapt(self.model, self.optimizer)
        self.scheduler = experiment.build_scheduler(self.optimizer, self.steps)
        self.generators = run_generators(settings.seed)
        self.served = data.validation
        self.made = 0

    def prepare(self, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return a batch as the experiment prepares it for the network."""
        return self.experiment.prepare_batch(inputs, labels, self.generators["augmentation"])

    def train_on(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Make one step of the experiment and of its schedule, on a prepared batch. Return the loss."""
        loss = self.experiment.train_step(self.model, self.optimizer, inputs, labels)
        if self.scheduler is not None:
            self.step_schedule(self.scheduler)
        self.made += 1
        return loss

    def step_schedule(self, scheduler: LRScheduler) -> None:
        """Step the learning-rate schedule after a training step, unless it follows the validation loss of epochs."""
        advance_schedule(scheduler)

    @torch.no_grad()
    def served_accuracy(self, model: nn.Module) -> float:
        """Return the accuracy of the experiment's `predict` on the raw validation examples."""
        raw, labels = self.served.inputs.to(self.device), self.served.labels.to(self.device)
        return (self.experiment.predict(model, raw) == labels).double().mean().item()


def advance_schedule(scheduler: LRScheduler) -> None:
    """Step a schedule by one batch. `ReduceLROnPlateau` does nothing, because it steps once an epoch."""
    if not isinstance(scheduler, ReduceLROnPlateau):
        scheduler.step()


class MinibatchLoader:
    """Iterates over shuffled batches of tensors, epoch after epoch, like a `DataLoader`. `get_dataloader` makes it."""

    def __init__(
        self, inputs: Tensor, labels: Tensor, batch_size: int, generator: torch.Generator, drop_last: bool
    ) -> None:
        self.inputs, self.labels, self.batch_size = inputs, labels, batch_size
        self.generator, self.drop_last = generator, drop_last

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return deterministic_minibatches(
            self.inputs, self.labels, self.batch_size, self.generator, drop_last=self.drop_last
        )

    def __len__(self) -> int:
        return count_batches(len(self.inputs), self.batch_size, drop_last=self.drop_last)


def get_dataloader(
    inputs: Tensor, labels: Tensor, batch_size: int, generator: torch.Generator, *, drop_last: bool = True
) -> MinibatchLoader:
    """Return a loader of shuffled batches `(inputs, labels)`. Each iteration is an epoch with a new order.

    drop_last: whether to drop an incomplete last batch, whose gradient and batch statistics are noisier.
    """
    return MinibatchLoader(inputs, labels, batch_size, generator, drop_last)


def count_batches(examples: int, batch_size: int, *, drop_last: bool = True) -> int:
    """Return the number of batches in an epoch."""
    return examples // batch_size if drop_last else -(-examples // batch_size)


def deterministic_minibatches(
    inputs: Tensor, labels: Tensor, batch_size: int, rng: torch.Generator, *, drop_last: bool = True
) -> Iterator[tuple[Tensor, Tensor]]:
    """Return the shuffled batches `(inputs, labels)` of one epoch. Batches are copies.

    rng: a generator on the CPU, so that the order is the same on every device. Each call of this function draws one
    permutation from it, even if the caller does not read all batches. drop_last: whether to drop an incomplete last
    batch.
    """
    order = torch.randperm(len(inputs), generator=rng).to(inputs.device)
    batches = order.split(batch_size)[: count_batches(len(inputs), batch_size, drop_last=drop_last)]
    return ((inputs[batch], labels[batch]) for batch in batches)


def run_generators(seed: int) -> dict[str, torch.Generator]:
    """Return the random generators of a run: one for the order of the examples, and one for augmentation.

    They are separate, so that an experiment's augmentation never changes the order of the examples.
    """
    return {"order": torch.Generator().manual_seed(seed), "augmentation": torch.Generator().manual_seed(seed + 2**32)}


def input_sheet(inputs: Tensor, labels: Tensor, class_names: Sequence[str]) -> dict[str, Any]:
    """Return the first examples of a batch for the page of the run, with their labels in words.

    Images (B, C, H, W) are in `pixels` as bytes; the range of all values in them is scaled to 0..255. If the inputs are
    not images, `pixels` is empty. Rows of a table (B, F) and texts (B, T) are in `rows` as words. `labels` is null for
    a regression on images.
    """
    names = None
    if labels.dim() == 1 and not labels.is_floating_point():
        names = [class_names[i] if 0 <= i < len(class_names) else str(i) for i in labels[:MOST_IMAGES].tolist()]
    elif labels.dim() <= 2 and inputs.dim() == 2:
        names = [" ".join(_words(row)) for row in labels[:MOST_IMAGES]]
    images = inputs[:MOST_IMAGES].detach().double().cpu()
    if inputs.dim() == 2:
        rows = [_words(row[:MOST_COLUMNS]) for row in inputs[:MOST_IMAGES]]
        return {"shape": list(images.shape), "pixels": "", "rows": rows, "labels": names}
    if images.dim() != 4 or images.shape[1] not in (1, 3):
        return {"shape": list(images.shape), "pixels": "", "labels": names}
    images = images.nan_to_num(0.0, 0.0, 0.0)
    low, high = images.min(), images.max()
    pixels = ((images - low) / (high - low).clamp(min=1e-12) * 255).round().byte()
    encoded = base64.b64encode(pixels.numpy().tobytes()).decode("ascii")
    return {"shape": list(images.shape), "pixels": encoded, "labels": names}


def _words(row: Tensor) -> list[str]:
    """Return the entries of a row as text. Symbols stay unchanged; other numbers have four digits."""
    return [f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.reshape(-1).tolist()]
