"""An exercise whose answer is one file, by a student's commands: made, checked, handed in, started over."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest
from commands import mistake, run_command, snapshot, succeed
from deriving import known_answers, solution

from harness.errors import UserError
from harness.recipe import EXERCISES
from harness.submission.archive import submit_file
from harness.written.exercise import FileExercise, find_file_exercise
from harness.written.workspace import (
    ANSWER_BYTES,
    FileWorkspace,
    file_items,
    open_file_workspace,
    start_file_exercise,
)

EXERCISE = "backprop_mlp"


@pytest.fixture
def exercise() -> FileExercise:
    found = find_file_exercise(EXERCISE)
    assert found is not None
    return found


@pytest.fixture
def workspace(exercise: FileExercise, tmp_path: Path) -> FileWorkspace:
    return start_file_exercise(exercise, tmp_path / "work")[0]


def test_a_workspace_holds_the_file_and_what_is_asked(workspace: FileWorkspace) -> None:
    assert {path.name for path in workspace.folder.iterdir()} == {
        "backprop.py",
        "PROMPT.md",
        "workspace.json",
    }
    assert workspace.answer.read_text() == (EXERCISES / EXERCISE / "backprop.py").read_text()
    prompt = (workspace.folder / "PROMPT.md").read_text()
    assert prompt.startswith((EXERCISES / EXERCISE / "PROMPT.md").read_text())
    assert "make check BREAK=backprop_mlp" in prompt
    assert "{" not in prompt
    assert workspace.state() == "begun"


def test_nothing_of_the_students_is_overwritten(workspace: FileWorkspace, exercise: FileExercise) -> None:
    workspace.answer.write_text("mine")
    again, made = start_file_exercise(exercise, workspace.folder.parent)
    assert (made, again.answer.read_text()) == (False, "mine")
    (workspace.folder / "workspace.json").unlink()  # it was interrupted
    assert start_file_exercise(exercise, workspace.folder.parent) == (again, True)
    assert workspace.answer.read_text() == "mine"


def test_one_that_is_not_there_is_not_opened(exercise: FileExercise, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="make exercise BREAK=backprop_mlp makes it"):
        open_file_workspace(exercise, tmp_path)


@pytest.mark.parametrize(
    ("content", "said", "blocks"),
    [
        (None, "There is no", True),
        (b"\xff", "not UTF-8 text", True),
        (b"#" * (ANSWER_BYTES + 1), "is larger than 64 KiB", True),
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
        with pytest.raises(UserError, match=f"Not handed in, answer: file: .*{said}"):
            submit_file(workspace, "ada", tmp_path / "out")
    else:
        assert submit_file(workspace, "ada", tmp_path / "out").warnings == (item,)


def test_the_tarball_holds_the_file_and_a_manifest(workspace: FileWorkspace, tmp_path: Path) -> None:
    workspace.answer.write_text("x = 1\n")
    (workspace.folder / "notes.txt").write_text("mine")
    done = submit_file(workspace, "ada", tmp_path / "out")
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
    assert workspace.state() == "submitted"
    assert submit_file(workspace, "ada", tmp_path / "out").unchanged
    assert submit_file(workspace, "ada", tmp_path / "other").path.read_bytes() == done.path.read_bytes()
    with pytest.raises(UserError, match="cannot be part of a file name"):
        submit_file(workspace, "a b", tmp_path / "out")


# --- by the commands --------------------------------------------------------------------------------------


def test_from_the_first_command_to_the_tarball(exercise: FileExercise, tmp_path: Path) -> None:
    said = succeed("exercise", EXERCISE, cwd=tmp_path)
    assert "make check BREAK=backprop_mlp" in said
    answer = tmp_path / "work" / EXERCISE / "backprop.py"
    assert run_command("check", EXERCISE, cwd=tmp_path).returncode == 2
    answer.write_text(solution(EXERCISE) + "\nprint('it is called')\n")
    done = run_command("check", EXERCISE, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "it is called\n")
    assert "make submit BREAK=backprop_mlp STUDENT=<your login>" in done.stdout
    assert "failed" not in done.stdout
    succeed("submit", EXERCISE, "--student", "ada", cwd=tmp_path)
    assert (tmp_path / "submissions" / "ada_backprop_mlp.tar.gz").is_file()
    listed = succeed("exercises", cwd=tmp_path)
    assert "backprop_mlp   derivation     backprop.py   submitted\n" in listed
    assert "layernorm      derivation     layernorm.py  not started\n" in listed


def test_starting_over_keeps_the_file(tmp_path: Path) -> None:
    succeed("exercise", EXERCISE, cwd=tmp_path)
    (tmp_path / "work" / EXERCISE / "backprop.py").write_text("mine")
    said = succeed("clean-work", EXERCISE, "--yes", cwd=tmp_path)
    assert said.startswith("Moved to ")
    assert snapshot(tmp_path / "work") == {".removed/backprop_mlp-1/backprop.py": b"mine"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("exercise", EXERCISE, "--seed", "3"), "backprop_mlp trains nothing: leave --seed (SEED=) out."),
        (("exercise", EXERCISE, "--batch", "3"), "leave --batch (BATCH=) out."),
        (("exercise", EXERCISE, "--resume"), "leave --resume (RESUME=) out."),
        (("verify", EXERCISE), "backprop_mlp trains nothing, so it has no run"),
        (("check", EXERCISE), "There is no workspace work/backprop_mlp"),
        (("submit", EXERCISE, "--student", "ada"), "There is no workspace work/backprop_mlp"),
        (("submit", EXERCISE), "Say who hands this in"),
        (("clean-work", EXERCISE), "nothing to start over"),
        (("exercise", "backprop"), "did you mean backprop_mlp?"),
    ],
)
def test_a_wrong_call_ends_with_one_sentence(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    assert said in mistake(*words, cwd=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("no_mask", "gradient: W1"),
        ("loop_over_samples", "it loops over"),
        ("no_python", "answer: syntax"),
        ("exits", "ended its process, with status 0"),
        ("endless", "more than 300000 instructions"),
    ],
)
def test_what_is_wrong_is_said_before_it_is_handed_in(id: str, said: str, tmp_path: Path) -> None:
    succeed("exercise", EXERCISE, cwd=tmp_path)
    kinds = "next(kind for kind in ().__class__.__base__.__subclasses__() if kind.__name__ == '_wrap_close')"
    known = {
        "exits": {"source": f"{kinds}.__init__.__globals__['_exit'](0)\n"},
        **known_answers(EXERCISE),
    }
    (tmp_path / "work" / EXERCISE / "backprop.py").write_text(known[id]["source"])
    done = run_command("check", EXERCISE, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    failures = done.stdout.partition("✗")[2]
    assert all(word in failures for word in said.split())
