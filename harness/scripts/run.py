"""Run a script: set the seeds, record its updates and figures, and keep its checkpoint.

The script runs as the main program of this process. A killed run continues from the script's own checkpoint if the
script has the option `--resume`; then its files get the same bytes as if it had never stopped.
"""

import json
import math
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from harness.canonical_setup import canonical_setup
from harness.errors import UserError
from harness.files import write_whole
from harness.run.details import Details, cut_details
from harness.run.experiment import HarnessFault, mistake
from harness.run.files import CHECKPOINT, INPUT_SHEET, METRICS_LOG
from harness.run.guardrails import GuardrailFinding, Guardrails
from harness.run.metrics_log import Record, batch_records, epoch_records, parse_log
from harness.run.recorder import BatchMeasurements, LogWriter
from harness.run.settings import DEFAULT_POLICY, GuardrailPolicy, RunSettings
from harness.run.setup import input_sheet
from harness.run.step_guard import StepGuard
from harness.run.training import ShowProgress
from harness.scripts.numerics import apply_script_numerics
from harness.scripts.ranks import SecondRank
from harness.scripts.recording import Recording
from harness.scripts.script import CHECKPOINT as SCRIPT_CHECKPOINT
from harness.scripts.script import Script
from harness.scripts.storage import POSITIONS, LogPlace, Storage
from harness.scripts.workers import EmulatedWorkers

OUT = "out"
_SECOND = "rank1"


def run_script(
    script: Script,
    data: Path,
    settings: RunSettings,
    folder: Path,
    *,
    resume: bool = False,
    emulate: bool = False,
    progress: ShowProgress | None = None,
    policy: GuardrailPolicy = DEFAULT_POLICY,
    instruments: bool = False,
) -> "ScriptRun":
    """Make a whole run of a script and write `metrics.log` and `checkpoint.pt` into `folder`.

    data: the file for `--data`. The script writes into `folder`/out. If `resume`, the run continues from the script's
    checkpoint. emulate: emulate the workers of loaders in this process. `progress(step, 0, loss)` is called after every
    update; the number of all updates is unknown. policy, instruments: as for `harness.run.training.train`.

    Returns the finished run. Raises `UserError` for a mistake in the script, and for settings that a script does not
    have, and `GuardrailStop` if a guardrail ends the run.
    """
    return ScriptRun(script, settings, folder, emulate, progress, policy, instruments).run(data, resume)


def evaluate_checkpoint(script: Script, data: Path, out: Path) -> Record:
    """Return the validation figures that the script logs for the checkpoint in the folder `out`.

    Raises `UserError` if the script fails, or if it does not evaluate.
    """
    figures: Record = {}

    def log(values: Mapping[str, Any], *, step: int | None = None) -> None:
        figures.update({name: _number(name, value) for name, value in values.items() if name.startswith("val_")})

    apply_script_numerics()
    with SecondRank(script.ranks), module_track(log), main_program():
        call_script(script, ["--data", str(data), "--out", str(out), "--seed", "0", "--evaluate"])
    if not figures:
        raise UserError(f"{script.path} logs no validation metric with --evaluate.")
    return figures


def call_script(script: Script, arguments: list[str]) -> None:
    """Run the script, and turn its mistakes into `UserError`."""
    try:
        script.run(arguments)
    except (HarnessFault, KeyboardInterrupt, UserError):
        raise
    except (Exception, SystemExit) as error:
        if not (isinstance(error, SystemExit) and not error.code):
            raise UserError(mistake(error, script.path, "the script")) from error


