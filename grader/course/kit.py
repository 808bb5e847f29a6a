"""`grader kit`: what students get: the suite with every broken experiment written out, and no answer in it."""

import hashlib
import json
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any

from grader.sandbox import HIDDEN_FROM_STUDENTS
from harness.errors import UserError
from harness.files import scratch_path, write_with_sha256
from harness.recipe import (
    EXERCISES,
    FILE_EXERCISE,
    ROOT,
    Edit,
    apply_edits,
    load_recipe,
    recipe_ids,
)
from harness.submission.archive import deterministic_tar_gz
from harness.submission.causes import CAUSES, causes_file
from harness.written.exercise import FileExercise, file_exercise_ids, load_exercise
from harness.written.workspace import PROMPT

TEMPLATES = Path(__file__).with_name("kit_templates")
# Lists every file of a kit, for `sha256sum -c`; by it a kit knows what may be replaced.
LISTING = "kit.sha256"
# The name of the folder inside the tarball: the bytes are the same wherever the kit is built.
_FOLDER = "trainwreck"

# Pages about the suite that students may read, less what they say of things that are not in a kit.
_PAGES = {
    "docs/decision-tree.md": (),
    "docs/determinism.md": (),
    "docs/checks.md": (),
    "docs/optimizers.md": (),
    "docs/optimizers.csv": (),
    "docs/harness.md": (
        Edit(
            find="| recipes, and signals of a log | `recipe`, `symptoms` |",
            replace="| exercises, and signals of a log | `recipe`, `symptoms` |",
        ),
        Edit(
            find="| `recipe`, `symptoms` | `load_recipe`, `judge_symptom` |",
            replace="| `recipe`, `symptoms` | `load_recipe`, `signal_values` |",
        ),
        Edit(
            find="`datasets/` (embedded files and the scripts that made them), `experiments/`",
            replace="`datasets/` (embedded files)",
        ),
    ),
}
# Where the part of a page begins that only a maintainer needs.
_FOR_MAINTAINERS = "\n## Making them again\n"


def build_kit(out: Path) -> Path:
    """Write the kit to the folder `out`, and beside it `<out>.tar.gz` with its `.sha256`; return the folder.

    The bytes depend on the suite alone. A kit that lies there is replaced; raises `UserError` where `out` holds
    anything else, and `OSError` where it cannot be written.
    """
    _refuse_foreign(out)
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
    return out


def kit_files() -> dict[str, bytes]:
    """Return the content of every file of the kit, by its path in it."""
    files = dict(_harness_files())
    for name, edits in _PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8").partition(_FOR_MAINTAINERS)[0]
        files[name] = apply_edits(text, edits, where=name).rstrip().encode() + b"\n"
    for recipe in map(load_recipe, recipe_ids()):
        folder = f"exercises/{recipe.id}"
        files[f"{folder}/PROMPT.md"] = (EXERCISES / recipe.id / "PROMPT.md").read_bytes()
        files[f"{folder}/recipe.toml"] = recipe.for_kit().encode()
        files[f"{folder}/experiment.py"] = recipe.broken_source().encode()
    files[CAUSES.relative_to(ROOT).as_posix()] = causes_file().encode()
    for exercise in map(load_exercise, file_exercise_ids()):
        assert isinstance(exercise, FileExercise)
        for name in (FILE_EXERCISE, PROMPT, exercise.file):
            files[f"exercises/{exercise.id}/{name}"] = (EXERCISES / exercise.id / name).read_bytes()
    for path in _plain_files(TEMPLATES):
        name = path.relative_to(TEMPLATES).as_posix()
        if name != "pyproject.template":
            files[name] = path.read_bytes()
    files["pyproject.toml"] = _pyproject(
        (TEMPLATES / "pyproject.template").read_text(encoding="utf-8")
    ).encode()
    return files


def _refuse_foreign(out: Path) -> None:
    """Raise `UserError` unless `out` is missing, empty, or a kit to which nothing was added."""
    if not out.exists() and not out.is_symlink():
        return
    if out.is_symlink() or not out.is_dir():
        raise UserError(f"{out} is no folder: name another place with --to.")
    listing = out / LISTING
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.is_file() else []
    known = {LISTING, *(line.partition("  ")[2] for line in lines)}
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if not path.is_dir() and name not in known:
            raise UserError(
                f"{out} holds {name}, which is no part of a kit: move it away, or name another folder with --to."
            )


def _harness_files() -> Iterator[tuple[str, bytes]]:
    for path in _plain_files(ROOT / "harness"):
        if not path.relative_to(ROOT / "harness").as_posix().startswith(HIDDEN_FROM_STUDENTS):
            yield path.relative_to(ROOT).as_posix(), path.read_bytes()


def _plain_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder that were written by hand: no caches, no hidden ones."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in parts):
            yield path


def _pyproject(template: str) -> str:
    """Return the kit's `pyproject.toml`: the suite's own, less the grader and the maintainers' tools."""
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project: dict[str, Any] = ours["project"]
    pytest = next(item for item in project["optional-dependencies"]["dev"] if item.startswith("pytest>"))
    return Template(template).substitute(
        build=ours["build-system"]["requires"][0],
        version=project["version"],
        python=project["requires-python"],
        dependencies="\n".join(f"    {json.dumps(item)}," for item in project["dependencies"]),
        pytest=pytest,
        data=json.dumps(ours["tool"]["setuptools"]["package-data"]["harness"]),
    )
