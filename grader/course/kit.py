"""`grader kit`: build what students get, the suite with every broken experiment written out and no answer in it."""

import hashlib
import json
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from grader.sandbox import HIDDEN_FROM_STUDENTS
from harness.errors import UserError
from harness.files import scratch_path, write_with_sha256
from harness.recipe import EXERCISES, FILE_EXERCISE, ROOT, Recipe, load_recipe, recipe_ids
from harness.submission.archive import deterministic_tar_gz
from harness.submission.log_values import CAUSES, causes_file
from harness.workspace import PROMPT
from harness.written.exercise import FileExercise, file_exercise_ids, load_exercise

README = Path(__file__).with_name("kit_readme.md")
LISTING = "kit.sha256"  # every file of the kit, for `sha256sum -c`; a kit may replace what its listing names
_FOLDER = "trainwreck"  # in the tarball, so its bytes do not depend on where the kit is built
_STUDENTS_PART = re.compile(r"\n# --- [^\n]*\n.*", re.DOTALL)  # what to cut from our Makefile
_PROJECT = """\
[build-system]
requires = {build}
build-backend = "setuptools.build_meta"

[project]
name = "trainwreck"
version = {version}
description = "Learn to debug neural-network training on broken experiments."
readme = "README.md"
requires-python = {python}
dependencies = {dependencies}

[project.scripts]
harness = "harness.cli:main"

[tool.setuptools.packages.find]
include = ["harness*"]

[tool.setuptools.package-data]
harness = {data}
"""


def build_kit(out: Path) -> dict[str, bytes]:
    """Write the kit to the folder `out`, and beside it `<out>.tar.gz` with its `.sha256`; return its files by path.

    The bytes depend on the suite alone. An earlier kit at `out` is replaced. Raises `UserError` if `out` holds anything
    else or if the kit would give an answer away, and `OSError` if it cannot be written.
    """
    _refuse_foreign_files(out)
    files = kit_files()
    lines = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)]
    files[LISTING] = "".join(lines).encode()
    folder = out.resolve()
    scratch = scratch_path(folder)
    try:
        for name, content in files.items():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            (scratch / name).write_bytes(content)
        if folder.exists():
            shutil.rmtree(folder)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    members = {f"{_FOLDER}/{name}": content for name, content in files.items()}
    write_with_sha256(folder.with_name(f"{folder.name}.tar.gz"), deterministic_tar_gz(members))
    return files


def kit_files() -> dict[str, bytes]:
    """Return the content of every file of the kit, by its path. Raises `UserError` if one gives an answer away."""
    files = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for path in _source_files(ROOT / "harness")
        if not path.relative_to(ROOT / "harness").as_posix().startswith(HIDDEN_FROM_STUDENTS)
    }
    readme = README.read_text(encoding="utf-8")
    files["README.md"] = readme.encode()
    for page in re.findall(r"\]\((docs/[\w.-]+)\)", readme):
        files[page] = (ROOT / page).read_bytes()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    files["Makefile"] = _STUDENTS_PART.sub("", makefile).encode()
    files["pyproject.toml"] = _project().encode()
    for recipe in map(load_recipe, recipe_ids()):
        folder = f"exercises/{recipe.id}"
        files[f"{folder}/{PROMPT}"] = (EXERCISES / recipe.id / PROMPT).read_bytes()
        files[f"{folder}/recipe.toml"] = recipe.for_kit().encode()
        files[f"{folder}/experiment.py"] = recipe.broken_source().encode()
        _refuse_answers(recipe, files)
    files[CAUSES.relative_to(ROOT).as_posix()] = causes_file()
    for exercise in map(load_exercise, file_exercise_ids()):
        assert isinstance(exercise, FileExercise)
        for name in (FILE_EXERCISE, PROMPT, exercise.file):
            files[f"exercises/{exercise.id}/{name}"] = (EXERCISES / exercise.id / name).read_bytes()
    return files


def _refuse_answers(recipe: Recipe, files: Mapping[str, bytes]) -> None:
    """Raise `UserError` if an exercise's own files hold its break, or its experiment the healthy text."""
    for name, content in files.items():
        if not name.startswith(f"exercises/{recipe.id}/"):
            continue
        for edit in recipe.breaks:
            texts = [edit.find.strip(), edit.replace.strip()]
            if name.endswith("/experiment.py"):  # it holds the break; is the healthy text gone?
                texts = [] if edit.find in edit.replace else [edit.find]
            for text in texts:
                if text and text in content.decode():
                    raise UserError(f"The kit would give an answer away: {name} holds {text!r}.")


def describe_kit(files: Mapping[str, bytes]) -> str:
    """Return what `grader kit` prints: how much is inside, and the exercises."""
    exercises = sorted({name.split("/")[1] for name in files if name.startswith("exercises/")})
    size = sum(map(len, files.values())) / 1e6
    return f"{len(files)} files, {size:.1f} MB, {len(exercises)} exercises: {', '.join(exercises)}"


def _refuse_foreign_files(out: Path) -> None:
    """Raise `UserError` unless `out` is missing, empty, or a kit to which nothing was added."""
    if not out.exists() and not out.is_symlink():
        return
    if out.is_symlink() or not out.is_dir():
        raise UserError(f"{out} is not a folder: name another place with --to.")
    listing = out / LISTING
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.is_file() else []
    known = {LISTING, *(line.partition("  ")[2] for line in lines)}
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if not path.is_dir() and name not in known:
            raise UserError(
                f"{out} holds {name}, which is not part of a kit: move it away, or name another folder with --to."
            )


def _source_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder, without caches and hidden files."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in parts):
            yield path


def _project() -> str:
    """Return the kit's `pyproject.toml`: our pins, without the grader and the maintainers' tools."""
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return _PROJECT.format(
        build=json.dumps(ours["build-system"]["requires"]),
        version=json.dumps(ours["project"]["version"]),
        python=json.dumps(ours["project"]["requires-python"]),
        dependencies=json.dumps(ours["project"]["dependencies"]),
        data=json.dumps(ours["tool"]["setuptools"]["package-data"]["harness"]),
    )
