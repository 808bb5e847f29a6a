"""A child process that `make bench` starts with the environment variables for portable numerics.

`python -m benchmarks.loop digits_mlp 40` measures the first steps of a training loop with and without recording, in 40
rounds. `python -m benchmarks.loop training huge_lr` measures the whole training of a recipe, after a warm-up.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter

import torch

from benchmarks.measure import interleaved
from harness.canonical_setup import apply_numerics, canonical_setup
from harness.data.loading import load_dataset
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import experiment_source
from harness.run.details import Details
from harness.run.experiment import Experiment, TensorData, load_experiment, tensor_data
from harness.run.guardrails import Guardrails
from harness.run.metrics_log import Record
from harness.run.recorder import BatchMeasurements, LogWriter, Recorder
from harness.run.settings import DEFAULT_POLICY, RunSettings
from harness.run.setup import deterministic_minibatches
from harness.run.step_guard import StepGuard
from harness.run.training import train

SEED = 42
DATASETS = {"digits_mlp": "digits", "shapes_cnn": "shapes"}
# The number of steps in a round. Rounds are short, so that the load of the machine is equal for both loops in a round.
STEPS = {"digits_mlp": 20, "shapes_cnn": 8}
WARM_UP = 2  # rounds that are not measured, because the first steps load kernels and modules


def load(name: str) -> tuple[Experiment, TensorData]:
    """Return a healthy experiment and the data set on which it trains."""
    path = Path(f"{name}.py")
    return load_experiment(path, experiment_source(name)), tensor_data(load_dataset(DATASETS[name]))


def first_steps(experiment: Experiment, data: TensorData, log_path: Path | None, limit: int) -> float:
    """Make `limit` training steps and return their seconds. With `log_path`, record each batch as a run does."""
    canonical_setup(SEED, numerics="portable")
    (inputs, labels), _ = experiment.load_data(data)
    model = experiment.build_model()
    optimizer = experiment.build_optimizer(model)
    steps = len(inputs) // experiment.batch_size
    scheduler = experiment.build_scheduler(optimizer, steps * experiment.epochs)
    order = torch.Generator().manual_seed(SEED)
    augmentation = torch.Generator().manual_seed(SEED + 2**32)
    guardrails = Guardrails()
    made = 0
    details = Details(lambda: made) if log_path else None
    guard = StepGuard(DEFAULT_POLICY, log_path.parent if log_path else None, lambda: made)
    recorder: Recorder | None = None

    def before_step(optimizer: torch.optim.Optimizer, measure: Callable[[], BatchMeasurements]) -> None:
        assert details
        details.before_step(optimizer)
        guard.before_step(optimizer, measure)

    def note(record: Record) -> None:
        assert details
        details.write(record)
        guardrails.check(record)

    if log_path:
        recorder = Recorder(model, before_step=before_step)
        guard.add(model)
    model.train()
    with (
        log_path.open("w", encoding="utf-8") if log_path else nullcontext() as file,
        details.install(log_path.parent, continues=False) if details and log_path else nullcontext(),
        LogWriter(file, note) if file else nullcontext() as log,
        recorder or nullcontext(),
        guard.install(),
    ):
        if details:
            details.add(model)
        start = perf_counter()
        batches = deterministic_minibatches(inputs, labels, experiment.batch_size, order)
        for step, batch in enumerate(islice(batches, limit)):
            prepared = experiment.prepare_batch(*batch, augmentation)
            loss = experiment.train_step(model, optimizer, *prepared)
            if recorder and log and details:
                measured = recorder.measure_batch(loss)
                details.end_batch()
                guard.after_batch(measured)
                log.batch({"step": step, "epoch": 0}, measured)
                made += 1
            if scheduler is not None:
                scheduler.step()
        if log:
            log.flush()
        return perf_counter() - start


def time_recording(name: str, rounds: int, scratch: Path) -> dict[str, list[float]]:
    """Return the seconds of each round, with recording and without."""
    steps = partial(first_steps, *load(name), limit=STEPS[name])
    kinds = {"recorded": partial(steps, scratch / "metrics.log"), "plain": partial(steps, None)}
    return interleaved(kinds, rounds, WARM_UP)


def time_training(recipe_id: str, scratch: Path) -> float:
    """Return the median time in seconds of three whole runs of a broken experiment, after one warm-up run."""
    recipe = load_recipe(recipe_id)
    data = tensor_data(load_dataset(recipe.dataset))
    apply_numerics("portable", "cpu")
    seconds = []
    for seed in range(4):
        experiment = load_experiment(Path("experiment.py"), recipe.broken_source())
        folder = scratch / str(seed)
        folder.mkdir()
        start = perf_counter()
        train(experiment, data, RunSettings(seed=seed, dataset=recipe.dataset), folder)
        seconds.append(perf_counter() - start)
    return median(seconds[1:])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1] == "training":
            print(time_training(sys.argv[2], Path(folder)))
        else:
            print(json.dumps(time_recording(sys.argv[1], int(sys.argv[2]), Path(folder))))
