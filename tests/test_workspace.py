import json
import threading
from pathlib import Path

import pytest
from made_up_runs import BROKEN, FIXED, make_workspace

from harness.errors import UserError
from harness.progress import note_progress
from harness.run.settings import RunSettings
from harness.workspace import create_workspace, open_workspace, remove_workspace, report_template

SETTINGS = RunSettings(seed=42, dataset="digits")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_workspace_has_the_experiment_the_template_and_the_settings(tmp_path: Path) -> None:
    workspace = create_workspace(tmp_path / "a" / "work", "huge_lr", BROKEN, SETTINGS)
    assert names(workspace.folder) == ["experiment.py", "report.md", "workspace.json"]
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
    assert names(made[0].folder) == ["experiment.py", "report.md", "workspace.json"]


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
    with pytest.raises(UserError, match=r"workspace\.json does not hold the settings of huge_lr: start over with"):
        open_workspace(tmp_path, "huge_lr")


def test_the_state_follows_the_student(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    assert workspace.edited()
    assert workspace.state() == "verified"
    workspace.experiment.write_text(FIXED + "# another idea\n")
    assert workspace.state() == "begun"
    workspace.experiment.unlink()
    assert workspace.state() == "begun"
    note_progress(workspace.folder, handed_in="ada_huge_lr.tar.gz")
    assert workspace.state() == "handed in"
    remove_workspace(tmp_path, "huge_lr")
    assert workspace.state() == "handed in"


def test_an_experiment_that_is_gone_is_named(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    workspace.experiment.unlink()
    with pytest.raises(UserError, match=r"There is no .*experiment\.py"):
        workspace.edited()
    workspace.experiment.write_bytes(b"\xff")
    with pytest.raises(UserError, match="is not UTF-8"):
        workspace.edited()


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
