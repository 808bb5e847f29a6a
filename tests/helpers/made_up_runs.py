"""Make folders of runs and whole workspaces with plausible files, without training."""

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.run.metrics_log import to_strict
from harness.run.settings import RunSettings
from harness.workspace.workspace import Workspace, create_workspace

MLP = ("1.weight", "1.bias", "3.weight", "3.bias")
CNN = tuple(
    f"{layer}.{kind}"
    for layer in ("features.0", "features.1", "features.4", "features.5", "head.0", "head.3")
    for kind in ("weight", "bias")
)
DIGITS = [str(digit) for digit in range(10)]


def make_run(
    folder: Path,
    *,
    run: str = "broken",
    parameters: Sequence[str] = MLP,
    epochs: int = 5,
    steps_per_epoch: int = 40,
    explode_at: int | None = None,
    regression: bool = False,
    channels: int = 1,
    class_names: Sequence[str] = DIGITS,
) -> Path:
    """Write a run's folder and return it. From step `explode_at` on, its numbers grow and become NaN."""
    folder.mkdir(parents=True, exist_ok=True)
    records: list[dict[str, Any]] = []
    for epoch in range(epochs):
        steps = range(epoch * steps_per_epoch, (epoch + 1) * steps_per_epoch)
        records += [_batch(step, epoch, parameters, explode_at) for step in steps]
        loss = math.nan if explode_at is not None else 0.25 + 0.4 * math.exp(-epoch)
        accuracy = None if regression else 0.1 if explode_at is not None else 0.95 - 0.12 * math.exp(-epoch)
        records.append({"epoch": epoch, "val_loss": loss, "val_accuracy": accuracy, "eval_buffer_change": 0.0})
    for suffix in ("repeated", "eval_mode"):
        records[-1] |= {f"val_loss_{suffix}": loss, f"val_accuracy_{suffix}": accuracy}
    write_log(folder, records)
    common = {"seed": 42, "recipe": "huge_lr", "run": run, "epochs": epochs}
    findings = [{"step": explode_at, "level": "hard", "message": "the loss is not finite"}]
    result = {
        **common,
        "checkpoint_path": "checkpoint.pt",
        "checkpoint_sha256": "ab" * 32,
        "final_train_loss": records[-2]["loss"],
        "final_val_metric": loss if regression else accuracy,
        "final_val_loss": loss,
        "final_val_accuracy": accuracy,
        "steps": epochs * steps_per_epoch,
        "first_non_finite_step": explode_at,
        "guardrails": [] if explode_at is None else findings,
        "status": "finished",
    }
    write_json(folder / "result.json", to_strict(result))
    settings = RunSettings(seed=42, dataset="digits")
    machine = {"architecture": "x86_64", "numerics": "portable", "device": "cpu", "torch": "2.13.0"}
    provenance = {
        **common,
        "format_version": 1,
        "experiment": "digits_mlp",
        "command": settings.command("huge_lr", "experiment.py" if run == "fixed" else None),
        "git_commit": "0123456789abcdef0123456789abcdef01234567",
        "source_sha256": ("c4" if run == "fixed" else "9e") * 32,
        "harness_sha256": "5d" * 32,
        "dataset": "digits",
        "dataset_digest": "71" * 32,
        "batch_size": 64,
        "versions": {"python": "3.11.4", "torch": "2.13.0", "numpy": "2.4.6"},
        "platform_class": {**machine, "golden": True},
    }
    write_json(folder / "checkpoint.pt.meta.json", provenance)
    side = 28 if channels == 1 else 32
    pixels = bytes(index % 251 for index in range(24 * channels * side * side))
    labels = None if regression else [class_names[index % len(class_names)] for index in range(24)]
    sheet = {"shape": [24, channels, side, side], "pixels": base64.b64encode(pixels).decode(), "labels": labels}
    write_json(folder / "inputs.json", sheet)
    return folder


