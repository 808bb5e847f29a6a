"""The training loop: set the seeds, call the experiment's functions, record batches, and write checkpoints."""

import copy
import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim.lr_scheduler import ReduceLROnPlateau

from harness.errors import UserError
from harness.files import write_whole
from harness.run.checkpoint import load_checkpoint, restore_rng_states, rng_states, save_checkpoint
from harness.run.details import Details, confusion_matrix, cut_details
from harness.run.evaluation import evaluate_in_eval_mode, largest_change, statistics_of
from harness.run.experiment import Experiment, TensorData
from harness.run.files import CHECKPOINT, INPUT_SHEET, METRICS_LOG
from harness.run.guardrails import GuardrailFinding, Guardrails
from harness.run.metrics_log import Record, batch_records, read_metrics_log
from harness.run.recorder import BatchMeasurements, LogWriter, Recorder
from harness.run.settings import DEFAULT_POLICY, GuardrailPolicy, RunSettings
from harness.run.setup import TrainingSetup, get_dataloader, input_sheet
from harness.run.step_guard import StepGuard

BEST_CHECKPOINT = "best.pt"
ShowProgress = Callable[[int, int, float], None]


def train(
    experiment: Experiment,
    data: TensorData,
    settings: RunSettings,
    folder: Path,
    *,
    resume: bool = False,
    progress: ShowProgress | None = None,
    policy: GuardrailPolicy = DEFAULT_POLICY,
    instruments: bool = False,
) -> "TrainingRun":
    """Make a whole training run and write `metrics.log`, `checkpoint.pt` and `best.pt` into `folder`.

    `checkpoint.pt` is written after every epoch. If `resume`, the run continues from `checkpoint.pt`, and its files get
    the same bytes as if it had never stopped. `progress(step, steps, loss)` is called after every batch.

    policy: how the run reacts to findings of the guardrails. instruments: whether to write `details.log` and,
    at the first step with a value that is not finite, a `.badstep` file.

    Returns the finished run. Raises `UserError` for a mistake in the experiment, and for settings that do not fit the
    experiment, and `GuardrailStop` if a guardrail ends the run.
    """
    return TrainingRun(experiment, data, settings, folder, progress, policy, instruments).run(resume)