class ScriptRun:
    """One run of a script, with what `harness.run.training.TrainingRun` has, too, for the files of a run."""

    def __init__(
        self,
        script: Script,
        settings: RunSettings,
        folder: Path,
        emulate: bool,
        progress: ShowProgress | None,
        policy: GuardrailPolicy,
        instruments: bool,
    ) -> None:
        self._script, self._settings, self._folder, self._emulate = script, settings, folder, emulate
        self._progress = progress or (lambda step, steps, loss: None)
        self._guardrails = Guardrails(policy)
        self.findings: list[GuardrailFinding] = []
        self.position = {"step": 0, "epoch": 0}
        self.first_non_finite_step: int | None = None
        self.last_batch: Record = {}
        self.last_epoch: Record = {}
        self.batch_size = 0
        self._guard = StepGuard(policy, folder if instruments else None, lambda: self.position["step"])
        self._details = Details(lambda: self.position["step"]) if instruments else None
        self._recording = Recording(self._update, self._guard, self._details)

    def run(self, data: Path, resume: bool) -> "ScriptRun":
        """Make the run, or continue it if `resume`; see `run_script`."""
        _refuse(self._settings)
        out = self._folder / OUT
        out.mkdir(exist_ok=True)
        continues = resume and self._script.can_resume and (out / SCRIPT_CHECKPOINT).is_file()
        arguments = ["--data", str(data), "--out", str(out), "--seed", str(self._settings.seed)]
        if continues:
            arguments.append("--resume")
        else:
            (self._folder / POSITIONS).unlink(missing_ok=True)
        canonical_setup(self._settings.seed, numerics=self._settings.numerics)
        apply_script_numerics()
        with SecondRank(self._script.ranks) as pair, ExitStack() as stack:
            if pair.rank:
                self._become_second()
            log_path = self._folder / METRICS_LOG
            self._file = stack.enter_context(log_path.open("a" if continues else "w", encoding="utf-8"))
            if self._details:
                stack.enter_context(self._details.install(self._folder, continues=continues))
            self._log = stack.enter_context(LogWriter(self._file, self._note))
            stack.enter_context(self._guard.install())
            stack.enter_context(self._recording)
            storage = Storage(self._folder, self._position, self._cut_log if continues else None, saves=not pair.rank)
            stack.enter_context(storage.install())
            stack.enter_context(module_track(self._figures))
            stack.enter_context(watch_loaders(self._batch, self._emulate))
            stack.enter_context(main_program())
            call_script(self._script, arguments)
        shutil.rmtree(self._folder / _SECOND, ignore_errors=True)
        if not self.last_batch:
            raise UserError(f"{self._script.path} made no update of an optimizer: look at its loop.")
        if not (out / SCRIPT_CHECKPOINT).is_file():
            raise UserError(f"{self._script.path} wrote no {SCRIPT_CHECKPOINT} into the folder of --out.")
        (self._folder / POSITIONS).unlink(missing_ok=True)
        write_whole({self._folder / CHECKPOINT: (out / SCRIPT_CHECKPOINT).read_bytes()}, durable=False)
        return self

    def _become_second(self) -> None:
        """Write the files of the second process into a folder of their own, which the first one deletes."""
        self._folder /= _SECOND
        self._folder.mkdir(exist_ok=True)
        self._progress = lambda step, steps, loss: None

    def _update(self, measured: BatchMeasurements) -> None:
        if self._details:
            self._details.end_batch()
        self._log.batch(dict(self.position), measured)
        self.findings = self._guard.after_batch(measured) + self.findings  # as in a run that was not resumed
        self.position["step"] += 1
        self._progress(self.position["step"], 0, measured.loss)

    def _note(self, record: Record) -> None:
        self.last_batch = record
        if self._details:
            self._details.write(record)
        if self.first_non_finite_step is None and not math.isfinite(record["loss"]):
            self.first_non_finite_step = record["step"]
        self.findings += self._guardrails.check(record)

    def _figures(self, values: Mapping[str, Any], *, step: int | None = None) -> None:
        """Write the figures of a validation into the log. Other figures are the script's own affair."""
        figures = {name: _number(name, value) for name, value in values.items() if name.startswith("val_")}
        if not figures:
            return
        self.last_epoch = {"epoch": self.position["epoch"], "val_loss": None, "val_accuracy": None, **figures}
        self._log.epoch(self.last_epoch)
        self.position["epoch"] += 1

    def _position(self, digest: str) -> LogPlace:
        self._log.flush()
        if self._details:
            self._details.end_epoch()  # a resumed run continues after these lines
        return LogPlace(digest, self._file.tell(), self.position["step"], self.position["epoch"])

    def _cut_log(self, found: LogPlace | None) -> None:
        """Cut the log to the place of the checkpoint that the script loads, and note the records before it again."""
        size = found.log_bytes if found else 0
        path = self._folder / METRICS_LOG
        records = parse_log(path.read_bytes()[:size].decode(), str(path))
        self._file.truncate(size)
        cut_details(self._folder, steps=found.updates if found else 0, epochs=found.evaluations if found else 0)
        for record in batch_records(records):
            self._note(record)
            self._guard.recall(record)
        self.last_epoch = next(reversed(epoch_records(records)), {})
        self.position = {"step": found.updates if found else 0, "epoch": found.evaluations if found else 0}

    def _batch(self, batch: Any) -> None:
        """Write the page's sheet of inputs from the first batch of tensors. Each batch is passed to the guard."""
        if not torch.is_grad_enabled():
            return
        found = [part for part in parts_of(batch) if isinstance(part, Tensor) and part.dim()]
        if found:
            self._guard.batch = found
        if self.batch_size or not found:
            return
        self.batch_size = len(found[0])
        labels = found[1] if len(found) > 1 and len(found[1]) == len(found[0]) else torch.zeros(len(found[0]), 0)
        sheet = input_sheet(found[0], labels, ())
        write_whole({self._folder / INPUT_SHEET: json.dumps(sheet).encode()}, durable=False)


