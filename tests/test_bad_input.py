"""Every mistake of a student: one sentence says the mistake, the place and the remedy, and no file is lost."""

import json
import re
import resource
import signal
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from helpers.commands import FAULT, TRAINER, edit, mistake, run_command, sentence, snapshot, succeed

from harness.recipes.recipe import experiment_source

HEALTHY = experiment_source("digits_mlp")
RUN = ("--break", "none", "--epochs", "1", "--out", "run")
OLD_STEP = "    loss = compute_loss(model(inputs), labels)\n"

# Edits of experiment.py: the text to replace, the new text, and the expected sentence.
EXPERIMENTS = {
    "syntax error": (
        "    optimizer.zero_grad()", "    optimizer.zero_grad(",
        r"{path}, line \d+ is not valid Python: .*\n  line \d+: .*\nFix that line\.",
    ),
    "missing function": (
        "def evaluate(", "def evaluated(",
        r"{path} has no function evaluate: put it back; did you mean evaluated\?",
    ),
    "wrong return": (
        "    return loss\n", "    return optimizer\n",
        r"{path}, line \d+: train_step must return the loss, a scalar tensor, but .*",
    ),
    "raises": (
        OLD_STEP, OLD_STEP + "    if optimizer.state:\n        raise RuntimeError('a [mistake]')\n",
        r"{path}: train_step raised RuntimeError: a \[mistake\]\n  line \d+, in train_step: raise .*\n"
        r"Fix that line, .* The unfinished log is in {log}\.",
    ),
    "asks": (
        OLD_STEP, OLD_STEP + "    input()\n",
        r"{path}: train_step raised EOFError: .*\n  line \d+, in train_step: input\(.*\n.*",
    ),
    "damages the harness": (
        "import torch\n", "import torch\nimport harness.run.recorder as r\nr.Recorder.measure_batch = None\n", "",
    ),
}  # fmt: skip


def run_script(folder: Path, find: str, replace: str) -> "subprocess.CompletedProcess[str]":
    folder.mkdir()
    path = folder / "experiment.py"
    path.write_text(HEALTHY)
    edit(path, find, replace)
    return run_command(*RUN, "--script", path, cwd=folder, program=TRAINER)


@pytest.fixture(scope="module")
def experiments(tmp_path_factory: pytest.TempPathFactory) -> "dict[str, Future[subprocess.CompletedProcess[str]]]":
    """Run all experiments, two at a time, because most of the time is the import of torch."""
    folder = tmp_path_factory.mktemp("experiments")
    with ThreadPoolExecutor(2) as pool:
        return {
            name: pool.submit(run_script, folder / name, find, replace)
            for name, (find, replace, _) in EXPERIMENTS.items()
        }


@pytest.mark.parametrize("name", [name for name, (_, _, message) in EXPERIMENTS.items() if message])
def test_a_mistake_in_the_experiment_is_named(
    name: str, experiments: "dict[str, Future[subprocess.CompletedProcess[str]]]"
) -> None:
    done = experiments[name].result()
    folder = Path(done.args[-1]).parent
    log = folder / "run.partial/metrics.log"
    pattern = EXPERIMENTS[name][2].format(path=re.escape(str(done.args[-1])), log=re.escape(str(log)))
    assert re.fullmatch(pattern, sentence(done))
    assert (folder / "experiment.py").read_text() != HEALTHY
    if name == "raises":
        assert json.loads(log.read_text().splitlines()[0])["step"] == 0


def test_a_fault_in_the_process_that_trains_keeps_its_traceback_and_exits_3(
    experiments: "dict[str, Future[subprocess.CompletedProcess[str]]]",
) -> None:
    done = experiments["damages the harness"].result()
    assert done.returncode == FAULT
    assert "Traceback (most recent call last)" in done.stderr
    assert done.stderr.endswith("the traceback is above. Please report this bug.\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("exercise", "huge_lr", "--dataset", "minst"), r"There is no data set 'minst': did you mean mnist\?"),
        (("exercise", "huge_lr", "--dataset", "shapes"), ".* 28x28 images .*: choose from digits, mnist."),
        (("verify", "huge_lr"), "There is no workspace work/huge_lr: make exercise BREAK=huge_lr makes it."),
        (("submit", "huge_lr", "--student", "ada"), "There is no workspace work/huge_lr: .*"),
        (("exercise", "huge_lr", "--work", "/proc/work"), "No such file or directory at /proc/work.*: check .*"),
        (("exercise", "huge_lr", "--work", "a_file"), "Invalid value for '--work': Directory 'a_file' is a file.*"),
        (("exercise", "huge_lr", "--work", "blocked"), "Not a directory at blocked/huge_lr.* choose another folder."),
        (("fetch", "cifar11"), "There is no data set 'cifar11': choose one of digits, shapes, mnist, cifar10, .*"),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, tuple) else None,
)  # fmt: skip
def test_a_name_that_is_wrong_is_told_with_the_right_one(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "a_file").write_text("precious")
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked/huge_lr").write_text("precious")
    before = snapshot(tmp_path)
    assert re.fullmatch(message, mistake(*words, cwd=tmp_path))
    assert snapshot(tmp_path) == before


def test_there_may_be_no_card(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a card that torch can use")
    said = mistake("exercise", "huge_lr", "--device", "cuda", cwd=tmp_path)
    assert said == "This PyTorch finds no CUDA device: remove DEVICE=cuda to run on the CPU."


def limit_files() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))


def test_a_file_that_may_not_grow_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [*TRAINER, *RUN], cwd=tmp_path, capture_output=True, text=True, preexec_fn=limit_files, check=False
    )
    said = sentence(done)
    assert re.fullmatch(rf"File too large at {re.escape(str(tmp_path))}/run\.partial\S*: raise the limit on .*", said)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_full_disk_is_told_and_the_run_goes_on_from_there(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3500k", "full", disk], capture_output=True, text=True, check=False
    )
    if mount.returncode:
        pytest.skip(f"no small disk to fill: {mount.stderr.strip()}")
    words = ("exercise", "huge_lr", "--epochs", "2", "--work", disk)
    try:
        (disk / "other").write_bytes(bytes(1_500_000))
        said = mistake(*words, cwd=tmp_path)
        assert said.startswith(f"No space left on device at {disk}/huge_lr/runs/broken.partial")
        assert "free some space on that disk" in said
        assert (disk / "huge_lr/experiment.py").read_text() != ""
        (disk / "other").unlink()
        succeed(*words, "--resume", cwd=tmp_path)
    finally:
        subprocess.run(["umount", disk], check=True)