class TrainingRun(TrainingSetup):
    """One training run: it loops over the batches and writes the files.

    `position` contains the current epoch and step, and the best metric.
    """

    def __init__(
        self,
        experiment: Experiment,
        data: TensorData,
        settings: RunSettings,
        folder: Path,
        progress: ShowProgress | None,
        policy: GuardrailPolicy = DEFAULT_POLICY,
        instruments: bool = False,
    ) -> None:
        super().__init__(experiment, data, settings)
        self.folder = folder
        self.progress = progress or (lambda step, steps, loss: None)
        self.policy, self.guardrails = policy, Guardrails(policy)
        self.details = Details(lambda: int(self.position["step"])) if instruments else None
        self.guard = StepGuard(policy, folder if instruments else None, lambda: int(self.position["step"]))
        self.findings: list[GuardrailFinding] = []
        self.position: dict[str, Any] = {"epoch": 0, "step": 0, "best": None}
        self.first_non_finite_step: int | None = None
        self.last_batch: Record = {}
        self.last_epoch: Record = {}

    def run(self, resume: bool) -> "TrainingRun":
        """Make the run, or continue it if `resume`; see `train`."""
        if resume and (self.folder / CHECKPOINT).exists():
            self._restore()
        log_path = self.folder / METRICS_LOG
        self.guard.add(self.model)
        continues = self.position["step"] > 0
        with (
            log_path.open("a" if continues else "w", encoding="utf-8") as file,
            self.details.install(self.folder, continues=continues) if self.details else nullcontext(),
            LogWriter(file, self._note) as log,
            Recorder(self.model, clip_norm=self.settings.clip_norm, before_step=self._before_step) as recorder,
            self.guard.install(),
        ):
            if self.details:
                self.details.add(self.model)
            while self.position["step"] < self.steps:
                self._epoch(recorder, log)
        return self

    def _epoch(self, recorder: Recorder, log: LogWriter) -> None:
        self.model.train()
        left = self.steps - self.position["step"]
        for inputs, labels in itertools.islice(self.batches(self.generators["order"]), left):
            at = {"step": self.position["step"], "epoch": self.position["epoch"]}
            measured = self.step(recorder, inputs, labels)
            log.batch(at, measured)
            self.progress(self.position["step"], self.steps, measured.loss)
        self.last_epoch = self.evaluate(last=self.position["step"] == self.steps)
        log.epoch(self.last_epoch)
        if self.details:
            self.details.end_epoch()
        self.position["epoch"] += 1
        self._save()

    def batches(self, order: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        """Return the batches of one epoch, to which `prepare_batch` has not been applied yet."""
        if self.settings.overfit_batch:
            batch = self.inputs[: self.batch_size], self.labels[: self.batch_size]
            return itertools.repeat(batch, self.steps_per_epoch)
        return iter(
            get_dataloader(self.inputs, self.labels, self.batch_size, order, drop_last=not self.settings.keep_last)
        )

    def step(self, recorder: Recorder, inputs: Tensor, labels: Tensor) -> BatchMeasurements:
        """Prepare a batch, make a training step on it, and return the measurements."""
        inputs, labels = self.prepare(inputs, labels)
        if self.position["step"] == 0:
            sheet = input_sheet(inputs, labels, self.class_names)
            write_whole({self.folder / INPUT_SHEET: json.dumps(sheet).encode()}, durable=False)
        self.guard.batch = inputs, labels
        measured = recorder.measure_batch(self.train_on(inputs, labels))
        if self.details:
            self.details.end_batch()
        self.findings = self.guard.after_batch(measured) + self.findings  # as in a run that was not resumed
        self.position["step"] += 1
        return measured

    def _before_step(self, optimizer: torch.optim.Optimizer, measure: Callable[[], BatchMeasurements]) -> None:
        if self.details:
            self.details.before_step(optimizer)
        if self.policy.mode != "off":
            self.guard.before_step(optimizer, measure)

    def _note(self, record: Record) -> None:
        self.last_batch = record
        if self.details:
            self.details.write(record)
        if self.first_non_finite_step is None and not math.isfinite(record["loss"]):
            self.first_non_finite_step = record["step"]
        self.findings += self.guardrails.check(record)

    def evaluate(self, *, last: bool) -> Record:
        """Call the experiment's `evaluate`, restore the random states, and return the record of the epoch.

        After the last epoch, the evaluation is repeated with the same weights, and the harness also evaluates them in
        eval mode.
        """
        generators = rng_states()
        before = [buffer.clone() for buffer in statistics_of(self.model)]
        record: Record = {"epoch": self.position["epoch"]}
        metrics = self.experiment.evaluate(self.model, *self.validation)
        record |= metrics
        record["eval_buffer_change"] = largest_change(before, statistics_of(self.model))
        if isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step(metrics["val_loss"] if metrics["val_loss"] is not None else math.nan)
        if last:
            again = self.experiment.evaluate(copy.deepcopy(self.model), *self.validation)
            record |= {f"{name}_repeated": value for name, value in again.items()}
            evaluated = copy.deepcopy(self.model)  # in eval mode after the next line
            record |= evaluate_in_eval_mode(self.experiment, evaluated, *self.validation)
            if self.details and (counts := confusion_matrix(evaluated, *self.validation)) is not None:
                classes = list(self.class_names)
                self.details.add_confusion({"epoch": record["epoch"], "confusion": counts, "classes": classes})
            if self.experiment.serves:
                record["val_accuracy_served"] = self.served_accuracy(copy.deepcopy(self.model))
        restore_rng_states(generators)
        return record

    def _state(self) -> dict[str, Any]:
        """Return the whole state that the run needs to continue."""
        return {
            "format_version": 1,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "scaler": {name: scaler.state_dict() for name, scaler in self.experiment.scalers().items()},
            "generators": {name: generator.get_state() for name, generator in self.generators.items()},
            "rng": rng_states(),
            **self.position,
        }

    def _save(self) -> None:
        metric = self.last_epoch["val_accuracy"]
        score = metric if metric is not None else -self.last_epoch["val_loss"]
        best = self.position["best"]
        improved = best is None or math.isnan(best) or score > best
        if improved:
            self.position["best"] = score
        data = save_checkpoint(self.folder / CHECKPOINT, self._state())
        if improved:
            write_whole({self.folder / BEST_CHECKPOINT: data}, durable=False)

    def _restore(self) -> None:
        state = load_checkpoint(self.folder / CHECKPOINT)
        try:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            if self.scheduler is not None:
                self.scheduler.load_state_dict(state["scheduler"])
            for name, scaler in self.experiment.scalers().items():
                scaler.load_state_dict(state["scaler"][name])
        except (RuntimeError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = str(error).splitlines()[0]
            raise UserError(
                f"The checkpoint does not fit this experiment ({reason[:160]}): start the run again without --resume."
            ) from None
        for name, generator in self.generators.items():
            generator.set_state(state["generators"][name])
        restore_rng_states(state["rng"])
        self.position = {key: state[key] for key in self.position}
        self.made = self.position["step"]
        if self.details:
            cut_details(self.folder, steps=self.position["step"], epochs=self.position["epoch"])
        records = _truncate_log(self.folder / METRICS_LOG, epochs=self.position["epoch"])
        for record in batch_records(records):
            self._note(record)
            self.guard.recall(record)
        self.last_epoch = records[-1]


def _truncate_log(path: Path, *, epochs: int) -> Sequence[Record]:
    """Remove the records that were written after the checkpoint, and return the remaining records."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    kept, seen = [], 0
    for line in text.splitlines(keepends=True):
        if seen == epochs:
            break
        kept.append(line)
        seen += '"step"' not in line
    if seen < epochs:
        raise UserError(f"{path} has fewer epochs than its checkpoint: start the run again without --resume.")
    write_whole({path: "".join(kept).encode()}, durable=False)
    return read_metrics_log(path)
