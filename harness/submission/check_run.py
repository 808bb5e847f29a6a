"""Checks of the files of one run: all are there, complete, and agree with each other."""

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.run.metrics_log import Record, batch_records, epoch_records, from_strict, read_metrics_log
from harness.submission.archive import CHECKPOINT, CHECKSUM, META, METRICS_LOG, RUN_FILES
from harness.submission.check_item import CheckItem, failed, passed
from harness.workspace import EXPERIMENT, RESULT, Workspace, read_source, source_hash


def remedy(workspace: Workspace, run: str) -> str:
    """Return the end of a sentence that says how to make a run again."""
    if run == "fixed":
        return f"{workspace.command('verify')} makes it again"
    folder = workspace.run_folder(run)
    return f"delete {folder}, and {workspace.command('exercise')} makes it again"


def read_object(path: Path) -> Record:
    """Return the JSON object in a file of a run; non-finite numbers become floats.

    Raises `UserError`, a sentence to which the caller adds the remedy, for anything else.
    """
    try:
        value = from_strict(json.loads(path.read_bytes().decode("utf-8")))
    except FileNotFoundError:
        raise UserError(f"{path} is missing") from None
    except (ValueError, RecursionError):
        raise UserError(f"{path} is not JSON") from None
    if not isinstance(value, dict):
        raise UserError(f"{path} holds no JSON object")
    return value


def check_run(workspace: Workspace, run: str) -> list[CheckItem]:
    """Check the files of one run, without making it again."""
    folder = workspace.run_folder(run)
    again = remedy(workspace, run)
    if not workspace.has_run(run):
        command = workspace.command("verify" if run == "fixed" else "exercise")
        message = f"there is no finished run in {folder}: {command} makes it."
        return [failed(f"{run}: files", message, blocks=True)]
    missing = [name for name in RUN_FILES if not (folder / name).is_file()]
    if missing:
        message = f"{folder} has no {', '.join(missing)}: {again}."
        return [failed(f"{run}: files", message, blocks=True)]
    items = [passed(f"{run}: files", f"all {len(RUN_FILES)} files are there.")]
    good = "checkpoint.pt has the recorded SHA-256."
    items.append(_item(f"{run}: checksum", _checksum_faults(folder), good, again))
    good = "it is a run of this exercise."
    items.append(_item(f"{run}: provenance", _provenance_faults(workspace, run), good, again))
    try:
        records = read_metrics_log(folder / METRICS_LOG)
        result = read_object(folder / RESULT)
    except UserError as error:
        return [*items, failed(f"{run}: log", f"{str(error).rstrip('.')}: {again}.", blocks=True)]
    batches, epochs = len(batch_records(records)), len(epoch_records(records))
    whole = f"{batches} batches and {epochs} epochs, as result.json says."
    items.append(_item(f"{run}: log", _log_faults(folder, records, result), whole, again))
    items.append(
        _item(
            f"{run}: diagnostics",
            diagnostic_faults(folder / METRICS_LOG, records),
            "every batch has its loss, gradients and activations.",
            "keep the model's layers and parameters where the optimizer and the recorder see them",
            blocks=False,
        )
    )
    return items


def _item(item: str, faults: Iterator[str], good: str, cure: str, *, blocks: bool = True) -> CheckItem:
    """Return the item for the first fault, if there is one."""
    fault = next(faults, None)
    return passed(item, good) if fault is None else failed(item, f"{fault}: {cure}.", blocks=blocks)


def _checksum_faults(folder: Path) -> Iterator[str]:
    digest = hashlib.sha256((folder / CHECKPOINT).read_bytes()).hexdigest()
    if (folder / CHECKSUM).read_bytes() != f"{digest}  {CHECKPOINT}\n".encode():
        yield f"{folder / CHECKSUM} is not the SHA-256 of {CHECKPOINT}, so one was changed after the run"
    try:
        recorded = read_object(folder / RESULT).get("checkpoint_sha256")
    except UserError as error:
        yield str(error)
    else:
        if recorded != digest:
            yield f"{folder / RESULT} records another SHA-256 than that of {CHECKPOINT}"


