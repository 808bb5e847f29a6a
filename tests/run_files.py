"""Makes whole workspaces with both runs and a report, without training: for the tests of check and submit."""

import hashlib
import json
from pathlib import Path
from typing import Any

from run_folders import make_run

from harness.run.settings import RunSettings
from harness.workspace import Workspace, create_workspace

BROKEN = "def build_optimizer(model):\n    return SGD(model.parameters(), lr=10.0)\n"
FIXED = BROKEN.replace("10.0", "0.1")
REPORT = """\
---
diagnosis:
  - cause: huge_lr
    where: build_optimizer
    first_wrong: {signal: loss, step: 3, value: %(first_wrong)s}
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
    """Return a workspace of which nothing is to complain: both runs done, the report written."""
    workspace = create_workspace(work, "huge_lr", BROKEN, RunSettings(seed=42, dataset="digits"))
    workspace.experiment.write_text(FIXED)
    complete_run(workspace.run_folder("broken"), "broken", BROKEN, explode_at=3)
    complete_run(workspace.run_folder("fixed"), "fixed", FIXED)
    broken, fixed = (read_lines(workspace, run) for run in ("broken", "fixed"))
    figures = {
        "loss": f"{broken[0]['loss']:.3f}",
        "first_wrong": broken[3]["loss"],
        "accuracy": f"{fixed[-1]['val_accuracy']:.2f}",
    }
    workspace.report.write_text(REPORT % figures)
    return workspace


def complete_run(folder: Path, run: str, source: str, *, explode_at: int | None = None) -> Path:
    """Write every file of a run of 2 epochs of 6 batches."""
    make_run(folder, run=run, epochs=2, steps_per_epoch=6, explode_at=explode_at)
    (folder / "checkpoint.pt").write_bytes(b"weights of " + run.encode() * 1000)
    (folder / "best.pt").write_bytes(b"stays at home")
    (folder / "experiment.py").write_text(source)
    (folder / "run.html").write_text("<!doctype html>")
    seal(folder)
    return folder


def seal(folder: Path) -> None:
    """Write the digests that other files of the run hold."""
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
