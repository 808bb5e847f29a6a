"""Replays in the real sandbox."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.mini_experiments import edited
from helpers.sandbox_marks import needs_sandbox

from grader.replay.replay import Replay
from grader.replay.replayer import Replayer, Sandbox, open_sandbox
from grader.replay.request import Request, check_request
from grader.sandbox import SandboxResult, run_in_sandbox
from grader.syntax.program import tree_digest
from harness.recipes.catalogue import load_recipe
from harness.run.settings import RunJob, RunSettings
from harness.student.runs import launch
from harness.submission.limits import LOG_BYTES

RECIPE = load_recipe("huge_lr")
SETTINGS = RunSettings(seed=42, dataset="digits", epochs=1)


def request(source: str, *, trusted: bool = False, settings: RunSettings = SETTINGS) -> Request:
    return Request(RECIPE, settings, source, "tree", trusted)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Return the sandbox that `grader score` uses. One process forks for all replays of these tests."""
    with open_sandbox("warm", jobs=1) as opened:
        yield opened


def made(source: str, sandbox: Sandbox, data: Path) -> Replay:
    return Replayer(sandbox, data).make(request(source))


@needs_sandbox
def test_a_replay_has_the_bytes_of_the_students_own_run(tmp_path: Path) -> None:
    source = RECIPE.healthy_source()
    job = RunJob(SETTINGS, RECIPE.id, RECIPE.experiment, "", "fixed", source, str(tmp_path / "run"))
    launch(job, bar=False)
    found = Replayer(run_in_sandbox, tmp_path).make(request(source, trusted=True))
    assert found.status == "OK"
    assert found.log == (tmp_path / "run" / "metrics.log").read_text()
    claimed = (tmp_path / "run" / "checkpoint.pt.sha256").read_text().split()[0]
    assert found.checkpoint_sha256 == claimed
    assert found.platform is not None
    assert found.evaluation is not None
    assert found.evaluation.validation is not None
    assert found.evaluation.heldout is not None
    assert isinstance(found.evaluation.heldout.accuracy, float)
    assert found.evaluation.heldout.accuracy > 0.7
    # The evaluator's accuracy on the students' validation images equals the accuracy in the log.
    assert found.evaluation.validation.accuracy == pytest.approx(found.records()[-1]["val_accuracy"], abs=1e-6)
    assert found.evaluation.heldout != found.evaluation.validation


@needs_sandbox
@pytest.mark.parametrize(
    ("find", "replace", "message"),
    [
        ("optimizer.step()", "optimizer.stpe()", "experiment.py: train_step raised AttributeError"),
        ("import torch\n", "import torch\n(\n", "experiment.py, line"),
    ],
)
def test_what_an_experiment_does_wrong_is_its_own(
    find: str, replace: str, message: str, sandbox: Sandbox, tmp_path: Path
) -> None:
    found = made(edited(RECIPE.healthy_source(), (find, replace)), sandbox, tmp_path)
    assert (found.status, message in found.message) == ("RE", True), found.message


@needs_sandbox
def test_a_log_that_is_too_large_is_none(sandbox: Sandbox, tmp_path: Path) -> None:
    lines = f"""
import os
for name, text in (("metrics.log", " " * {LOG_BYTES + 1}), ("checks.json", "[]"), ("checkpoint.pt", "")):
    with open(f"out/{{name}}", "w") as file:
        file.write(text)
os._exit(0)
"""
    found = made(lines + RECIPE.healthy_source(), sandbox, tmp_path)
    assert (found.status, "a log of more than 8 MiB" in found.message) == ("OL", True)


@needs_sandbox
def test_an_error_shows_the_line_that_raised(sandbox: Sandbox, tmp_path: Path) -> None:
    # A form feed does not end a line of a program.
    source = "import torch\n# a page \x0c\r\n\ndef first():\n    raise ValueError('no')  # here\nfirst()\n"
    assert made(source, sandbox, tmp_path).message == (
        "experiment.py raised ValueError: no when it was loaded\n"
        "  line 6, in <module>: first()\n"
        "  line 5, in first: raise ValueError('no')  # here\n"
        "Fix that line."
    )


@needs_sandbox
def test_a_fault_of_the_machine_is_ours(tmp_path: Path) -> None:
    # A failure of the suite's own code is never the student's fault.
    broken = edited(RECIPE.healthy_source(), ("import torch\n", "import torch\n(\n"))
    assert Replayer(run_in_sandbox, tmp_path).make(request(broken, trusted=True)).status == "XX"


