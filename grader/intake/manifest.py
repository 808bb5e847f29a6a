"""The manifest of a submission: strict JSON, of one format, with nothing missing and nothing more."""

import json
from collections.abc import Container
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from grader.intake.names import printable
from grader.intake.rejected import Rejected
from harness.hints import LEVELS

# A manifest of 20 files has 2 KiB.
MANIFEST_BYTES = 64 * 1024
_REMEDY = "make submit writes a whole one"
_Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class ManifestHead(BaseModel):
    """What every `manifest.json` says, and that of an answer which is one file says no more.

    A student's name is any text of 1 to 64 characters that can be seen: no control characters, and none that
    change the direction of text or hide in it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format_version: Annotated[int, Field(ge=1, le=1)]  # Literal[1] takes true for 1
    student: Annotated[str, Field(min_length=1, max_length=64)]
    recipe: Annotated[str, Field(min_length=1, max_length=64)]
    files: Annotated[dict[str, _Digest], Field(max_length=1000)]

    @field_validator("student")
    @classmethod
    def _can_be_seen(cls, student: str) -> str:
        if not student.isprintable() or not student.strip():
            raise ValueError("has characters that cannot be seen")
        return student


class Manifest(ManifestHead):
    """What `manifest.json` says of two runs."""

    # What `--seed` takes.
    seed: Annotated[int, Field(ge=0, lt=2**32)]
    dataset: Annotated[str, Field(min_length=1, max_length=64)]
    dataset_digest: _Digest | None
    # How many hints the student asked for, by the student's own note; left out where it is none.
    hints: Annotated[int, Field(ge=0, le=LEVELS)] = 0


_AnyManifest = TypeVar("_AnyManifest", bound=ManifestHead)


def parse_manifest(data: bytes) -> Manifest:
    """Return the manifest of two runs. Raises `Rejected` for anything that is not one, whatever it is."""
    return _validated(_read(data), Manifest)


def parse_file_manifest(data: bytes, exercise_ids: Container[str]) -> ManifestHead | None:
    """Return the manifest of an answer to one of these exercises, and None where it is of any other.

    Raises `Rejected` where it names one of them and is no manifest of it.
    """
    value = _read(data)
    if not isinstance(value, dict) or not isinstance(value.get("recipe"), str):
        return None
    return _validated(value, ManifestHead) if value["recipe"] in exercise_ids else None


def _read(data: bytes) -> Any:
    """Return what strict JSON says. Raises `Rejected` for anything else."""
    if len(data) > MANIFEST_BYTES:
        raise Rejected("manifest", f"manifest.json is larger than {MANIFEST_BYTES // 1024} KiB: {_REMEDY}.")
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_refused)
    except (ValueError, RecursionError):
        raise Rejected("manifest", f"manifest.json is not strict JSON: {_REMEDY}.") from None


def _validated(value: Any, form: type[_AnyManifest]) -> _AnyManifest:
    version = value.get("format_version") if isinstance(value, dict) else None
    if isinstance(version, int) and not isinstance(version, bool) and version != 1:
        raise Rejected(
            "format version", "manifest.json is of another format version: hand in with the current suite."
        )
    try:
        return form.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = printable(".".join(map(str, first["loc"]))) or "it"
        message = f"manifest.json is not one of a submission ({where}: {first['msg']}): {_REMEDY}."
        raise Rejected("manifest", message) from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key comes twice")
    return table


def _refused(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