def _refuse(settings: RunSettings) -> None:
    """Raise `UserError` for a setting that only experiments with functions have."""
    for name in ("epochs", "batch_size", "max_steps", "overfit_batch", "overfit_examples", "clip_norm"):
        if getattr(settings, name) is not None:
            option = name.replace("_", "-")
            raise UserError(f"This experiment is a script, which has no --{option}: change its constants instead.")
    for name in ("disable_augment", "disable_dropout", "disable_amp", "verify", "keep_last"):
        if getattr(settings, name):
            option = name.replace("_", "-")
            raise UserError(f"This experiment is a script, which has no --{option}: edit the script instead.")


def _number(name: str, value: Any) -> float | None:
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    if value is not None and not isinstance(value, int | float):
        raise UserError(f"track.log got {type(value).__name__} as {name!r}: give a number.")
    return None if value is None else float(value)


def parts_of(batch: Any) -> Iterator[Any]:
    """Yield the parts of a batch: a tensor, a sequence or a mapping."""
    if isinstance(batch, Mapping):
        batch = tuple(batch.values())
    if isinstance(batch, list | tuple):
        for part in batch:
            yield from parts_of(part)
    else:
        yield batch


@contextmanager
def module_track(log: Callable[..., None]) -> Iterator[None]:
    """Let the script import a module `track` whose `log` writes into the log of the run."""
    module, before = ModuleType("track"), sys.modules.get("track")
    vars(module)["log"] = log
    sys.modules["track"] = module
    try:
        yield
    finally:
        del sys.modules["track"]
        if before is not None:
            sys.modules["track"] = before


@contextmanager
def watch_loaders(note: Callable[[Any], None], emulate: bool) -> Iterator[None]:
    """Pass each batch of each loader to `note`, and emulate workers if this process may not fork."""
    iterate = DataLoader.__iter__

    def batches(loader: DataLoader[Any]) -> Any:
        return note_batches(EmulatedWorkers(loader) if emulate and loader.num_workers else iterate(loader))

    def note_batches(found: Iterator[Any]) -> Iterator[Any]:
        for batch in found:
            note(batch)
            yield batch

    DataLoader.__iter__ = batches  # type: ignore[method-assign]
    try:
        yield
    finally:
        DataLoader.__iter__ = iterate  # type: ignore[method-assign]


@contextmanager
def main_program() -> Iterator[None]:
    """Restore the main module and the arguments of this process at the end."""
    main, arguments = sys.modules["__main__"], sys.argv
    try:
        yield
    finally:
        sys.modules["__main__"], sys.argv = main, arguments
