import hashlib
import io
import json
import os
import subprocess
import tarfile
import unicodedata
from pathlib import Path

import pytest
from helpers.made_up_runs import FIXED, make_workspace

from benchmarks.repack import members_of
from harness.errors import UserError
from harness.student.hand_in import submit
from harness.submission.archive import student_name
from harness.workspace.progress import progress_of
from harness.workspace.workspace import Workspace

RUN_FILES = [
    "checkpoint.pt", "checkpoint.pt.meta.json", "checkpoint.pt.sha256", "experiment.py", "inputs.json", "metrics.log",
    "result.json", "run.html",
]  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path / "work")


def test_the_tarball_holds_what_the_contract_says_and_nothing_else(workspace: Workspace, tmp_path: Path) -> None:
    (workspace.folder / "notes.txt").write_text("mine")
    (workspace.run_folder("fixed") / "secret").write_text("mine")
    done = submit(workspace, "ada", tmp_path / "submissions")
    assert done.path == tmp_path / "submissions" / "ada_huge_lr.tar.gz"
    with tarfile.open(done.path, "r:gz") as tar:
        names = tar.getnames()
        files = {name: (tar.extractfile(name) or io.BytesIO()).read() for name in names}
    expected = ["command.txt", "experiment.py", "manifest.json", "report.md"]
    assert names == expected + [f"runs/{run}/{name}" for run in ("broken", "fixed") for name in RUN_FILES]
    manifest = json.loads(files.pop("manifest.json"))
    assert manifest.pop("files") == {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    run = {"seed": 42, "dataset": "digits", "dataset_digest": "71" * 32}
    assert manifest == {"format_version": 1, "student": "ada", "recipe": "huge_lr", **run}
    assert files["command.txt"].decode() == (
        "# runs/broken\npython -m harness.trainer --seed 42 --break huge_lr --dataset digits\n\n"
        "# runs/fixed\npython -m harness.trainer --seed 42 --break huge_lr --dataset digits --script experiment.py\n"
    )
    assert files["experiment.py"].decode() == FIXED


def test_it_is_noted_in_the_workspace(workspace: Workspace, tmp_path: Path) -> None:
    done = submit(workspace, "ada", tmp_path / "out")
    assert progress_of(workspace.folder).handed_in == done.path.name
    assert hashlib.sha256(done.path.read_bytes()).hexdigest() == done.sha256
    assert workspace.state() == "handed in"
    assert done.warnings == ()


def test_the_same_content_gives_the_same_bytes_anywhere(workspace: Workspace, tmp_path: Path) -> None:
    first = submit(workspace, "ada", tmp_path / "a")
    moved = make_workspace(tmp_path / "elsewhere")
    for path in moved.folder.rglob("*"):
        os.utime(path, (1, 1))
    assert submit(moved, "ada", tmp_path / "b").path.read_bytes() == first.path.read_bytes()


def test_handing_in_again_replaces_what_was_there(workspace: Workspace, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = submit(workspace, "ada", out)
    assert submit(workspace, "ada", out) == first
    workspace.report.write_text(workspace.report.read_text() + "\nOne thing more.\n")
    second = submit(workspace, "ada", out)
    assert second.path == first.path
    assert second.sha256 == hashlib.sha256(second.path.read_bytes()).hexdigest() != first.sha256
    assert {path.name for path in out.iterdir()} == {first.path.name, f"{first.path.name}.sha256"}
    command = ["sha256sum", "-c", f"{first.path.name}.sha256"]
    assert subprocess.run(command, cwd=out, capture_output=True).returncode == 0


def test_imperfect_work_is_handed_in_with_a_warning(workspace: Workspace, tmp_path: Path) -> None:
    workspace.report.write_text(workspace.report.read_text().replace("step: 0", "step: 1"))
    done = submit(workspace, "ada", tmp_path)
    assert [item.id for item in done.warnings] == ["report: ruled out 1", "report: evidence 1"]
    assert done.path.is_file()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("experiment.py", "later", "experiment: verified: .*experiment.py was edited after the fixed run"),
        ("report.md", "# no front matter", "report: front matter: .*line 1"),
        ("runs/broken/metrics.log", "", "broken: log: .* make exercise BREAK=huge_lr .* makes the run again"),
        ("runs/fixed/result.json", None, "fixed: files: There is no finished run"),
        ("report.md", None, "report: front matter: There is no .*report.md"),
    ],
)
def test_a_broken_archive_is_refused_and_nothing_written(
    workspace: Workspace, tmp_path: Path, name: str, text: str | None, message: str
) -> None:
    if text is None:
        (workspace.folder / name).unlink()
    else:
        (workspace.folder / name).write_text(text)
    with pytest.raises(UserError, match=f"^Not packed, {message}"):
        submit(workspace, "ada", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert progress_of(workspace.folder).handed_in is None


@pytest.mark.parametrize(
    "student",
    [
        "",
        "-rf",
        "../ada",
        ".",
        "..",
        ".ada",
        "a/b",
        "a\\b",
        "a:b",
        "ada\n",
        "\u202eada",
        "ada ",
        "a" * 65,
        "\u674e" * 43,
    ],
)
def test_names_that_cannot_be_part_of_a_file_name_are_refused(student: str) -> None:
    with pytest.raises(UserError, match=r"dot or a space at its start\.$"):
        student_name(student)


@pytest.mark.parametrize(
    "student", ["Ada.L_1-2", "ada.l+ml@uni.example", "o'brien@x.org", "J\u00fcrgen", "\u674e" * 42]
)
def test_a_login_may_be_an_address_and_of_any_script(workspace: Workspace, tmp_path: Path, student: str) -> None:
    path = submit(workspace, unicodedata.normalize("NFD", student), tmp_path / "out").path
    assert path.name == f"{student}_huge_lr.tar.gz"
    assert json.loads(members_of(path.read_bytes())["manifest.json"])["student"] == student
