"""The files that a finished run leaves beside its log and checkpoint: digest, provenance, result and page."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

import harness
from harness.data import CLASS_NAMES
from harness.data.datasets import Dataset
from harness.doctor.golden import platform_class
from harness.files import sha256_line
from harness.page.run_page import write_run_page
from harness.run.checkpoint import CHECKPOINT
from harness.run.metrics_log import to_strict
from harness.run.provenance import git_commit, harness_hash
from harness.run.settings import RunJob
from harness.trainer import TrainingResult
from harness.workspace import RESULT, source_hash

META = "checkpoint.pt.meta.json"


def write_run_files(job: RunJob, folder: Path, result: TrainingResult, data: Dataset) -> dict[str, Any]:
    """Complete the folder of a run and return what `result.json` holds."""
    checkpoint = (folder / CHECKPOINT).read_bytes()
    (folder / f"{CHECKPOINT}.sha256").write_text(sha256_line(checkpoint, CHECKPOINT), encoding="utf-8")
    _write_json(folder / META, _provenance(job, result, data))
    summary = _summary(job, result, hashlib.sha256(checkpoint).hexdigest(), data)
    _write_json(folder / RESULT, summary)
    compare_with = Path(job.compare_with) if job.compare_with else None
    write_run_page(folder, title=job.title, compare_with=compare_with)
    return summary


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(to_strict(value), indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _summary(job: RunJob, result: TrainingResult, checkpoint_sha256: str, data: Dataset) -> dict[str, Any]:
    last = result.last_epoch
    metric = last["val_accuracy"] if last["val_accuracy"] is not None else last["val_loss"]
    return to_strict(  # type: ignore[no-any-return]
        {
            "seed": job.settings.seed,
            "recipe": job.recipe,
            "run": job.run,
            "checkpoint_path": CHECKPOINT,
            "checkpoint_sha256": checkpoint_sha256,
            "final_train_loss": result.last_batch["loss"],
            "final_val_metric": metric,
            "final_val_loss": last["val_loss"],
            "final_val_accuracy": last["val_accuracy"],
            "steps": result.steps,
            "epochs": result.epochs,
            "first_non_finite_step": result.first_non_finite_step,
            "guardrails": [
                {"step": finding.step, "level": finding.level, "message": finding.message}
                for finding in result.findings
            ],
            "confusion": result.confusion,
            "class_names": None if result.confusion is None else list(CLASS_NAMES[data.name]),
            "status": "finished",
        }
    )


def _provenance(job: RunJob, result: TrainingResult, data: Dataset) -> dict[str, Any]:
    settings = job.settings
    return {
        "format_version": 1,
        "recipe": job.recipe,
        "experiment": job.experiment,
        "run": job.run,
        "seed": settings.seed,
        "command": settings.command(job.recipe, "experiment.py" if job.run == "fixed" else None),
        "git_commit": git_commit(),
        "source_sha256": source_hash(job.source),
        "harness_sha256": harness_hash(),
        "dataset": data.name,
        "dataset_digest": data.digest,
        "epochs": result.epochs,
        "batch_size": result.batch_size,
        "versions": versions(),
        "platform_class": platform_class(settings.numerics, settings.device),
    }


def versions() -> dict[str, str]:
    """Return the versions of what computes a run."""
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "harness": harness.__version__,
    }
