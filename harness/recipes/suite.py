"""Find the files of the suite in a clone of the repository, in a course kit, or in an installed wheel."""

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.errors import UserError

# The folder that contains the packages harness and, except in a course kit, grader.
PACKAGES = Path(__file__).resolve().parents[2]
# In a wheel, this folder contains the files that a clone or a course kit has next to the packages. `setup.py` copies
# them.
_OF_WHEEL = PACKAGES / "trainwreck_suite"
IS_WHEEL = _OF_WHEEL.is_dir()  # in the sandbox of the grader, too, which hides most of it
# The folder that contains `exercises`, `solutions` and `docs`.
ROOT = _OF_WHEEL if IS_WHEEL else PACKAGES

_VERBS = (
    "next", "progress", "exercises", "exercise", "predict", "triage", "verify", "watch", "history", "hint",
    "check", "submit", "reveal",
    "clean-work", "doctor", "serve",
)  # fmt: skip
_FLAGS = ("YES", "WHICH", "HEALTHY", "SKIP")
_VALUE = r"(?:<[^>]*>|'[^']*'|[^\s`]*[^\s`.,;:)])"
_MAKE = re.compile(rf"\bmake ({'|'.join(sorted(_VERBS, key=len, reverse=True))}|data)\b((?: [A-Z]+={_VALUE})*)")
_ARGUMENT = re.compile(rf"([A-Z]+)=({_VALUE})")


def suite_path(name: str) -> Path:
    """Return the path of a file or folder of the suite, given its path in a clone, such as `docs/checks.md`."""
    return (PACKAGES if name.partition("/")[0] in ("grader", "harness") else ROOT) / name


def suite_files(folder: str) -> Iterator[tuple[str, Path]]:
    """Yield the files below a folder of the suite, each with its path in a clone, without caches and built files."""
    place = suite_path(folder)
    for path in sorted(place.rglob("*")):
        parts = path.relative_to(place).parts
        if path.is_file() and not any(part.startswith(".") or part in ("__pycache__", "build") for part in parts):
            yield f"{folder}/{'/'.join(parts)}", path


def as_typed(text: str) -> str:
    """Return a text for the user, with commands that work in this installation.

    A wheel has no Makefile, so the `make` commands in the text are replaced there. For example,
    `make verify BREAK=huge_lr WORK=mine` becomes `harness verify huge_lr --work mine`.
    """
    return without_make(text) if IS_WHEEL else text


def without_make(text: str) -> str:
    """Return a text in which each `make` command is replaced by the equivalent `harness` command."""
    text = text.replace(".venv/bin/harness", "harness").replace("`docs/", f"`{ROOT / 'docs'}/")
    text = text.replace("make finish", "make interview-finish").replace(
        "make interview AGAIN=1", "make interview --again"
    )
    text = re.sub(r"\bmake interview(?:-(\w+))?", lambda found: f"harness interview {found[1] or ''}".rstrip(), text)
    return _MAKE.sub(lambda found: _command(found[1], dict(_ARGUMENT.findall(found[2]))), text)


def _command(verb: str, arguments: dict[str, str]) -> str:
    first = arguments.pop("BREAK", "") if verb != "data" else arguments.pop("DATASET", "")
    words = ["harness", "fetch" if verb == "data" else verb, first]
    words += [f"--{name.lower()}" + f" {value}" * (name not in _FLAGS) for name, value in arguments.items()]
    return " ".join(filter(None, words))


def require_clone(command: str) -> None:
    """Raise `UserError` in an installed wheel, because the command changes files of the suite."""
    if IS_WHEEL:
        raise UserError(f"{command} changes files of the suite: use it in a clone of the repository, not in a wheel.")


def install_command(extra: str) -> str:
    """Return the command that installs an optional part of this project, such as tensorboard."""
    words = [f"trainwreck-course[{extra}]"] if IS_WHEEL else ["-e", f"{ROOT}[{extra}]"]
    return shlex.join([sys.executable, "-m", "pip", "install", *words])
