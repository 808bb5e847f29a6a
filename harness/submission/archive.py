"""The tarball of a submission, as the harness writes it and the grader reads it: members, manifest, packing."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from harness.files import stored_gzip, write_with_sha256
from harness.hints import LEVELS
from harness.workspace import EXPERIMENT, REPORT, RESULT

FORMAT_VERSION = 1
SUFFIX = ".tar.gz"
MANIFEST = "manifest.json"
COMMANDS = "command.txt"
METRICS_LOG = "metrics.log"
CHECKPOINT = "checkpoint.pt"
CHECKSUM = "checkpoint.pt.sha256"
META = "checkpoint.pt.meta.json"
RUNS = ("broken", "fixed")
# The files of each run in a submission; `best.pt` stays at home.
RUN_FILES = (METRICS_LOG, CHECKPOINT, CHECKSUM, META, RESULT, "inputs.json", EXPERIMENT, "run.html")
# Every member of a submission of two runs.
FILES = (
    MANIFEST,
    EXPERIMENT,
    REPORT,
    COMMANDS,
    *(f"runs/{run}/{name}" for run in RUNS for name in RUN_FILES),
)

_Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class FileManifest(BaseModel):
    """The `manifest.json` of a written exercise, whose answer is one file.

    `student` is any visible text of 1 to 64 characters, without control characters or characters that hide or
    reverse text. `files` holds the SHA-256 of every other member.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format_version: Annotated[int, Field(ge=FORMAT_VERSION, le=FORMAT_VERSION)]  # Literal[1] accepts true
    student: Annotated[str, Field(min_length=1, max_length=64)]
    recipe: Annotated[str, Field(min_length=1, max_length=64)]
    files: Annotated[dict[str, _Digest], Field(max_length=1000)]

    @field_validator("student")
    @classmethod
    def _is_visible(cls, student: str) -> str:
        if not student.isprintable() or not student.strip():
            raise ValueError("has characters that cannot be seen")
        return student


class Manifest(FileManifest):
    """The `manifest.json` of two runs. `hints` is how many hints the student's workspace counted."""

    seed: Annotated[int, Field(ge=0, lt=2**32)]
    dataset: Annotated[str, Field(min_length=1, max_length=64)]
    dataset_digest: _Digest | None
    hints: Annotated[int, Field(ge=0, le=LEVELS)] = 0


def with_manifest(members: Mapping[str, bytes], facts: Mapping[str, object]) -> dict[str, bytes]:
    """Return the members plus a manifest with these facts and the SHA-256 of each member."""
    digests = {name: hashlib.sha256(members[name]).hexdigest() for name in sorted(members)}
    manifest = {"format_version": FORMAT_VERSION, **facts, "files": digests}
    return {**members, MANIFEST: (json.dumps(manifest, indent=1) + "\n").encode()}


def deterministic_tar_gz(members: Mapping[str, bytes | Path]) -> bytes:
    """Return a gzipped tarball whose bytes depend on the members alone; a path stands for its content.

    Names are sorted; mode is 0644, owner 0, time 0. A name that the ustar format cannot hold goes into a pax header.
    Nothing is compressed (`harness.files` says why). Raises `ValueError` for a name that would unpack
    outside of its folder.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8") as tar:
        for name in sorted(members):
            _refuse_unsafe(name)
            content = members[name]
            data = content if isinstance(content, bytes) else content.read_bytes()
            member = tarfile.TarInfo(name)  # mode 0644, owner 0 without a name, time 0
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return stored_gzip(buffer.getvalue())


def _refuse_unsafe(name: str) -> None:
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in name or "\0" in name:
        raise ValueError(f"{name!r} is not a plain path inside a tarball")


def pack_folder(folder: Path, path: Path) -> None:
    """Pack the files of a folder as `path`, below the folder's name, and write `<path>.sha256`."""
    members = {f"{folder.name}/{file.name}": file for file in folder.iterdir() if file.is_file()}
    write_with_sha256(path, deterministic_tar_gz(members))
