"""Is everything in order here? One exercise from the first command to the tarball, with one epoch."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RECIPE = "huge_lr"
REPORT = """\
---
root_cause_layer: model
evidence:
  - {run: broken, signal: loss, step: 0, value: %s}
  - {run: fixed, signal: val_accuracy, epoch: 0, value: %s}
---

# Symptom

```
loss %s
```

# Root cause

None was looked for.

# Fix

Another batch size, for the sake of the example.

# Verification

Both runs were made.
"""


def harness(*words: str | Path, cwd: Path, expected: int = 0) -> str:
    """Run a command and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "harness", *map(str, words)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    said = done.stdout + done.stderr
    assert "Traceback" not in said, said
    assert done.returncode == expected, said
    return said


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a broken run, an edited experiment, its run, and a report."""
    folder = tmp_path_factory.mktemp("student")
    assert f"make verify BREAK={RECIPE}" in harness("exercise", RECIPE, "--epochs", "1", cwd=folder)
    workspace = folder / "work" / RECIPE
    path = workspace / "experiment.py"
    path.write_text(path.read_text().replace("BATCH_SIZE = 64", "BATCH_SIZE = 128"))
    harness("verify", RECIPE, cwd=folder)
    loss = records(workspace / "runs" / "broken")[0]["loss"]
    accuracy = json.loads((workspace / "runs" / "fixed" / "result.json").read_text())["final_val_metric"]
    (workspace / "report.md").write_text(REPORT % (loss, accuracy, loss))
    return folder


def records(run: Path) -> list[dict[str, float]]:
    """Return the records of a log."""
    return [json.loads(line) for line in (run / "metrics.log").read_text().splitlines()]


def test_what_runs_here_is_this_kit() -> None:
    """Another copy of the suite in this Python would run in its place."""
    import harness as package

    assert Path(str(package.__file__)).resolve().parents[1] == ROOT


def test_this_machine_has_a_verdict() -> None:
    """In the portable class or not: both serve."""
    command = [sys.executable, "-P", "-m", "harness", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert json.loads(done.stdout)["problem"] is None, done.stdout + done.stderr
    assert done.returncode in (0, 1)


def test_every_exercise_is_listed_and_written_out(tmp_path: Path) -> None:
    """Each has its prompt, and its experiment or the file to write."""
    said = harness("exercises", cwd=tmp_path)
    names = sorted(path.name for path in (ROOT / "exercises").iterdir())
    assert len(names) >= 7
    for name in names:
        assert re.search(rf"^{name}\b", said, re.MULTILINE)
        files = {path.name for path in (ROOT / "exercises" / name).iterdir()}
        assert "PROMPT.md" in files
        if "experiment.py" in files:
            assert files == {"PROMPT.md", "experiment.py", "recipe.toml"}
        else:
            assert "exercise.toml" in files
            assert len(files) == 3


def test_the_broken_run_is_the_same_twice(folder: Path, tmp_path: Path) -> None:
    """Equal commands give equal bytes, in another folder too."""
    harness("exercise", RECIPE, "--epochs", "1", cwd=tmp_path)
    for name in ("metrics.log", "checkpoint.pt"):
        first, second = (
            (place / "work" / RECIPE / "runs" / "broken" / name).read_bytes() for place in (folder, tmp_path)
        )
        assert first == second


def test_an_edited_experiment_has_a_run_of_its_own(folder: Path) -> None:
    """Half as many batches of twice the size."""
    runs = folder / "work" / RECIPE / "runs"
    broken, fixed = (len(records(runs / name)) for name in ("broken", "fixed"))
    assert broken // 2 <= fixed < broken


def test_it_can_be_checked_and_handed_in_with_the_same_bytes_twice(folder: Path) -> None:
    """The tarball depends on what was handed in alone."""
    said = harness("check", RECIPE, cwd=folder)
    assert "failed" not in said
    tarballs = []
    for out in ("first", "second"):
        harness("submit", RECIPE, "--student", "ada", "--out", out, cwd=folder)
        tarballs.append((folder / out / f"ada_{RECIPE}.tar.gz").read_bytes())
    assert tarballs[0] == tarballs[1]


def test_a_healthy_run_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """The healthy experiments are not handed out."""
    command = [sys.executable, "-P", "-m", "harness.trainer", "--break", "none"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert "not in a student's kit" in done.stderr
