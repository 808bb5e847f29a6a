import json
import re
import shutil
import subprocess
import threading
import tomllib
from pathlib import Path

import pytest
from helpers.made_up_runs import BROKEN, FIXED, make_workspace

from harness.errors import UserError
from harness.recipes.recipe import ROOT
from harness.run.settings import RunSettings
from harness.submission.report import read_report
from harness.workspace.progress import note_progress, note_solved
from harness.workspace.workspace import (
    create_workspace,
    find_work,
    make_command,
    open_workspace,
    prompt_text,
    read_source,
    remove_workspace,
    report_template,
)  # fmt: skip

SETTINGS = RunSettings(seed=42, dataset="digits")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_workspace_has_the_experiment_the_template_and_the_settings(tmp_path: Path) -> None:
    workspace = create_workspace(tmp_path / "a" / "work", "huge_lr", BROKEN, SETTINGS)
    assert names(workspace.folder) == ["PROMPT.md", "experiment.py", "report.md", "workspace.json"]
    assert workspace.experiment.read_text() == BROKEN
    assert workspace.report.read_text() == report_template()
    assert open_workspace(tmp_path / "a" / "work", "huge_lr") == workspace
    assert workspace.state() == "not started"


def test_nothing_of_the_students_is_overwritten_and_what_is_lost_comes_back(tmp_path: Path) -> None:
    workspace = create_workspace(tmp_path, "huge_lr", BROKEN, SETTINGS)
    workspace.experiment.write_text("mine")
    workspace.report.unlink()
    create_workspace(tmp_path, "huge_lr", BROKEN, SETTINGS)
    assert workspace.experiment.read_text() == "mine"
    assert workspace.report.read_text() == report_template()


