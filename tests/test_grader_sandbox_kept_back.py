"""What the kit keeps from students cannot be read by what they send, either."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from sandbox_marks import needs_sandbox
from sandboxed import SMALL, sandboxed

from grader.course.kit import kit_files
from grader.replay.replayer import Replayer, visible_folders
from grader.replay.requests import Request
from grader.sandbox import mounts, run_in_sandbox
from grader.sandbox.kept_back import KEPT_BACK
from harness.recipe import ROOT, load_recipe
from harness.run.settings import RunSettings


def files_below(folder: Path) -> set[str]:
    """Return the files of the suite below a folder, by their paths in it, without what Python made of them."""
    paths = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in paths}


def opened_inside(paths: Sequence[Path], visible: Sequence[Path]) -> set[str]:
    """Return which of these files a sandboxed process can open."""
    code = """
import json, sys
opened = []
for path in json.load(sys.stdin):
    try:
        open(path, 'rb').read(1)
        opened.append(path)
    except OSError:
        pass
print(json.dumps(opened))
"""
    result = sandboxed(code, visible=visible, stdin=json.dumps([str(path) for path in paths]).encode())
    assert result.status == "OK", result
    return set(json.loads(result.stdout))


def test_it_is_what_the_kit_keeps_back() -> None:
    harness = files_below(ROOT / "harness")
    assert {name for name in harness if name.removeprefix("harness/").startswith(KEPT_BACK)} == {
        name for name in harness if name not in kit_files()
    }
    # And each of its lines is about something that is there.
    assert [name for name in KEPT_BACK if not (ROOT / "harness" / name).exists()] == []


@needs_sandbox
def test_a_replay_can_open_what_the_kit_holds_of_the_harness_and_the_probes() -> None:
    folders = ("harness", "exercises", "solutions", "grader", "tests", "benchmarks", "docs")
    names = set().union(*(files_below(ROOT / folder) for folder in folders))
    expected = {name for name in kit_files() if name.startswith("harness/")} | {"harness/checks/probes.py"}
    expected |= {name for name in names if name.startswith("grader/replay/inside/")}
    opened = opened_inside([ROOT / name for name in sorted(names)], visible_folders())
    assert {Path(path).relative_to(ROOT).as_posix() for path in opened} == expected


@needs_sandbox
@pytest.mark.parametrize("module", ["harness.experiments.digits_mlp", "grader.replay.heldout.make_shapes"])
def test_what_is_kept_back_cannot_be_imported(module: str) -> None:
    code = f"""
import harness.errors
try:
    import {module}
except (ImportError, OSError) as error:
    print('refused')
"""
    result = run_in_sandbox(
        [sys.executable, "-P", "-c", code], inputs={}, environment={}, limits=SMALL, visible=visible_folders()
    )
    assert result.stdout == b"refused\n", result


@needs_sandbox
def test_an_experiment_that_takes_the_healthy_one_fails(tmp_path: Path) -> None:
    recipe = load_recipe("huge_lr")
    settings = RunSettings(seed=recipe.seed, dataset=recipe.dataset, epochs=1)
    source = recipe.broken_source() + "\n\nfrom harness.experiments.digits_mlp import build_optimizer\n"
    request = Request(recipe, settings, source, "tree", trusted=False)
    found = Replayer(run_in_sandbox, tmp_path).make(request)
    assert found.status == "RE"
    assert "ModuleNotFoundError: No module named 'harness.experiments" in found.message


def suite_in(folder: Path) -> Path:
    """Make a suite as an instructor may have it, with what Python compiled in it."""
    suite = folder / "suite"
    for name in (
        "harness/trainer.py",
        "harness/checks/probes.py",
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
    monkeypatch.setattr(mounts, "_ROOT", suite)
    visible = [suite / "harness", suite / "grader" / "inside", tmp_path if around else suite]
    files = sorted(path for path in suite.rglob("*") if path.is_file())
    opened = {path.removeprefix(f"{suite}/") for path in opened_inside(files, visible)}
    expected = {
        "harness/trainer.py",
        "harness/checks/probes.py",
        "harness/__pycache__/trainer.cpython-311.pyc",
        "harness/data/embedded/digits.npz",
        "grader/replay/inside/replay.py",
    }
    # Who shows the whole suite shows what no list can know.
    assert opened == expected | (set() if around else {"final-projects/bob.tar.gz", "reports/scores.json"})
