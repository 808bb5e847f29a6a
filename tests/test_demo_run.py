import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.commands import MISTAKE, ROOT, command_environment, snapshot

SCRIPT = ROOT / "harness/demo_run.sh"
KEYS = {"seed", "checkpoint_path", "checkpoint_sha256", "final_train_loss", "final_val_metric"}


def demo_run(*words: str, cwd: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    environment = {"PYTHON": sys.executable, **environment}
    return subprocess.run(
        [SCRIPT, *words], cwd=cwd, env=command_environment(**environment), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.slow
def test_the_same_command_leaves_the_same_bytes_wherever_it_is_given(tmp_path: Path) -> None:
    plain, hostile = tmp_path / "plain", tmp_path / "hostile folder"
    plain.mkdir()
    hostile.mkdir()
    done = demo_run("7", "missing_zero_grad", cwd=plain)
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert result.keys() >= KEYS
    assert (result["seed"], result["recipe"]) == (7, "missing_zero_grad")

    # Another folder, with files named like Python's own modules, and every environment variable that could matter.
    decoys = {f"{name}.py" for name in ("random", "torch", "json", "click", "pathlib", "numpy", "harness")}
    for name in decoys:
        (hostile / name).write_text("raise SystemExit('a decoy was imported')\n")
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk/torch.py").write_text("raise SystemExit('a decoy was imported')\n")
    before = os.umask(0o077)
    try:
        again = demo_run(
            "7", "missing_zero_grad", cwd=hostile, PYTHONHASHSEED="123", OMP_NUM_THREADS="2", MKL_NUM_THREADS="2",
            MKL_CBWR="AVX2", ATEN_CPU_CAPABILITY="avx2", LC_ALL="C", LANG="tr_TR.UTF-8",
            TZ="Asia/Tokyo", PYTHONPATH=f"{tmp_path}/junk:{tmp_path}/missing", PYTHONOPTIMIZE="1",
        )  # fmt: skip
    finally:
        os.umask(before)
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout == done.stdout
    left = {name: data for name, data in snapshot(hostile).items() if name not in decoys}
    assert left == snapshot(plain)
    assert {path.name for path in plain.iterdir()} == {
        "run_missing_zero_grad_7", "run_missing_zero_grad_7.tgz", "run_missing_zero_grad_7.tgz.sha256",
    }  # fmt: skip

    checkpoint = plain / result["checkpoint_path"]
    assert hashlib.sha256(checkpoint.read_bytes()).hexdigest() == result["checkpoint_sha256"]
    for folder, sums in ((plain, "run_missing_zero_grad_7.tgz.sha256"), (checkpoint.parent, "checkpoint.pt.sha256")):
        subprocess.run(["sha256sum", "--check", "--quiet", sums], cwd=folder, check=True)
    commit = json.loads((checkpoint.parent / "checkpoint.pt.meta.json").read_text())["git_commit"]
    known = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    assert commit == (known.stdout.strip() or None)


def test_what_is_not_there_ends_with_one_sentence(tmp_path: Path) -> None:
    for words, message in (
        (("42", "huge_lrr"), "Error: There is no exercise 'huge_lrr': did you mean huge_lr?\n"),
        (("many",), "Error: Invalid value for '--seed': 'many' is not a whole number from 0 to 4294967295"),
    ):
        done = demo_run(*words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (MISTAKE, "")
        assert done.stderr.startswith(message)
    done = demo_run(cwd=tmp_path, PYTHON=str(tmp_path / "python"))
    assert done.returncode == MISTAKE
    assert "run make exercises once" in done.stderr
    assert not list(tmp_path.iterdir())


def test_it_says_how_to_call_it(tmp_path: Path) -> None:
    done = demo_run("--help", cwd=tmp_path)
    usage = "Usage: harness/demo_run.sh [SEED] [BREAK] [OPTION ...]"
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, usage)