def _provenance_faults(workspace: Workspace, run: str) -> Iterator[str]:
    folder = workspace.run_folder(run)
    settings = workspace.settings
    expected = {"recipe": workspace.recipe, "run": run, "seed": settings.seed, "dataset": settings.dataset}
    try:
        meta, result = read_object(folder / META), read_object(folder / RESULT)
        expected["source_sha256"] = source_hash(read_source(folder / EXPERIMENT))
    except UserError as error:
        yield str(error).rstrip(".")
        return
    for key, value in expected.items():
        for name, record in ((META, meta), (RESULT, result)):
            if record.get(key, value) != value or (record is meta and key not in record):
                yield f"{folder / name} says {key} {record.get(key)!r}, and this exercise's is {value!r}"
    for key in ("command", "dataset_digest"):
        if not isinstance(meta.get(key), str):
            yield f"{folder / META} has no {key}"


def _log_faults(folder: Path, records: Sequence[Record], result: Record) -> Iterator[str]:
    """Yield what is wrong with the sequence of the records, or else with what result.json says of them."""
    broken_off = list(shape_faults(folder / METRICS_LOG, records))
    yield from broken_off or _result_faults(folder, records, result)


def shape_faults(log: Path | str, records: Sequence[Record]) -> Iterator[str]:
    """Yield the first place where a step or epoch has no loss, or does not follow the one before to a whole end."""
    step = epoch = batches = 0
    for number, record in enumerate(records, start=1):
        is_batch = "step" in record
        if is_batch and record["step"] != step:
            yield f"{log}, line {number}: step {record['step']} where step {step} belongs"
            return
        if record.get("epoch") != epoch:
            yield f"{log}, line {number}: epoch {record.get('epoch')} where epoch {epoch} belongs"
            return
        if ("loss" if is_batch else "val_loss") not in record:
            yield f"{log}, line {number}: no loss"
            return
        if not is_batch and not batches:
            yield f"{log}, line {number}: epoch {epoch} ends without a batch"
            return
        if is_batch:
            step, batches = step + 1, batches + 1
        else:
            epoch, batches = epoch + 1, 0
    if batches or not epoch:
        yield f"{log} ends within epoch {epoch}"


def _result_faults(folder: Path, records: Sequence[Record], result: Record) -> Iterator[str]:
    losses = [(record["step"], record.get("loss")) for record in batch_records(records)]
    epochs = epoch_records(records)
    last = epochs[-1]
    told = {
        "steps": len(losses),
        "epochs": len(epochs),
        "final_train_loss": losses[-1][1],
        "final_val_loss": last.get("val_loss"),
        "final_val_accuracy": last.get("val_accuracy"),
        "first_non_finite_step": next(
            (step for step, loss in losses if isinstance(loss, float) and not math.isfinite(loss)), None
        ),
    }
    for key, value in told.items():
        if key not in result or not same(result[key], value):
            yield f"{folder / RESULT} says {key} {result.get(key)}, and {METRICS_LOG} {value}"


def same(first: Any, second: Any) -> bool:
    """Say whether two values of a log are the same, a NaN being the same as another."""
    if isinstance(first, float) and isinstance(second, float):
        return first == second or (math.isnan(first) and math.isnan(second))
    return bool(first == second)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def diagnostic_faults(log: Path | str, records: Sequence[Record]) -> Iterator[str]:
    """Yield, for each batch and epoch of a log, the diagnostics that it lacks; `log` names the file."""
    batches = batch_records(records)
    names = set(batches[0].get("grad_mean") or ()) if batches else set()
    for record in batches:
        where = f"{log}, step {record['step']}"
        if not _is_number(record.get("loss")):
            yield f"{where}: no loss"
        means = record.get("grad_mean")
        if not isinstance(means, dict) or not means or set(means) != names:
            yield f"{where}: no gradient mean of every parameter"
        activations = record.get("activations")
        for place in ("first", "last"):
            statistics = activations.get(place) if isinstance(activations, dict) else None
            figures = (
                (statistics.get("mean"), statistics.get("var")) if isinstance(statistics, dict) else (None,)
            )
            if not all(map(_is_number, figures)):
                yield f"{where}: no mean and variance of the {place} layer's activations"
    for record in epoch_records(records):
        if not _is_number(record.get("val_loss")) or "val_accuracy" not in record:
            yield f"{log}, epoch {record.get('epoch')}: no validation loss and accuracy"
