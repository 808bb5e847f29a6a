"""An exercise with an answer file, by a student's commands: make, check, hand in, start over."""

import hashlib
import io
import json
import re
import tarfile
from pathlib import Path

import pytest
from helpers.commands import mistake, run_command, snapshot, succeed
from helpers.written import known_source, solution, written

from harness.errors import UserError
from harness.recipes.recipe import EXERCISES
from harness.student.hand_in import submit
from harness.submission.limits import ANSWER_BYTES
from harness.written.workspace import FileWorkspace, file_items, start_file_exercise

EXERCISE = "backprop_mlp"


@pytest.fixture
def workspace(tmp_path: Path) -> FileWorkspace:
    return start_file_exercise(written(EXERCISE), tmp_path / "work")[0]


def test_an_interrupted_start_is_completed_and_nothing_is_overwritten(workspace: FileWorkspace) -> None:
    files = {path.name for path in workspace.folder.iterdir()}
    assert files == {"backprop.py", "PROMPT.md", "workspace.json"}
    assert workspace.answer.read_text() == (EXERCISES / EXERCISE / "backprop.py").read_text()
    prompt = (workspace.folder / "PROMPT.md").read_text()
    assert prompt.startswith((EXERCISES / EXERCISE / "PROMPT.md").read_text())
    assert "make check BREAK=backprop_mlp" in prompt and "{" not in prompt
    workspace.answer.write_text("mine")
    assert start_file_exercise(workspace.exercise, workspace.folder.parent) == (workspace, False)
    (workspace.folder / "workspace.json").unlink()  # as after an interruption
    assert start_file_exercise(workspace.exercise, workspace.folder.parent) == (workspace, True)
    assert workspace.answer.read_text() == "mine"
    workspace.answer.unlink()
    assert "make exercise BREAK=backprop_mlp" in file_items(workspace)[0].message
    assert workspace.restore() == ["backprop.py"]


@pytest.mark.parametrize(
    ("content", "said", "blocks"),
    [
        (None, "There is no", True),
        (b"\xff", "not UTF-8 text", True),
        (b"#" * (ANSWER_BYTES + 1), "is larger than 128 KiB", True),
        ((EXERCISES / EXERCISE / "backprop.py").read_bytes(), "is still the original file", False),
    ],
)
def test_a_file_that_cannot_be_judged_says_why(
    content: bytes | None, said: str, blocks: bool, workspace: FileWorkspace, tmp_path: Path
) -> None:
    workspace.answer.unlink()
    if content is not None:
        workspace.answer.write_bytes(content)
    [item] = file_items(workspace)
    assert (item.outcome, item.blocks) == ("failed", blocks)
    assert said in item.message
    if blocks:
        with pytest.raises(UserError, match=f"Not packed, answer: file: .*{said}"):
            submit(workspace, "ada", tmp_path / "out")
    else:
        assert submit(workspace, "ada", tmp_path / "out").warnings == (item,)


def test_a_file_that_does_not_parse_is_not_packed_and_a_foreign_import_is_warned_of(
    workspace: FileWorkspace, tmp_path: Path
) -> None:
    workspace.answer.write_text("def forward(:\n")
    with pytest.raises(UserError, match=r"Not packed, answer: syntax: .*backprop.py cannot be parsed: .*line 1"):
        submit(workspace, "ada", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    workspace.answer.write_text("import numpy as np\nimport torch\n")
    [warning] = submit(workspace, "ada", tmp_path / "out").warnings
    assert warning.id == "form: imports"
    assert "backprop.py, line 2 imports torch: derive by hand, and import only numpy" in warning.message


def test_the_tarball_holds_the_file_and_a_manifest(workspace: FileWorkspace, tmp_path: Path) -> None:
    workspace.answer.write_text("x = 1\n")
    (workspace.folder / "notes.txt").write_text("mine")
    done = submit(workspace, "ada", tmp_path / "out")
    assert done.path == tmp_path / "out" / "ada_backprop_mlp.tar.gz"
    with tarfile.open(done.path) as tar:
        files = {name: (tar.extractfile(name) or io.BytesIO()).read() for name in tar.getnames()}
    assert files.keys() == {"manifest.json", "backprop.py"}
    assert json.loads(files["manifest.json"]) == {
        "format_version": 1,
        "student": "ada",
        "recipe": "backprop_mlp",
        "files": {"backprop.py": hashlib.sha256(b"x = 1\n").hexdigest()},
    }
    assert workspace.state() == "handed in"
    assert submit(workspace, "ada", tmp_path / "out").sha256 == done.sha256
    assert submit(workspace, "ada", tmp_path / "other").path.read_bytes() == done.path.read_bytes()
    with pytest.raises(UserError, match="cannot be part of a file name"):
        submit(workspace, "a/b", tmp_path / "out")


def test_from_the_first_command_to_starting_over(tmp_path: Path) -> None:
    assert "make check BREAK=backprop_mlp" in succeed("exercise", EXERCISE, cwd=tmp_path)
    answer = tmp_path / "work" / EXERCISE / "backprop.py"
    answer.write_text(known_source(EXERCISE, "no_mask"))
    done = run_command("check", EXERCISE, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "")
    assert "gradients: W1" in done.stdout.partition("failed")[2]
    written = solution(EXERCISE) + "\nprint('it is called')\n"
    answer.write_text(written)
    done = run_command("check", EXERCISE, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "it is called\n")
    assert "make submit BREAK=backprop_mlp STUDENT=<your login>" in done.stdout
    assert "failed" not in done.stdout
    succeed("submit", EXERCISE, "--student", "ada", cwd=tmp_path)
    assert (tmp_path / "submissions" / "ada_backprop_mlp.tar.gz").is_file()
    listed = succeed("exercises", cwd=tmp_path)
    assert re.search(r"backprop_mlp +handed in +Backpropagation by hand", listed)
    assert succeed("clean-work", EXERCISE, "--yes", cwd=tmp_path).startswith("Moved to ")
    kept = snapshot(tmp_path / "work")
    assert kept.keys() == {".gitignore", ".removed/backprop_mlp-1/backprop.py", ".progress/backprop_mlp.json"}
    assert kept[".removed/backprop_mlp-1/backprop.py"] == written.encode()
    assert succeed("exercises", cwd=tmp_path) == listed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("exercise", EXERCISE, "--seed", "3"), "backprop_mlp has no training run: remove --seed (SEED=)."),
        (("exercise", EXERCISE, "--resume"), "remove --resume (RESUME=)."),
        (("verify", EXERCISE), "The exercise backprop_mlp has no training run"),
        (("check", EXERCISE), "There is no workspace work/backprop_mlp: make exercise BREAK=backprop_mlp makes"),
        (("submit", EXERCISE), "Your login is missing"),
        (("clean-work", EXERCISE), "so there is nothing to delete"),
    ],
)
def test_a_wrong_call_ends_with_one_sentence(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    assert said in mistake(*words, cwd=tmp_path)
    assert not list(tmp_path.iterdir())