def write_log(folder: Path, records: Sequence[dict[str, Any]]) -> None:
    """Write the records as metrics.log."""
    lines = (json.dumps(to_strict(record), allow_nan=False) + "\n" for record in records)
    (folder / "metrics.log").write_text("".join(lines), encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """Write strict JSON."""
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _batch(step: int, epoch: int, parameters: Sequence[str], explode_at: int | None) -> dict[str, Any]:
    loss, var = (0.06 + 2.24 * math.exp(-step / 25)) * (1.0 + 0.2 * math.sin(step)), 0.5 + 0.01 * step
    if explode_at is not None:
        alive = step < explode_at
        loss, var = (2.3 * 10.0 ** (step * 1.6), 0.5 * 30.0**step) if alive else (math.nan, math.nan)
    norms = {name: loss * (1 + index / 4) for index, name in enumerate(parameters)}
    return {
        "step": step,
        "epoch": epoch,
        "loss": loss,
        "lr": 0.1 if explode_at is None else 10.0,
        "grad_norm": math.hypot(*norms.values()),
        "grad_mean": {name: norm / 1000 for name, norm in norms.items()},
        "grad_norm_by_parameter": norms,
        "grad_zero_fraction": min(1.0, 0.35 + 0.0005 * step),
        "stale_grad_ratio": 0.0,
        "optimizer_steps": 1,
        "activations": {"first": {"mean": -0.1 * var, "var": var}, "last": {"mean": 0.02 * var, "var": 3 * var}},
    }


BROKEN = "def build_optimizer(model):\n    return SGD(model.parameters(), lr=10.0)\n"
FIXED = BROKEN.replace("10.0", "0.1")
REPORT = """\
---
diagnosis:
  - cause: huge_lr
    where: build_optimizer
    first_wrong: {signal: loss, step: 1, value: %(first_wrong)s}
ruled_out:
  - {cause: loss_sum, signal: loss, step: 0, value: %(loss)s}
  - {cause: forgotten_eval, signal: eval_buffer_change, epoch: 1, value: 0}
evidence:
  - {run: broken, signal: loss, step: 0, value: %(loss)s}
  - {run: fixed, signal: val_accuracy, epoch: 1, value: %(accuracy)s}
---

# Symptom

The loss explodes:

```
loss %(loss)s
```

# Root cause

The learning rate was a hundred times too large.

# Fix

I put it right.

# Verification

`val_accuracy` is %(accuracy)s at the end.
"""


def make_workspace(work: Path) -> Workspace:
    """Return a workspace without problems: both runs are complete, and the report is written."""
    workspace = create_workspace(work, "huge_lr", BROKEN, RunSettings(seed=42, dataset="digits"))
    workspace.experiment.write_text(FIXED)
    complete_run(workspace.run_folder("broken"), "broken", BROKEN, explode_at=3)
    complete_run(workspace.run_folder("fixed"), "fixed", FIXED)
    broken, fixed = (read_lines(workspace, run) for run in ("broken", "fixed"))
    figures = {
        "loss": f"{broken[0]['loss']:.3f}",
        "first_wrong": broken[1]["loss"],
        "accuracy": f"{fixed[-1]['val_accuracy']:.2f}",
    }
    workspace.report.write_text(REPORT % figures)
    return workspace


def complete_run(folder: Path, run: str, source: str, *, explode_at: int | None = None) -> Path:
    """Write every file of a run with 2 epochs of 6 batches."""
    make_run(folder, run=run, epochs=2, steps_per_epoch=6, explode_at=explode_at)
    (folder / "checkpoint.pt").write_bytes(b"weights of " + run.encode() * 1000)
    (folder / "best.pt").write_bytes(b"stays at home")
    (folder / "experiment.py").write_text(source)
    (folder / "run.html").write_text("<!doctype html>")
    seal(folder)
    return folder


def seal(folder: Path) -> None:
    """Update the digests in the other files of the run."""
    digest = hashlib.sha256((folder / "checkpoint.pt").read_bytes()).hexdigest()
    (folder / "checkpoint.pt.sha256").write_text(f"{digest}  checkpoint.pt\n")
    change_json(folder / "result.json", checkpoint_sha256=digest)
    source = (folder / "experiment.py").read_bytes()
    change_json(folder / "checkpoint.pt.meta.json", source_sha256=hashlib.sha256(source).hexdigest())


def change_json(path: Path, **changes: Any) -> None:
    """Change keys of a JSON object in a file."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def read_lines(workspace: Workspace, run: str) -> list[Any]:
    """Return the records of a run's log."""
    text = (workspace.run_folder(run) / "metrics.log").read_text()
    return [json.loads(line) for line in text.splitlines()]


def write_lines(workspace: Workspace, run: str, records: list[Any]) -> None:
    """Write the records as a run's log."""
    text = "".join(json.dumps(record) + "\n" for record in records)
    (workspace.run_folder(run) / "metrics.log").write_text(text)
