"""The two wheels: the suite works without the rest of this repository, and the watch works without the suite."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import mistake, run_command, succeed

import trainwreck
from grader.course.kit import build_kit
from grader.replay.request import code_hash
from grader.score.self_test import reference_report
from harness import __version__
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import ROOT
from harness.recipes.suite import without_make
from harness.run.provenance import harness_hash


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("make exercises lists them.", "harness exercises lists them."),
        ("4. make verify BREAK=a WORK='/b c'", "4. harness verify a --work '/b c'"),
        ("`make submit BREAK=a STUDENT=<your login>` packs", "`harness submit a --student <your login>` packs"),
        ("give it once (make clean-work BREAK=a YES=1).", "give it once (harness clean-work a --yes)."),
        ("make verify BREAK=mystery-1-3 WHICH=1 names them", "harness verify mystery-1-3 --which names them"),
        ("make verify BREAK=case-00017 HEALTHY=1", "harness verify case-00017 --healthy"),
        ("make next LEVEL=3 SKIP=1 WORK=mine", "harness next --level 3 --skip --work mine"),
        ("fetch it again with `make data DATASET=mnist`", "fetch it again with `harness fetch mnist`"),
        ("make the run again, and make a test", "make the run again, and make a test"),
        ("`.venv/bin/harness causes` prints it", "`harness causes` prints it"),
        ("make interview-run, then make finish", "harness interview run, then harness interview finish"),
        (
            "make interview starts one; make interview AGAIN=1",
            "harness interview starts one; harness interview --again",
        ),
    ],
)
def test_commands_of_make_have_a_form_without_it(text: str, typed: str) -> None:
    assert without_make(text) == typed


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    # Build as `make dist` does, but with the setuptools of this environment, so that nothing is downloaded.
    words: list[str | Path] = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.name for path in folder.glob("*.tar.gz")] == [f"trainwreck_course-{__version__}.tar.gz"]
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def watch_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of the package `trainwreck` from a copy of its folder, without the rest of this repository."""
    source, folder = tmp_path_factory.mktemp("source") / "trainwreck", tmp_path_factory.mktemp("dist")
    shutil.copytree(ROOT / "trainwreck", source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    words: list[str | Path] = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, source]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.name for path in folder.glob("*.tar.gz")] == [f"trainwreck-{trainwreck.__version__}.tar.gz"]
    (found,) = folder.glob("*.whl")
    return found


def environment_with(folder: Path, *words: str | Path) -> Path:
    """Make an environment that finds our packages, install something with pip, and return its interpreter."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    # Python ignores the .pth files in this folder, so it does not find this repository.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    options = ("--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", "--no-build-isolation")
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", *options, *words], check=True)
    return python


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the commands folder of an environment with the wheel and the packages that it needs."""
    folder = tmp_path_factory.mktemp("installed") / ".venv"
    venv.create(folder, symlinks=True, with_pip=True)
    words = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", wheel)
    subprocess.run([folder / "bin" / "python", *words], check=True)
    packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    # Copy the packages, because the sandbox shows only the environment, without the targets of links and .pth files.
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "trainwreck" not in path.name and not (packages / path.name).exists():
            copy_or_link(path, packages / path.name)
    return folder / "bin"


def copy_or_link(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, copy_function=link)
    else:
        link(source, target)


def link(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # a different file system
        shutil.copy2(source, target)


@pytest.fixture
def options(installed: Path, tmp_path: Path) -> dict[str, Any]:
    """Return options to run commands in an empty folder, with empty caches, and without this repository."""
    (tmp_path / "empty").mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TRAINWRECK"))}
    environment |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "COLUMNS": "80", "NO_COLOR": "1"}
    return {"cwd": tmp_path / "empty", "env": environment, "program": (str(installed / "harness"),)}