def test_a_deleted_file_is_missed_by_a_message_that_says_how_to_get_it_back(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    for path in (workspace.report, workspace.experiment):
        path.unlink()
    again = workspace.command("exercise")
    with pytest.raises(UserError, match=f"There is no .*report.md: {again} writes an empty one"):
        read_report(workspace.report)
    with pytest.raises(UserError, match=f"put the file back, or write the broken experiment again: {again}"):
        read_source(workspace.experiment)
    (workspace.folder / "PROMPT.md").unlink(missing_ok=True)
    assert workspace.restore() == ["experiment.py", "report.md", "PROMPT.md"]
    assert workspace.experiment.read_text() == BROKEN
    assert workspace.report.read_text() == report_template()
    assert workspace.restore() == []


def test_the_task_of_a_workspace_elsewhere_names_it_in_its_commands(tmp_path: Path) -> None:
    prompt = (create_workspace(tmp_path / "my work", "huge_lr", BROKEN, SETTINGS).folder / "PROMPT.md").read_text()
    place = f"WORK='{tmp_path}/my work'"
    assert f"`make verify BREAK=huge_lr {place}`" in prompt
    assert f"`make submit BREAK=huge_lr STUDENT=<your login> {place}`" in prompt
    option = place.replace("WORK=", "--work ")
    assert f"`.venv/bin/harness show huge_lr --step 2 {option}`" in prompt
    assert prompt_text("huge_lr") == prompt.replace(f" {place}", "").replace(f" {option}", "")


def test_git_ignores_a_new_folder_of_workspaces_and_no_other(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    create_workspace(tmp_path / "here" / "work", "huge_lr", BROKEN, SETTINGS)

    def untracked() -> str:
        words = ["git", "-C", str(tmp_path), "status", "--porcelain", "--untracked-files=all"]
        return subprocess.check_output(words, text=True)

    assert untracked() == ""
    (tmp_path / "theirs").mkdir()
    create_workspace(tmp_path / "theirs", "huge_lr", BROKEN, SETTINGS)
    assert "theirs/huge_lr/experiment.py" in untracked()


def test_commands_work_within_the_folder_of_workspaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    create_workspace(find_work(), "huge_lr", BROKEN, SETTINGS)
    places = {".": "work", "work": ".", "work/huge_lr": "..", "work/huge_lr/runs": "../.."}
    (tmp_path / "work/huge_lr/runs").mkdir()
    for here, work in places.items():
        monkeypatch.chdir(tmp_path / here)
        assert find_work() == Path(work)
        workspace = open_workspace(find_work(), "huge_lr")
        assert workspace.experiment.resolve() == tmp_path / "work/huge_lr/experiment.py"
    # In a project, make must change to its folder. Elsewhere, the command contains the full path of the workspaces.
    assert workspace.command("verify") == f"make verify BREAK=huge_lr WORK={tmp_path}/work"
    (tmp_path / "Makefile").touch()
    assert workspace.command("verify") == "make -C ../../.. verify BREAK=huge_lr"
    monkeypatch.chdir(tmp_path)
    assert make_command("verify", find_work() / "huge_lr") == "make verify BREAK=huge_lr"
    monkeypatch.chdir(tmp_path / "work")
    (tmp_path / "work").rename(tmp_path / "my work")
    assert make_command("check", find_work() / "huge_lr") == "make -C .. check BREAK=huge_lr WORK='my work'"


def test_two_makings_at_once_make_one_workspace(tmp_path: Path) -> None:
    made = []
    start = threading.Barrier(4)

    def make() -> None:
        start.wait()
        made.append(create_workspace(tmp_path, "huge_lr", BROKEN, SETTINGS))

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4 and len(set(made)) == 1
    assert names(made[0].folder) == ["PROMPT.md", "experiment.py", "report.md", "workspace.json"]


GOOD_RECORD = {"format_version": 1, "recipe": "huge_lr", "settings": {"seed": 42, "dataset": "digits"}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[" * 100_000,
        json.dumps({**GOOD_RECORD, "format_version": 2}),
        json.dumps({**GOOD_RECORD, "recipe": "loss_sum"}),
        json.dumps({**GOOD_RECORD, "settings": {"seed": 42}}),
        json.dumps({**GOOD_RECORD, "settings": {"seed": 42, "dataset": "digits", "numerics": "wild"}}),
        json.dumps({**GOOD_RECORD, "settings": {"seed": 42, "dataset": "digits", "speed": 1}}),
    ],
)
def test_settings_that_cannot_be_read_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "huge_lr").mkdir()
    (tmp_path / "huge_lr" / "workspace.json").write_text(text)
    with pytest.raises(UserError, match=r"workspace\.json does not contain the settings of huge_lr: start over with"):
        open_workspace(tmp_path, "huge_lr")


def test_the_state_follows_the_student(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    assert workspace.is_edited()
    assert workspace.state() == "tried", "a run alone does not say that the edit is a fix"
    workspace.experiment.unlink()
    assert workspace.state() == "tried"
    shutil.rmtree(workspace.run_folder("fixed"))
    assert workspace.state() == "begun"
    note_solved(workspace.folder, ("huge_lr",), 3)
    assert workspace.state() == "solved"
    note_progress(workspace.folder, handed_in="ada_huge_lr.tar.gz")
    assert workspace.state() == "handed in"
    remove_workspace(tmp_path, "huge_lr")
    assert workspace.state() == "handed in"


def test_an_experiment_that_is_gone_is_named(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    workspace.experiment.unlink()
    with pytest.raises(UserError, match=r"There is no .*experiment\.py"):
        workspace.is_edited()
    workspace.experiment.write_bytes(b"\xff")
    with pytest.raises(UserError, match="is not UTF-8"):
        workspace.is_edited()


def test_starting_over_keeps_all_that_a_person_made(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    (workspace.folder / "notes.txt").write_text("mine")
    (workspace.folder / "score").mkdir()
    kept = remove_workspace(tmp_path, "huge_lr")
    assert kept == tmp_path / ".removed" / "huge_lr-1"
    assert names(kept) == ["experiment.py", "notes.txt", "report.md"]
    assert (kept / "experiment.py").read_text() == FIXED
    assert not workspace.folder.exists()
    make_workspace(tmp_path)
    assert remove_workspace(tmp_path, "huge_lr").name == "huge_lr-2"


def test_the_steps_state_the_points_and_point_to_help() -> None:
    text = prompt_text("huge_lr")
    rubric = tomllib.loads((ROOT / "grader/score/rubric.toml").read_text())
    gates = rubric.pop("gates")
    for criterion, checks in rubric.items():
        if criterion != "format_version":
            assert f"{criterion} {sum(checks.values())} (" in text.replace("\n", " ")
    limits = {most for most in gates.values() if most is not True}
    assert [int(most) for most in re.findall(r"at most (\d+)", text) if most != "500"] == [*limits] * 2
    for page in re.findall(r"docs/[a-z-]+\.md", text):
        assert (ROOT / page).is_file() and f"]({page})" in (ROOT / "grader/course/shared_readme.md").read_text()
    commands = re.findall(r"`((?:make|\.venv)[^`]+)`", text)
    assert {line.split()[1] for line in commands} == {
        "triage", "hint", "verify", "check", "submit", "causes", "show", "checks", "overfit",
    }  # fmt: skip
    assert "{" not in text.replace("{signal", "").replace("{cause", "").replace("{run", "").replace("{check", "")


@pytest.mark.parametrize(("run", "verb"), [("broken", "exercise"), ("fixed", "verify")])
def test_a_run_without_its_log_is_made_again_by_one_command(run: str, verb: str, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    workspace.require_run(run)
    log = workspace.run_folder(run) / "metrics.log"
    log.unlink()
    assert not workspace.has_run(run)
    with pytest.raises(UserError) as refusal:
        workspace.require_run(run)
    assert str(refusal.value) == f"{log.parent} has no metrics.log: {workspace.command(verb)} makes the run."
