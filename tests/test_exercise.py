import json
import re
import signal
import tarfile
from pathlib import Path

import pytest
from helpers.commands import edit, mistake, snapshot, start, succeed
from helpers.made_up_runs import REPORT

from harness.errors import UserError
from harness.run.options import check_dataset, default_dataset
from harness.run.settings import RunSettings
from harness.student.runs import single_run_job
from harness.workspace.workspace import prompt_text

EXERCISE = ("exercise", "huge_lr", "--epochs", "1")


def state_of(cwd: Path, recipe: str = "huge_lr") -> str:
    match = re.search(rf"^  {recipe} +(begun|verified|handed in|) +\S", succeed("exercises", cwd=cwd), re.MULTILINE)
    assert match
    return match[1] or "not started"


def write_report(folder: Path) -> None:
    def records(run: str) -> list[dict[str, float]]:
        return [json.loads(line) for line in (folder / f"runs/{run}/metrics.log").read_text().splitlines()]

    broken, accuracy = records("broken"), records("fixed")[-1]["val_accuracy"]
    figures = {"loss": broken[0]["loss"], "first_wrong": broken[1]["loss"], "accuracy": accuracy}
    # The template is for runs of two epochs.
    (folder / "report.md").write_text((REPORT % figures).replace("epoch: 1", "epoch: 0"))


@pytest.mark.slow
def test_a_student_goes_from_the_broken_run_to_the_tarball(tmp_path: Path) -> None:
    folder = tmp_path / "work/huge_lr"
    assert state_of(tmp_path) == "not started"

    said = succeed(*EXERCISE, cwd=tmp_path)
    assert "The loss explodes in the first epoch" in said
    assert "  4. make verify BREAK=huge_lr\n" in said
    assert state_of(tmp_path) == "begun"
    assert {path.name for path in folder.iterdir()} == {
        "experiment.py", "report.md", "PROMPT.md", "workspace.json", "runs",
    }  # fmt: skip
    assert [path.name for path in (folder / "runs").iterdir()] == ["broken"]

    edit(folder / "experiment.py", "lr=10.0", "lr=0.1")
    before = snapshot(folder)
    times = {name: (folder / name).stat().st_mtime_ns for name in before}
    said = succeed("exercise", "huge_lr", cwd=tmp_path)
    assert said.startswith("work/huge_lr exists already, so nothing in it was changed.\n")
    assert snapshot(folder) == before
    assert {name: (folder / name).stat().st_mtime_ns for name in before} == times

    said = succeed("verify", "huge_lr", cwd=tmp_path)
    assert re.search(r"largest gradient norm │ +\d+ │ +\d\.\d+ │", said)
    assert ", then make check BREAK=huge_lr\n" in said
    assert state_of(tmp_path) == "verified"
    once = snapshot(folder)
    (folder / "runs/fixed/notes.txt").write_text("mine")
    succeed("verify", "huge_lr", cwd=tmp_path)
    assert snapshot(folder) == {**once, "runs/fixed/notes.txt": b"mine"}
    assert not list((folder / "runs").glob(".*"))

    assert "`cause` is not filled in yet" in mistake("submit", "huge_lr", "--student", "ada", cwd=tmp_path)
    assert not (tmp_path / "submissions").exists()
    write_report(folder)
    said = succeed("check", "huge_lr", cwd=tmp_path)
    assert re.search(r"\n\d+ passed\.\n", said)
    assert said.endswith("  make submit BREAK=huge_lr STUDENT=<your login>\n")

    said = succeed("submit", "huge_lr", "--student", "ada", cwd=tmp_path)
    tarball = tmp_path / "submissions/ada_huge_lr.tar.gz"
    assert "Warning" not in said
    assert state_of(tmp_path) == "handed in"
    content = tarball.read_bytes()
    succeed("submit", "huge_lr", "--student", "ada", cwd=tmp_path)
    assert tarball.read_bytes() == content
    with tarfile.open(tarball) as tar:
        assert {"manifest.json", "experiment.py", "report.md", "runs/broken/metrics.log"} <= set(tar.getnames())


