"""Child process of `make bench`: `python benchmarks/loop.py digits_mlp 40` times a loop with recording and without."""

import json
import sys
import tempfile
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from time import perf_counter

import torch

from harness.canonical_setup import canonical_setup
from harness.data.loading import load_dataset
from harness.recipes.recipe import experiment_source
from harness.run.experiment import Experiment, TensorData, load_experiment, tensor_data
from harness.run.guardrails import Guardrails
from harness.run.recorder import LogWriter, Recorder
from harness.run.setup import deterministic_minibatches

SEED = 42
DATASETS = {"digits_mlp": "digits", "shapes_cnn": "shapes"}
# Steps in a round. Rounds are short, so both loops of a round meet the same load of the machine.
STEPS = {"digits_mlp": 20, "shapes_cnn": 8}
WARM_UP = 2  # rounds: the first steps load kernels and lazy modules


def load(name: str) -> tuple[Experiment, TensorData]:
    """Return a healthy experiment and the data set it trains on."""
    path = Path(f"{name}.py")
    return load_experiment(path, experiment_source(name)), tensor_data(load_dataset(DATASETS[name]))


def first_steps(experiment: Experiment, data: TensorData, log_path: Path | None, limit: int) -> float:
    """Train `limit` steps and return the seconds of the loop; with `log_path`, record each batch as a run does."""
    canonical_setup(SEED, numerics="portable")
    (inputs, labels), _ = experiment.load_data(data)
    model = experiment.build_model()
    optimizer = experiment.build_optimizer(model)
    steps = len(inputs) // experiment.batch_size
    scheduler = experiment.build_scheduler(optimizer, steps * experiment.epochs)
    order = torch.Generator().manual_seed(SEED)
    augmentation = torch.Generator().manual_seed(SEED + 2**32)
    guardrails = Guardrails()
    recorder = Recorder(model) if log_path else None
    model.train()
    with (
        log_path.open("w", encoding="utf-8") if log_path else nullcontext() as file,
        LogWriter(file, guardrails.check) if file else nullcontext() as log,
        recorder or nullcontext(),
    ):
        start = perf_counter()
        batches = deterministic_minibatches(inputs, labels, experiment.batch_size, order)
        for step, batch in enumerate(islice(batches, limit)):
            prepared = experiment.prepare_batch(*batch, augmentation)
            loss = experiment.train_step(model, optimizer, *prepared)
            if recorder and log:
                log.batch({"step": step, "epoch": 0}, recorder.measure_batch(loss))
            if scheduler is not None:
                scheduler.step()
        if log:
            log.flush()
        return perf_counter() - start


def measure(name: str, rounds: int, scratch: Path) -> dict[str, list[float]]:
    """Return the seconds of each round, recorded and plain; which of the two goes first alternates."""
    experiment, data = load(name)
    paths = {"recorded": scratch / "metrics.log", "plain": None}
    seconds: dict[str, list[float]] = {kind: [] for kind in paths}
    for index in range(WARM_UP + rounds):
        for kind in sorted(paths, reverse=bool(index % 2)):
            took = first_steps(experiment, data, paths[kind], STEPS[name])
            if index >= WARM_UP:
                seconds[kind].append(took)
    return seconds


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), Path(folder))))
