import hashlib
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from helpers.commands import snapshot, succeed
from helpers.notebooks import run_notebook
from helpers.page_links import dead_links

from grader.cli import cli
from grader.course.kit import build_kit, kit_files
from harness.errors import UserError
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import ROOT, KitRecipe, experiment_names, experiment_source, recipe_ids
from harness.run.provenance import harness_hash
from harness.student.check_commands import documentation
from harness.written.exercise import FileExercise, FunctionExercise, file_exercise_ids, load_exercise

ALL = recipe_ids()


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the kit after a student has unpacked it."""
    folder = tmp_path_factory.mktemp("instructor")
    build_kit(folder / "kit.tar.gz")
    subprocess.run(["tar", "-xzf", folder / "kit.tar.gz", "-C", folder], check=True)
    return folder / "trainwreck"


@pytest.fixture(scope="module")
def files(kit: Path) -> dict[str, bytes]:
    return snapshot(kit)


@pytest.fixture(scope="module")
def texts(files: dict[str, bytes]) -> dict[str, str]:
    return {name: data.decode() for name, data in files.items() if not name.endswith(".npz")}


@pytest.fixture(scope="module")
def python(kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an interpreter that finds the kit and the installed packages, but not this repository."""
    folder = tmp_path_factory.mktemp("student") / ".venv"
    venv.create(folder, symlinks=True)
    packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    # Python searches a folder that a .pth file names, but ignores .pth files in that folder. One names the repository.
    (packages / "kit.pth").write_text(f"{kit}\n{sysconfig.get_path('purelib')}\n")
    return folder / "bin" / "python"


def test_it_holds_what_students_use_and_nothing_of_the_instructors(files: dict[str, bytes]) -> None:
    own = ("PROMPT.md", "recipe.toml", "goal.toml", "behaviour.txt", "experiment.py")
    exercises = {f"exercises/{name}/{file}" for name in ALL for file in own}
    for exercise in map(load_exercise, file_exercise_ids()):
        assert isinstance(exercise, FileExercise)
        expected = ["expected.txt"] if isinstance(exercise, FunctionExercise) else []
        exercises |= {
            f"exercises/{exercise.id}/{name}" for name in ("PROMPT.md", "judge.toml", exercise.file, *expected)
        }
    assert {name for name in files if name.startswith("exercises/")} == exercises
    assert {name.split("/")[0] for name in files} == {
        ".devcontainer", ".github", ".gitignore", ".vscode", "Dockerfile", "LICENSE", "Makefile", "NOTICE", "README.md",
        "docs", "exercises", "harness", "kit.sha256", "pyproject.toml", "trainwreck",
    }  # fmt: skip
    harness = {name for name in files if name.startswith("harness/")} - {"harness/submission/causes.json"}
    assert [name for name in harness if files[name] != (ROOT / name).read_bytes()] == []
    assert [name for name in files if re.search(r"experiments/|heldout|__pycache__|/\.", name)] == []


def test_whatever_is_imported_is_there(texts: dict[str, str]) -> None:
    imported = {
        f"harness/{match.replace('.', '/')}"
        for name, text in texts.items()
        if name.endswith(".py")
        for match in re.findall(r"^\s*from harness\.([\w.]+) import", text, re.MULTILINE)
    }
    assert len(imported) > 30
    assert [name for name in imported if not {f"{name}.py", f"{name}/__init__.py"} & set(texts)] == []


@pytest.mark.parametrize("recipe_id", ALL)
def test_the_broken_experiment_is_written_out_and_its_recipe_tells_no_more(
    recipe_id: str, kit: Path, texts: dict[str, str]
) -> None:
    ours, theirs = load_recipe(recipe_id), load_recipe(recipe_id, kit / "exercises")
    assert isinstance(theirs, KitRecipe)
    assert theirs.broken_source() == ours.broken_source() == texts[f"exercises/{recipe_id}/experiment.py"]
    assert theirs.hints == ours.hints
    table = tomllib.loads(texts[f"exercises/{recipe_id}/recipe.toml"])
    assert set(table) == {"format_version", "title", "experiment", "dataset", "seed", "hints"}
    with pytest.raises(UserError, match=f"A course kit does not contain the healthy experiment {ours.experiment}: "):
        theirs.healthy_source()


