"""Hints: three for each recipe, from where to look to what to change, each given after the one before it.

They lie in `exercises/<id>/hints.toml`, in a student's kit encoded, so that nobody reads one by accident; who wants to
can decode them. Which ones were asked for is noted beside the workspaces and, at submit, in the manifest: a note that
students keep for themselves and their instructor, and no proof of anything.
"""

import base64
import json
import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import UserError, naming
from harness.files import write_whole
from harness.recipe import EXERCISES, load_recipe
from harness.workspace import Workspace

HINTS = "hints.toml"
LEVELS = 3
# Beside the workspaces: starting an exercise over does not unsay a hint.
_NOTES = ".hints"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Hint(_Strict):
    """One hint: as it `says`, or encoded."""

    says: Annotated[str, Field(min_length=1)] | None = None
    base64: Annotated[str, Field(min_length=1)] | None = None

    def text(self) -> str:
        """Return it in one line. Raises `ValueError` where it is in neither form, or cannot be decoded."""
        if (self.says is None) == (self.base64 is None):
            raise ValueError("a hint has either says or base64")
        text = self.says if self.base64 is None else base64.b64decode(self.base64, validate=True).decode()
        return " ".join(str(text).split())


class _Hints(_Strict):
    format_version: Literal[1]
    hints: Annotated[
        tuple[_Hint, ...], Field(alias="hint", min_length=LEVELS, max_length=LEVELS, strict=False)
    ]


def load_hints(exercise: str, exercises: Path = EXERCISES) -> tuple[str, ...]:
    """Return the hints of a recipe, level 1 first. Raises `UserError` where it has none, or no whole ones."""
    load_recipe(exercise, exercises)
    path = exercises / exercise / HINTS
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return tuple(hint.text() for hint in _Hints.model_validate(table).hints)
    except FileNotFoundError:
        raise UserError(f"There are no hints for {exercise}.") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(
            f"{path} holds no hints: {'.'.join(map(str, first['loc']))}: {first['msg']}."
        ) from None
    except ValueError as error:  # no TOML, no UTF-8, no base64
        raise UserError(f"{path} holds no hints: {error}.") from None


def encoded(texts: tuple[str, ...]) -> str:
    """Return `hints.toml` as a kit holds it."""
    lines = ["# harness hint shows these, one at a time.", "format_version = 1"]
    for text in texts:
        lines += ["", "[[hint]]", f'base64 = "{base64.b64encode(text.encode()).decode()}"']
    return "\n".join(lines) + "\n"


def hints_given(workspace: Workspace) -> int:
    """Return how many hints have been given for this exercise: 0 where there is no note, or none that can be read."""
    try:
        given = json.loads(_note(workspace).read_bytes())["given"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0
    return given if isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= LEVELS else 0


def give_hint(workspace: Workspace, level: int) -> str:
    """Return the hint of a level, noted as given. Raises `UserError` for one that is given after another."""
    texts = load_hints(workspace.recipe)
    given = hints_given(workspace)
    if level > given + 1:
        raise UserError(
            f"Hint {level} comes after hint {given + 1}: harness hint {workspace.recipe} --level {given + 1}."
        )
    if level > given:
        note = _note(workspace)
        with naming(note):
            note.parent.mkdir(exist_ok=True)
            write_whole({note: (json.dumps({"format_version": 1, "given": level}) + "\n").encode()})
    return texts[level - 1]


def _note(workspace: Workspace) -> Path:
    return workspace.folder.parent / _NOTES / f"{workspace.recipe}.json"
