"""`grader kit`: build what students get, the suite with every broken experiment written out and no answer in it."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from grader.sandbox import HIDDEN_FROM_STUDENTS
from harness.errors import UserError
from harness.files import write_with_sha256
from harness.recipe import EXERCISES, FILE_EXERCISE, GOAL, ROOT, Recipe, load_recipe, recipe_ids
from harness.submission.archive import deterministic_tar_gz
from harness.submission.log_values import CAUSES, causes_file
from harness.workspace import PROMPT
from harness.written.exercise import FileExercise, file_exercise_ids, load_exercise

README = Path(__file__).with_name("kit_readme.md")
# For `sha256sum -c`: every file of the kit but notebooks, which Jupyter saves with their outputs.
LISTING = "kit.sha256"
_FOLDER = "trainwreck"  # in the tarball, so its bytes do not depend on where the kit is built
# What to cut from our Makefile and our pyproject.toml: all below a line, and the grader's own lines above it.
_NOT_FOR_STUDENTS = re.compile(r'\n# --- .*|^ *"?grader.*?\n', re.DOTALL | re.MULTILINE)


def build_kit(tarball: Path) -> dict[str, bytes]:
    """Write the kit as a tarball with its `.sha256` beside it, and return its files by path.

    The bytes depend on the suite alone. Raises `UserError` if the kit would give an answer away, and `OSError` if it
    cannot be written.
    """
    files = kit_files()
    listed = sorted(name for name in files if not name.endswith(".ipynb"))
    lines = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in listed]
    files[LISTING] = "".join(lines).encode()
    members = {f"{_FOLDER}/{name}": content for name, content in files.items()}
    write_with_sha256(tarball, deterministic_tar_gz(members))
    return files


def kit_files() -> dict[str, bytes]:
    """Return the content of every file of the kit, by its path. Raises `UserError` if one gives an answer away."""
    harness = ROOT / "harness"
    files = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for path in sorted(harness.rglob("[!.]*"))
        if path.is_file() and path.parent.name != "__pycache__"
        if not path.relative_to(harness).as_posix().startswith(HIDDEN_FROM_STUDENTS)
    }
    readme = README.read_text(encoding="utf-8")
    files["README.md"] = readme.encode()
    for page in re.findall(r"\]\((docs/[\w.-]+)\)", readme):
        files[page] = (ROOT / page).read_bytes()
        for picture in re.findall(r"!\[.*?\]\(([\w/-]+\.svg)\)", files[page].decode()):
            files[f"docs/{picture}"] = (ROOT / "docs" / picture).read_bytes()
    for name in ("Makefile", "pyproject.toml"):
        files[name] = _NOT_FOR_STUDENTS.sub("", (ROOT / name).read_text(encoding="utf-8")).encode()
    for recipe in map(load_recipe, recipe_ids()):
        own = {
            PROMPT: (EXERCISES / recipe.id / PROMPT).read_bytes(),
            "recipe.toml": recipe.for_kit().encode(),
            "experiment.py": recipe.broken_source().encode(),
        }
        if recipe.goal is not None:
            own[GOAL] = (EXERCISES / recipe.id / GOAL).read_bytes()
        _refuse_answers(recipe, own)
        files |= {f"exercises/{recipe.id}/{name}": content for name, content in own.items()}
    files[CAUSES.relative_to(ROOT).as_posix()] = causes_file()
    for exercise in map(load_exercise, file_exercise_ids()):
        assert isinstance(exercise, FileExercise)
        for name in (FILE_EXERCISE, PROMPT, exercise.file):
            files[f"exercises/{exercise.id}/{name}"] = (EXERCISES / exercise.id / name).read_bytes()
    return files


def _refuse_answers(recipe: Recipe, files: Mapping[str, bytes]) -> None:
    """Raise `UserError` if an exercise's own files hold its break, or its experiment the healthy text."""
    for edit in recipe.breaks:
        for name, content in files.items():
            texts = [edit.find.strip(), edit.replace.strip()]
            if name == "experiment.py":  # it holds the break; is the healthy text gone?
                texts = [] if edit.find in edit.replace else [edit.find]
            for text in filter(None, texts):
                if text in content.decode():
                    raise UserError(f"The kit would give an answer away: {name} of {recipe.id} holds {text!r}.")


def describe_kit(files: Mapping[str, bytes]) -> str:
    """Return what `grader kit` prints: how much is inside, and the exercises."""
    exercises = sorted({name.split("/")[1] for name in files if name.startswith("exercises/")})
    size = sum(map(len, files.values())) / 1e6
    return f"{len(files)} files, {size:.1f} MB, {len(exercises)} exercises: {', '.join(exercises)}"
