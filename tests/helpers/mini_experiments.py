"""Miniature experiments that train in milliseconds. As a script, train real recipes in portable numerics."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from harness.data.loading import load_dataset
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import Edit, apply_edits
from harness.run.experiment import Experiment, TensorData, TensorSplit, load_experiment, tensor_data
from harness.run.files import METRICS_LOG
from harness.run.metrics_log import Record, batch_records, epoch_records, read_metrics_log
from harness.run.settings import RunSettings
from harness.run.training import TrainingRun, train

MINI = '''\
"""Ten classes of 6x6 grey images, 40 to train on: five batches an epoch."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from harness.run.schedules import warmup_cosine

EPOCHS = 3
BATCH_SIZE = 8
AUGMENT = False
AMP = False


def load_data(data):
    train = (data.train.images.float() / 255, data.train.labels)
    return train, (data.validation.images.float() / 255, data.validation.labels)


def build_model():
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 10))


def build_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return F.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    outputs = model(inputs)
    accuracy = (outputs.argmax(dim=1) == labels).float().mean()
    return {"val_loss": compute_loss(outputs, labels).item(), "val_accuracy": accuracy.item()}
'''

_STEP = MINI[MINI.index("    optimizer.zero_grad()") : MINI.index("    return loss")]


def edited(source: str, *edits: tuple[str, str]) -> str:
    """Return the source with each (find, replace) applied; each `find` must occur exactly once."""
    return apply_edits(source, [Edit(find=find, replace=replace) for find, replace in edits], where="test")


# Every source of random numbers: dropout (torch), augmentation (its own generator), Python and NumPy.
CHANCE = edited(
    MINI,
    ("AUGMENT = False", "AUGMENT = True"),
    ("nn.ReLU(), ", "nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), "),
    ("    return None\n", "    return warmup_cosine(optimizer, warmup_steps=2, total_steps=total_steps)\n"),
    (
        "    return inputs, labels\n",
        "    if AUGMENT:\n"
        "        mirrored = torch.rand(len(inputs), generator=rng).view(-1, 1, 1, 1) < 0.5\n"
        "        inputs = torch.where(mirrored, inputs.flip(3), inputs)\n"
        "        inputs = inputs + 0.1 * random.random() + 0.1 * np.random.rand()\n"
        "    return inputs, labels\n",
    ),
)

# The scale of this scaler grows every third step, so checkpoints must contain its state.
AMP = edited(
    MINI,
    ("AMP = False", 'AMP = True\n\nscaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=3)'),
    ("SGD(model.parameters(), lr=0.05, momentum=0.9)", "Adam(model.parameters(), lr=0.01, fused=True)"),
    (
        _STEP,
        "    optimizer.zero_grad()\n"
        "    with torch.autocast('cpu', dtype=torch.float16, enabled=AMP):\n"
        "        loss = compute_loss(model(inputs), labels)\n"
        "    scaler.scale(loss).backward()\n"
        "    scaler.step(optimizer)\n"
        "    scaler.update()\n",
    ),
)

AMP_SGD = edited(
    AMP, ("Adam(model.parameters(), lr=0.01, fused=True)", "SGD(model.parameters(), lr=0.05, momentum=0.9)")
)

# The network is a class, and an object of another class counts during the evaluation.
COUNTING = edited(
    MINI,
    (
        "def build_model():\n    return nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 10))\n",
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.hidden = nn.Linear(36, 16)\n"
        "        self.head = nn.Linear(16, 10)\n\n"
        "    def forward(self, x):\n"
        "        x = self.hidden(x.flatten(1)).relu()\n"
        "        return self.head(x)\n\n\n"
        "class Tally:\n"
        "    def __init__(self):\n"
        "        self.total, self.right, self.counted = 0.0, 0, 0\n\n"
        "    def add(self, outputs, labels):\n"
        "        size, right = len(labels), outputs.argmax(dim=1) == labels\n"
        "        self.total += compute_loss(outputs, labels).item() * size\n"
        "        self.right += int(right.sum())\n"
        "        self.counted += size\n\n\n"
        "def build_model():\n"
        "    return Net()\n",
    ),
    (
        "    outputs = model(inputs)\n"
        "    accuracy = (outputs.argmax(dim=1) == labels).float().mean()\n"
        '    return {"val_loss": compute_loss(outputs, labels).item(), "val_accuracy": accuracy.item()}\n',
        "    tally = Tally()\n"
        "    for x, y in zip(inputs.split(8), labels.split(8)):\n"
        "        tally.add(model(x), y)\n"
        '    return {"val_loss": tally.total / tally.counted, "val_accuracy": tally.right / tally.counted}\n',
    ),
)


def train_step(body: str, source: str = MINI) -> str:
    """Return the source with another body of `train_step` before its `return loss`."""
    return edited(source, (_STEP, body))


def mini_data(train: int = 40, validation: int = 20) -> TensorData:
    """Return noisy prototypes of ten classes, 6x6 pixels in grey."""
    rng = torch.Generator().manual_seed(0)
    prototypes = torch.randint(0, 200, (10, 1, 6, 6), generator=rng)

    def split(count: int) -> TensorSplit:
        labels = torch.arange(count) % 10
        noise = torch.randint(0, 56, (count, 1, 6, 6), generator=rng)
        return TensorSplit((prototypes[labels] + noise).to(torch.uint8), labels)

    return TensorData("digits", split(train), split(validation), tuple("0123456789"))


def real_data(dataset: str) -> TensorData:
    """Return an embedded data set."""
    return tensor_data(load_dataset(dataset))


def load(folder: Path, source: str = MINI) -> Experiment:
    """Write the source to the folder, where error messages look up its lines, and load it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "experiment.py"
    path.write_text(source, encoding="utf-8")
    return load_experiment(path, source)


@dataclass(frozen=True)
class Run:
    """A finished run: the result of `train`, and its files."""

    folder: Path
    result: TrainingRun
    experiment: Experiment

    def bytes(self, name: str) -> bytes:
        """Return one file of the run."""
        return (self.folder / name).read_bytes()

    def state(self, name: str = "checkpoint.pt") -> dict[str, Any]:
        """Return a checkpoint, loaded by torch."""
        state: dict[str, Any] = torch.load(self.folder / name, weights_only=True)
        return state

    @property
    def records(self) -> Sequence[Record]:
        """All records of the log."""
        return read_metrics_log(self.folder / METRICS_LOG)

    @property
    def batches(self) -> list[Record]:
        """The records of batches."""
        return batch_records(self.records)

    @property
    def epochs(self) -> list[Record]:
        """The records of epochs."""
        return epoch_records(self.records)


def mini_run(folder: Path, source: str = MINI, *, resume: bool = False, train_size: int = 40, **options: Any) -> Run:
    """Train a miniature experiment in this process. The options are fields of `RunSettings`."""
    experiment = load(folder, source)
    settings = RunSettings(**{"seed": 1, "dataset": "digits", **options})
    result = train(experiment, mini_data(train_size), settings, folder, resume=resume)
    return Run(folder, result, experiment)


def main(folder: Path, recipe_ids: list[str]) -> None:
    """Train the recipes, broken and healthy, on their own data. Train recipes that take only seconds twice."""
    for recipe in map(load_recipe, recipe_ids):
        data, settings = real_data(recipe.dataset), RunSettings(seed=recipe.seed, dataset=recipe.dataset)
        for name, source in ((recipe.id, recipe.broken_source()), (recipe.experiment, recipe.healthy_source())):
            for target in (name, f"{name}-again") if recipe.experiment == "digits_mlp" else (name,):
                if not (folder / target).exists():
                    train(load(folder / target, source), data, settings, folder / target)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