@pytest.mark.slow
def test_settings_that_cannot_be_met_do_not_tie_the_workspace(tmp_path: Path) -> None:
    work = tmp_path / "a folder"
    said = mistake("exercise", "huge_lr", "--dataset", "mnist", "--work", work, cwd=tmp_path,
                   env={"TRAINWRECK_DATA": str(tmp_path / "nothing"), "PATH": ""})  # fmt: skip
    assert "make data DATASET=mnist" in said
    said = succeed(*EXERCISE, "--work", work, cwd=tmp_path)
    assert said.endswith(f"  4. make verify BREAK=huge_lr WORK='{work}'\n")
    said = mistake("verify", "huge_lr", "--seed", "7", "--work", work, cwd=tmp_path)
    assert said == (
        f"{work}/huge_lr was made with seed 42 (but you asked for 7): use these settings, choose another folder with"
        f" WORK=, or start over with make clean-work BREAK=huge_lr WORK='{work}'."
    )
    # Giving the same seed again without the number of epochs is not a contradiction.
    assert "nothing in it was changed" in succeed("exercise", "huge_lr", "--seed", "42", "--work", work, cwd=tmp_path)
    report = tmp_path / work / "huge_lr" / "report.md"
    template = report.read_text()
    report.unlink()
    said = succeed("exercise", "huge_lr", "--work", work, cwd=tmp_path)
    assert "huge_lr exists already. Restored missing files: report.md.\n" in said
    assert report.read_text() == template


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("digit", r"There is no data set 'digit': did you mean digits\?"),
        ("cifar10", "cannot read cifar10. It reads 28x28 images .*: choose from digits, mnist"),
    ],
)
def test_a_data_set_that_does_not_fit_is_refused_by_name(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_dataset(name, "digits")


def test_single_runs(tmp_path: Path) -> None:
    settings = RunSettings(seed=1, dataset="digits")
    assert single_run_job("none", settings, tmp_path / "out").run == "healthy"
    assert single_run_job("huge_lr", settings, tmp_path / "out").run == "broken"
    with pytest.raises(UserError, match="huge_lr breaks digits_mlp, not shapes_cnn"):
        single_run_job("huge_lr", settings, tmp_path / "out", experiment="shapes_cnn")
    with pytest.raises(UserError, match="There is no experiment 'digits_mpl': did you mean digits_mlp"):
        single_run_job("none", settings, tmp_path / "out", experiment="digits_mpl")
    assert default_dataset("none", "shapes_cnn") == default_dataset("forgotten_eval", None) == "shapes"


def test_the_prompt_names_the_steps_of_its_own_exercise() -> None:
    assert "make verify BREAK=loss_sum" in prompt_text("loss_sum")


@pytest.mark.slow
def test_watch_runs_each_save_and_goes_on_after_a_mistake(tmp_path: Path) -> None:
    succeed(*EXERCISE, cwd=tmp_path)
    experiment = tmp_path / "work/huge_lr/experiment.py"
    process = start("watch", "huge_lr", cwd=tmp_path)

    def screen() -> str:
        """Return the page after one save."""
        assert process.stdout is not None
        return "".join(iter(process.stdout.readline, "Save the file to run it again. Press Ctrl-C to stop.\n"))

    assert "You have not edited" in screen()
    edit(experiment, "lr=10.0, momentum", "lr=0.1 momentum")
    assert "There is no new run. " in screen()
    edit(experiment, "lr=0.1 momentum", "lr=0.1, momentum")
    assert "make check BREAK=huge_lr" in screen()
    process.send_signal(signal.SIGINT)
    rest, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (0, ""), rest
    assert rest.endswith("Stopped watching. Next: make verify BREAK=huge_lr\n")
