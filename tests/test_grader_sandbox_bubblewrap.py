"""A sandboxed process sees only libraries and its own files on this machine."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from attacks import attempts
from helpers.sandbox_marks import needs_sandbox
from helpers.sandboxed import (
    engine,  # noqa: F401 - a fixture
    sandboxed,
)

from grader.course.kit import kit_files
from grader.replay.replayer import visible_folders
from grader.sandbox import HIDDEN_FROM_STUDENTS, bubblewrap
from grader.sandbox.bubblewrap import hidden_paths
from harness.recipes.recipe import ROOT

in_both_engines = pytest.mark.usefixtures("engine")


@needs_sandbox
@in_both_engines
def test_the_environment_is_what_was_given() -> None:
    code = "import os; print(sorted(name for name in os.environ if name != 'LC_CTYPE'), os.environ['ONE'])"
    result = sandboxed(code, environment={"ONE": "1", "MKL_CBWR": "COMPATIBLE"})
    assert result.stdout == b"['MKL_CBWR', 'ONE'] 1\n"


@needs_sandbox
@in_both_engines
def test_no_attempt_to_get_out_gains_anything(tmp_path: Path) -> None:
    known = {"canary": str(tmp_path / "home" / "canary"), "submissions": str(tmp_path / "submissions")}
    for path in map(Path, known.values()):
        path.parent.mkdir(exist_ok=True)
    (tmp_path / "home" / "canary").write_text("of the grader")
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions" / "ada").write_text("of another student")
    known |= {"suite": str(ROOT), "machine": platform.node()}
    source = Path(attempts.__file__).read_text(encoding="utf-8")
    code = f"import sys; sys.path.append({str(ROOT)!r})\n{source}\nprint(gains({known!r}))"
    result = sandboxed(code, visible=visible_folders(), inputs={"job.json": b"{}"})
    assert result.stdout == b"{}\n", result


@needs_sandbox
def test_a_grader_that_was_started_by_a_path_with_dots_makes_runs(tmp_path: Path) -> None:
    for name in ("shown", "hidden"):
        (tmp_path / name).mkdir()
    (tmp_path / "shown" / "script.py").write_text("import numpy, sys; print(numpy.__name__, '..' in sys.executable)")
    code = """
import sys
from dataclasses import replace
from pathlib import Path
from grader.replay.replayer import RUN_LIMITS, replay_interpreter
from grader.sandbox import SandboxCommand, run_in_sandbox
script, python = Path(sys.argv[1]), replay_interpreter()
python = replace(python, visible=[*python.visible, script.parent], preload=None)
print('..' in sys.executable, run_in_sandbox(SandboxCommand(script, python, {}, RUN_LIMITS), None))
"""
    # Python keeps the ".." of a relative path, and the sandbox does not contain the folder at its beginning.
    done = subprocess.run(
        [os.path.relpath(sys.executable, tmp_path / "hidden"), "-c", code, tmp_path / "shown" / "script.py"],
        cwd=tmp_path / "hidden",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("True ")
    assert "numpy False" in done.stdout, done


@needs_sandbox
@in_both_engines
def test_a_visible_path_is_seen_and_cannot_be_changed(tmp_path: Path) -> None:
    (tmp_path / "shown").mkdir()
    (tmp_path / "shown" / "file").write_text("content")
    (tmp_path / "other").write_text("hidden")
    code = f"""
import os
print(open({str(tmp_path / "shown" / "file")!r}).read(), os.listdir({str(tmp_path)!r}))
open({str(tmp_path / "shown" / "new")!r}, 'w')
"""
    result = sandboxed(code, visible=[tmp_path / "shown"])
    assert result.stdout == b"content ['shown']\n"
    assert b"Read-only file system" in result.stderr


def test_somebody_without_a_home_has_none_to_hide(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert ROOT / "solutions" in hidden_paths()


def files_below(folder: Path) -> set[str]:
    """Return the files of the suite in a folder, by relative path, without Python's compiled files."""
    paths = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in paths}


def opened_inside(paths: Sequence[Path], visible: Sequence[Path]) -> set[str]:
    """Return the files among these paths that a sandboxed process can open."""
    code = """
import json
opened = []
for path in json.load(open('/input/paths.json')):
    try:
        open(path, 'rb').read(1)
        opened.append(path)
    except OSError:
        pass
print(json.dumps(opened))
"""
    result = sandboxed(code, visible=visible, inputs={"paths.json": json.dumps([str(path) for path in paths]).encode()})
    assert result.status == "OK", result
    return set(json.loads(result.stdout))


def test_it_is_what_the_kit_keeps_back() -> None:
    harness, handed_out = files_below(ROOT / "harness"), set(kit_files())
    assert {name for name in harness if name.removeprefix("harness/").startswith(HIDDEN_FROM_STUDENTS)} == {
        name for name in harness if name not in handed_out
    }
    # Each line of the list names an existing file or folder.
    assert [name for name in HIDDEN_FROM_STUDENTS if not (ROOT / "harness" / name).exists()] == []


@needs_sandbox
def test_a_replay_can_open_what_the_kit_holds_of_the_harness() -> None:
    folders = ("harness", "exercises", "solutions", "grader", "tests", "benchmarks", "docs")
    names = set().union(*(files_below(ROOT / folder) for folder in folders))
    expected = {name for name in names & set(kit_files()) if name.startswith("harness/")}
    expected |= {name for name in names if name.startswith("grader/replay/inside/")}
    opened = opened_inside([ROOT / name for name in sorted(names)], visible_folders())
    assert {Path(path).relative_to(ROOT).as_posix() for path in opened} == expected


def suite_in(folder: Path) -> Path:
    """Make a suite as an instructor may have it, with Python's compiled files."""
    suite = folder / "suite"
    for name in (
        "harness/trainer.py",
        "harness/checks/data.py",
        "harness/__pycache__/trainer.cpython-311.pyc",
        "harness/experiments/digits_mlp.py",
        "harness/experiments/__pycache__/digits_mlp.cpython-311.pyc",
        "harness/data/embedded/digits.npz",
        "grader/replay/inside/replay.py",
        "grader/score/rubric.toml",
        "exercises/huge_lr/recipe.toml",
        "final-projects/bob.tar.gz",
        "reports/scores.json",
    ):
        path = suite / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return suite


@needs_sandbox
@pytest.mark.parametrize("around", [True, False], ids=["all around it is visible", "the suite itself is"])
def test_a_suite_inside_a_visible_folder_shows_no_more(
    around: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = suite_in(tmp_path)
    monkeypatch.setattr(bubblewrap, "_ROOT", suite)
    visible = [suite / "harness", suite / "grader" / "replay" / "inside", tmp_path if around else suite]
    files = sorted(path for path in suite.rglob("*") if path.is_file())
    opened = {path.removeprefix(f"{suite}/") for path in opened_inside(files, visible)}
    expected = {
        "harness/trainer.py",
        "harness/checks/data.py",
        "harness/__pycache__/trainer.cpython-311.pyc",
        "harness/data/embedded/digits.npz",
        "grader/replay/inside/replay.py",
    }
    # A caller who shows the whole suite also shows files that no list can know.
    assert opened == expected | (set() if around else {"final-projects/bob.tar.gz", "reports/scores.json"})