@pytest.mark.slow
def test_it_holds_every_file_of_the_suite(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True, check=True).stdout
    tracked = [name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    expected = {name for name in tracked if name.startswith(("grader/", "harness/"))}
    beside = ("docs/", "exercises/", "solutions/", "trainwreck/")
    expected |= {f"trainwreck_suite/{name}" for name in tracked if name.startswith(beside)}
    assert sorted(expected - names) == []
    of_tests = [name for name in names if name.startswith(("tests/", "benchmarks/", ".")) or "__pycache__" in name]
    assert of_tests == []


@pytest.mark.slow
def test_the_wheels_share_no_file_and_the_watch_has_one_package(wheel: Path, watch_wheel: Path) -> None:
    names = set(zipfile.ZipFile(watch_wheel).namelist())
    assert names & set(zipfile.ZipFile(wheel).namelist()) == set()
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "trainwreck"], capture_output=True, text=True, check=True)
    expected = {name for name in listed.stdout.split() if name.endswith((".py", ".typed"))}
    assert {name for name in names if ".dist-info/" not in name} == expected
    (folder,) = {name.partition("/")[0] for name in names} - {"trainwreck"}
    assert zipfile.ZipFile(watch_wheel).read(f"{folder}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    metadata = message_from_bytes(zipfile.ZipFile(watch_wheel).read(f"{folder}/METADATA"))
    assert metadata.get_all("Requires-Dist") == ["rich>=13.7", "torch>=2.4"]
    assert metadata["Requires-Python"] == ">=3.10"
    assert str(metadata.get_payload()).startswith("# trainwreck\n")


@pytest.mark.slow
def test_the_watch_works_without_the_suite(watch_wheel: Path, tmp_path: Path) -> None:
    python = environment_with(tmp_path / ".venv", watch_wheel)
    page = (ROOT / "trainwreck" / "README.md").read_text(encoding="utf-8")
    (tmp_path / "train.py").write_text(re.findall(r"```python\n(import torch\n.*?)```", page, re.DOTALL)[0])
    (tmp_path / "test_train.py").write_text("def test_it(watched): watched('train.py', allow=['gradients/stale'])\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    options: dict[str, Any] = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run([python, "-m", "trainwreck", "train.py"], check=False, **options)
    assert done.returncode == 1 and "gradients/stale" in done.stdout, done.stderr
    done = subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider"], check=False, **options)
    assert "1 passed" in done.stdout, done.stdout  # the plugin needs no option
    found = "import trainwreck, importlib.util as u; print(trainwreck.__file__, u.find_spec('harness'))"
    done = subprocess.run([python, "-c", found], check=True, **options)
    assert done.stdout.startswith(str(tmp_path / ".venv")) and done.stdout.endswith(" None\n")


@pytest.mark.slow
def test_an_editable_installation_finds_both(tmp_path: Path) -> None:
    python = environment_with(tmp_path / ".venv", "-e", ROOT)
    code = "import trainwreck, harness; print(trainwreck.__file__, harness.__file__, sep='\\n')"
    done = subprocess.run([python, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(ROOT / name / "__init__.py") for name in ("trainwreck", "harness")]


@pytest.mark.slow
@pytest.mark.usefixtures("working_sandbox")
def test_an_exercise_is_made_fixed_handed_in_and_scored_with_it(options: dict[str, Any], installed: Path) -> None:
    folder = options["cwd"]
    assert succeed("--version", **options) == f"harness, version {__version__}\n"
    assert "huge_lr" in succeed("exercises", **options)
    said = succeed("exercise", "huge_lr", **options)
    assert "harness verify huge_lr" in said and "make " not in said
    workspace = folder / "work" / "huge_lr"
    prompt = (workspace / "PROMPT.md").read_text()
    assert "`harness submit huge_lr --student <your login>`" in prompt and "`make" not in prompt
    assert "Next" in succeed("triage", "huge_lr", **options)
    recipe = load_recipe("huge_lr")
    (workspace / "experiment.py").write_text(recipe.healthy_source())
    assert "Fixed, as far as your machine can tell" in succeed("verify", "huge_lr", **options)
    logs = [(workspace / "runs" / run / "metrics.log").read_text() for run in ("broken", "fixed")]
    (workspace / "report.md").write_text(reference_report(recipe, *logs))
    assert "harness exercises" in succeed("submit", "huge_lr", "--student", "ada", **options)

    grader = options | {"program": (str(installed / "grader"),)}
    done = run_command("score", "submissions", **grader)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    scores = json.loads((folder / "reports" / "scores.json").read_text())
    (row,) = scores["submissions"]
    assert row["criteria"]["fix"]["points"] == 20
    assert scores["provenance"]["grader"] == __version__ and scores["provenance"]["sandbox"] is True
    assert scores["provenance"]["harness_sha256"] == harness_hash()


@pytest.mark.slow
def test_it_makes_the_same_kits_and_leaves_the_suite_as_it_is(
    options: dict[str, Any], installed: Path, tmp_path: Path
) -> None:
    grader = options | {"program": (str(installed / "grader"),)}
    succeed("kit", **grader)
    build_kit(tmp_path / "ours.tar.gz")
    assert (options["cwd"] / "kit.tar.gz").read_bytes() == (tmp_path / "ours.tar.gz").read_bytes()
    python = options | {"program": (str(installed / "python"), "-P", "-c")}
    code = "from grader.replay.request import code_hash as h; from harness.run.provenance import git_commit as g"
    assert succeed(f"{code}; print(h(), g())", **python) == f"{code_hash()} None\n"
    words = ("new-recipe", "a_break", "--experiment", "digits_mlp", "--find", "a", "--replace", "b")
    assert "use it in a clone of the repository" in mistake(*words, **grader).replace("\n", " ")
    assert "use it in a clone of the repository" in mistake("selfcheck", "--write", **grader).replace("\n", " ")


@pytest.mark.slow
@pytest.mark.usefixtures("working_sandbox")
def test_its_sandbox_shows_other_packages_and_no_answer(options: dict[str, Any], installed: Path) -> None:
    look = """
import torch
from pathlib import Path
place = Path(torch.__file__).parents[1]
folders = ("grader", "harness/experiments", "trainwreck_suite")
print(*sorted(p.relative_to(place).as_posix() for f in folders for p in (place / f).rglob("*.*") if p.is_file()))
"""
    code = """
import subprocess, sys
from grader.replay.replayer import visible_folders
from grader.sandbox.bubblewrap import hidden_paths, mounts
words = ["bwrap", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
words += mounts(visible_folders(), hidden_paths())
sys.exit(subprocess.run([*words, sys.executable, "-P", "-c", sys.argv[1]]).returncode)
"""
    python = options | {"program": (str(installed / "python"), "-P", "-c")}
    found = {name for name in succeed(code, look, **python).split() if "__pycache__" not in name}
    inside = ROOT / "grader" / "replay" / "inside"
    library = {name for name in found if name.startswith("trainwreck_suite/trainwreck/")}
    assert "trainwreck_suite/trainwreck/runs.py" in library
    assert found - library == {f"grader/replay/inside/{path.name}" for path in inside.glob("*.py")}