def test_a_failed_reference_fix_names_its_cause_also_if_a_student_hands_it_in(tmp_path: Path) -> None:
    stderr = b"Traceback (most recent call last):\nImportError: no torch here\n"
    failed = SandboxResult("RE", 1, None, "it ended with exit status 1", stderr=stderr)
    found = Replayer(lambda *_: failed, tmp_path).replay(request(RECIPE.healthy_source()))
    assert (found.status, found.message) == ("XX", "RE: it ended with exit status 1 ImportError: no torch here")
    other = Replayer(lambda *_: failed, tmp_path).replay(request(RECIPE.broken_source()))
    assert (other.status, other.message) == ("RE", "it ended with exit status 1")


def test_no_message_of_a_replay_names_a_folder_of_this_machine(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = request(RECIPE.healthy_source(), trusted=True)
    asked = dataclasses.replace(asked, settings=dataclasses.replace(asked.settings, dataset="mnist"))
    found = Replayer(run_in_sandbox, tmp_path / "prof's cache").replay(asked)
    assert (found.status, found.message) == ("XX", "the grader has no copy of mnist")
    assert str(tmp_path) in capfd.readouterr().err, "the instructor is told which folder lacks it"
    broken = SandboxResult("XX", None, None, f"bwrap: Can't find source path {tmp_path}/x y/python: no such file")
    found = Replayer(lambda *_: broken, tmp_path).replay(request(RECIPE.healthy_source(), trusted=True))
    assert str(tmp_path) not in found.message
    assert "Can't find source path" in found.message


@needs_sandbox
def test_another_network_has_a_problem(sandbox: Sandbox, tmp_path: Path) -> None:
    wider = (("nn.Linear(784, 128)", "nn.Linear(784, 96)"), ("nn.Linear(128, 10)", "nn.Linear(96, 10)"))
    found = made(edited(RECIPE.healthy_source(), *wider), sandbox, tmp_path).evaluation
    assert found is not None
    assert "has the shape" in found.problem
    assert found.heldout is None


def test_the_key_is_of_the_program_and_not_of_its_layout() -> None:
    source = RECIPE.healthy_source()
    spaced = source.replace("lr=0.1, ", "lr = 0.1,  ").replace("import torch\n", "import torch  # the library\n", 1)
    assert spaced != source

    def key(text: str, settings: RunSettings = SETTINGS, **changes: Any) -> str:
        made = Request(RECIPE, settings, text, tree_digest(text), trusted=False)
        return dataclasses.replace(made, **changes).key

    assert key(spaced) == key(source)
    others = {
        key(source),
        key(source.replace("lr=0.1", "lr=0.2")),
        key(source, dataclasses.replace(SETTINGS, seed=43)),
        key(source, dataclasses.replace(SETTINGS, epochs=2)),
        key(source, dataclasses.replace(SETTINGS, dataset="mnist")),
        key(source, recipe=load_recipe("forgotten_eval")),
        key(source, trusted=True),
        key(source, repetition=1),
    }
    assert len(others) == 8
    # The program decides, not the recipe. Two recipes of an experiment may share a replay.
    assert key(source, recipe=load_recipe("loss_sum")) == key(source)


# An experiment that leaves data in memory and in files, and fails if it finds data of another process.
LEAVING = """
import os
import pathlib

HERE = str(os.getpid())
FOLDERS = [pathlib.Path(folder) for folder in (".", "out", "/tmp", "/dev/shm")]
LEFT = [path.read_text() for folder in FOLDERS for path in folder.glob("seen/file")] + [getattr(torch, "seen", HERE)]
if set(LEFT) != {HERE}:
    raise ValueError(f"process {HERE} found {LEFT}")


def leave():
    torch.seen = HERE
    for folder in FOLDERS:
        (folder / "seen").mkdir(parents=True, exist_ok=True)
        (folder / "seen" / "file").write_text(HERE)
        (folder / "seen").chmod(0o500)
    pathlib.Path("out", "data.json").write_text("{}")
    print("{}", flush=True)


"""


@needs_sandbox
def test_a_check_finds_and_changes_nothing_of_an_earlier_one(sandbox: Sandbox, tmp_path: Path) -> None:
    healthy = RECIPE.healthy_source()
    build = "    return nn.Sequential(\n"
    source = edited(healthy, ("EPOCHS = 5\n", f"{LEAVING}EPOCHS = 5\n"), (build, f"    leave()\n{build}"))
    expected = Replayer(sandbox, tmp_path).make(check_request(request(healthy)))
    found = Replayer(sandbox, tmp_path).make(check_request(request(source)))
    assert (expected.status, found.status) == ("OK", "OK"), found.message
    # The check of the preparation reports that this experiment reads files.
    others = [[item for item in made.checks if item.check != "preparation"] for made in (found, expected)]
    assert len(others[0]) > 20
    assert others[0] == others[1]