def test_no_text_gives_an_answer_away(texts: dict[str, str]) -> None:
    secrets = {experiment_source(name) for name in experiment_names()}
    for recipe in map(load_recipe, ALL):
        secrets |= {*recipe.hints}
    lines = {
        line.strip()
        for path in (ROOT / "solutions").rglob("*.*")
        for line in path.read_text(encoding="utf-8").splitlines()
        # The first line of a function is part of the task.
        if len(line.strip()) > 40 and not line.startswith("def ")
    }
    assert len(lines) > 20
    pages = {name: text for name, text in texts.items() if not name.startswith("harness/")}
    for name, text in pages.items():
        assert [secret for secret in secrets if secret in text] == [], name
        assert re.findall(r"\[\[(?:break|symptom|observation|variant)\b", text) == [], name
        if not name.endswith(("PROMPT.md", "experiment.py")):
            assert lines & {line.strip() for line in text.splitlines()} == set(), name
    assert not secrets & set(texts.values())


def test_an_exercise_that_holds_its_answer_stops_the_kit(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = type(load_recipe(ALL[0]))
    monkeypatch.setattr(recipe, "broken_source", recipe.healthy_source)
    with pytest.raises(UserError, match="would reveal an answer"):
        kit_files()


def test_its_makefile_and_its_project_are_the_students_part_of_ours(texts: dict[str, str]) -> None:
    project, theirs = (tomllib.loads((ROOT / "pyproject.toml").read_text()), tomllib.loads(texts["pyproject.toml"]))
    for key in ("name", "dynamic", "license-files", "requires-python", "dependencies"):
        assert theirs["project"][key] == project["project"][key]
    assert set(theirs["project"]["optional-dependencies"]) == {"tensorboard", "vision"}
    assert "grader" not in texts["pyproject.toml"]
    ours = (ROOT / "Makefile").read_text()
    # A kit refuses these options, so its help does not list them.
    refused = r"^#: .*(BREAK=mystery|BREAK=case-|next LEVEL=|make reveal).*\n"
    assert re.sub(refused, "", ours, flags=re.MULTILINE).startswith(texts["Makefile"])
    assert "#:   make hint" in texts["Makefile"] and "#:   make reveal" not in texts["Makefile"]
    assert "grader" not in texts["Makefile"].partition("PYTHON ?=")[2]
    help = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for verb in set(re.findall(r"^([a-z][a-z-]*):", ours, re.MULTILINE)) - {"help"}:
        assert re.search(rf"(make|\|) {verb}\b", help), verb


def test_its_pages_name_only_what_is_there(texts: dict[str, str], files: dict[str, bytes]) -> None:
    verbs = set(re.findall(r"^([a-z][a-z-]*):", texts["Makefile"], re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", texts["README.md"], re.M)) <= verbs
    pages = {name: text for name, text in texts.items() if name.endswith((".md", ".ipynb"))}
    assert list(dead_links(pages, frozenset(files))) == []
    for name in texts.keys() - {"NOTICE"}:  # its NOTICE describes the whole suite
        assert set(re.findall(r"(?<![\w/.-])docs/[\w-]+\.md", texts[name])) <= files.keys(), name
    assert files["docs/checks.md"].decode() == documentation()


def test_the_listing_names_every_file_but_notebooks_and_the_bytes_are_the_same_anywhere(
    kit: Path, files: dict[str, bytes], tmp_path: Path
) -> None:
    tarball = kit.with_name("kit.tar.gz")
    again = tmp_path / "another.tar.gz"
    again.write_text("login,name\n")
    done = CliRunner().invoke(cli, ["kit", "--out", str(again)])
    assert "exists and is not a kit" in str(done.exception)
    assert again.read_text() == "login,name\n"
    again.write_bytes(tarball.read_bytes())
    done = CliRunner().invoke(cli, ["kit", "--out", str(again)])
    assert done.exit_code == 0, done.output
    assert f"{len(recipe_ids()) + len(file_exercise_ids())} exercises" in done.output
    assert again.read_bytes() == tarball.read_bytes()
    digest, name = kit.with_name("kit.tar.gz.sha256").read_text().split()
    assert (digest, name) == (hashlib.sha256(tarball.read_bytes()).hexdigest(), "kit.tar.gz")
    assert {path.name for path in kit.parent.iterdir()} == {kit.name, "kit.tar.gz", "kit.tar.gz.sha256"}
    checked = subprocess.run(["sha256sum", "--quiet", "-c", "kit.sha256"], cwd=kit, capture_output=True)
    assert (checked.returncode, checked.stdout) == (0, b"")
    # Jupyter saves a notebook with its outputs, which does not change any run.
    unlisted = set(files) - {line.split("  ")[1] for line in files["kit.sha256"].decode().splitlines()}
    assert unlisted == {"kit.sha256", "docs/start.ipynb"}


def test_its_container_and_its_workflow_use_only_what_is_there(
    texts: dict[str, str], files: dict[str, bytes], kit: Path
) -> None:
    container = json.loads(texts[".devcontainer/devcontainer.json"])
    assert posixpath.normpath(posixpath.join(".devcontainer", container["build"]["dockerfile"])) in files
    docker = texts["Dockerfile"]
    for line in re.findall(r"^COPY --chown=student (.*) \S+$", docker, re.MULTILINE):
        assert [name for name in line.split() if not (kit / name).exists()] == []
    workflow = yaml.safe_load(texts[".github/workflows/check.yml"])
    steps = workflow["jobs"]["check"]["steps"]
    verbs = set(re.findall(r"^([a-z][a-z-]*):", texts["Makefile"], re.MULTILINE))
    commands = "\n".join(step.get("run", "") for step in steps)
    shell = "\n".join((commands, container["postCreateCommand"]))
    used = re.findall(r"make (?:-B )?([a-z]+)(?= BREAK|$)", shell, re.MULTILINE)
    assert set(used) == {"check", "exercises", "submit"} <= verbs
    for step in steps:
        subprocess.run(["bash", "-n", "-c", step.get("run", "")], check=True)
    index = workflow["jobs"]["check"]["env"]["PIP_EXTRA_INDEX_URL"]
    assert f'PIP_EXTRA_INDEX_URL="{index}"' in docker


def test_a_student_commits_all_of_the_work_and_nothing_that_is_made_again(kit: Path, tmp_path: Path) -> None:
    work = ("experiment.py", "report.md", "runs/broken/metrics.log", "runs/fixed/checkpoint.pt", "workspace.json")
    kept = [*(f"work/huge_lr/{name}" for name in work), "work/.student", "work/.progress/huge_lr.json"]
    made = [".venv/bin/python", "submissions/ada_huge_lr.tar.gz", "harness/__pycache__/trainer.pyc"]
    shutil.copyfile(kit / ".gitignore", tmp_path / ".gitignore")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    words = ["git", "-C", str(tmp_path), "check-ignore", "--no-index", *kept, *made]
    assert subprocess.run(words, capture_output=True, text=True).stdout.split() == made


@pytest.mark.slow
def test_a_run_made_with_it_has_the_bytes_of_one_made_here(python: Path, tmp_path: Path) -> None:
    words = ("-P", "-m", "harness.trainer", "--break", ALL[0], "--epochs", "1", "--max-steps", "5", "--out")
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    for interpreter, name in ((python, "kit"), (Path(sys.executable), "here")):
        command = [str(interpreter), *words, name]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    there, here = (snapshot(tmp_path / name) for name in ("kit", "here"))
    for name in ("metrics.log", "checkpoint.pt", "experiment.py", "inputs.json"):
        assert there[name] == here[name]
    sources = {json.loads(run["checkpoint.pt.meta.json"])["harness_sha256"] for run in (there, here)}
    assert len(sources) == 2  # the command used the kit's harness


@pytest.mark.slow
def test_its_notebook_and_its_export_work_there(python: Path, kit: Path, tmp_path: Path) -> None:
    command = python.with_name("harness")
    command.write_text(f"#!{python} -P\nfrom harness.cli import main\nmain()\n")
    command.chmod(0o755)
    run_notebook(kit / "docs/start.ipynb", python, tmp_path)
    made = json.loads((tmp_path / "work/huge_lr/runs/fixed/checkpoint.pt.meta.json").read_text())
    assert made["harness_sha256"] != harness_hash()  # the run used the kit's harness
    succeed("export-tensorboard", "huge_lr", cwd=tmp_path, program=(str(command),))
    assert len(list((tmp_path / "work/huge_lr/tensorboard").rglob("*tfevents*"))) == 2


def test_its_commands_work_there(python: Path, kit: Path, tmp_path: Path) -> None:
    command = [str(python), "-P", "-m", "harness", "exercises"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert [name for name in (*ALL, *file_exercise_ids()) if not re.search(rf"\b{name}\b", done.stdout)] == []
