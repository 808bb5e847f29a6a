"""Build the tarball that a student hands in: its files, and a manifest that lists them.

Equal content gives equal bytes.
"""

import hashlib
import io
import json
import re
import tarfile
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from harness.errors import UserError
from harness.files import stored_gzip, write_with_sha256
from harness.run.files import EXPERIMENT, META
from harness.run.metrics_log import read_object
from harness.submission.commands import COMMANDS, commands_text
from harness.submission.limits import STUDENT_BYTES, STUDENT_CHARACTERS
from harness.workspace.progress import MOST_HINTS, Prediction, progress_of
from harness.workspace.workspace import REPORT, RUN_FILES, RUNS, Workspace

FORMAT_VERSION = 1
SUFFIX = ".tar.gz"
MANIFEST = "manifest.json"
# The names of all files in a submission with two runs.
FILES = (MANIFEST, EXPERIMENT, REPORT, COMMANDS, *(f"runs/{run}/{name}" for run in RUNS for name in RUN_FILES))

# No part of a file name may match this pattern: platforms and Windows replace these characters, and shells read a
# leading dash as an option.
_NO_FILE_NAME = re.compile(r"""^[-.\s]|[/\\:*?"<>|]|\s\s|\s$""")
_Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class FileManifest(BaseModel):
    """The `manifest.json` of a written exercise, whose answer is one file.

    `student` is a text of 1 to 64 visible characters, so it contains no control characters and no characters that hide
    or reverse text. `files` maps the name of each other file in the tarball to its SHA-256.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format_version: Annotated[int, Field(ge=FORMAT_VERSION, le=FORMAT_VERSION)]  # not Literal[1], which accepts true
    student: Annotated[str, Field(min_length=1, max_length=STUDENT_CHARACTERS)]
    recipe: Annotated[str, Field(min_length=1, max_length=64)]
    files: Annotated[dict[str, _Digest], Field(max_length=1000)]

    @field_validator("student")
    @classmethod
    def _is_visible(cls, student: str) -> str:
        if not student.isprintable() or not student.strip():
            raise ValueError("has invisible characters")
        return student


class Manifest(FileManifest):
    """The `manifest.json` of an exercise with two runs.

    `hints` is the number of hints that were shown, `revealed` says whether the solution was shown, `named_checks` says
    whether `verify` named the checks that differ, and `prediction` is the student's prediction of the broken run, or
    None.
    """

    seed: Annotated[int, Field(ge=0, lt=2**32)]
    dataset: Annotated[str, Field(min_length=1, max_length=64)]
    dataset_digest: _Digest | None
    hints: Annotated[int, Field(ge=0, le=MOST_HINTS)] = 0
    revealed: bool = False
    named_checks: bool = False
    prediction: Prediction | None = None


def with_manifest(members: Mapping[str, bytes], facts: Mapping[str, object]) -> dict[str, bytes]:
    """Return the files and a manifest that contains `facts` and the SHA-256 of each file."""
    digests = {name: hashlib.sha256(members[name]).hexdigest() for name in sorted(members)}
    manifest = {"format_version": FORMAT_VERSION, **facts, "files": digests}
    return {**members, MANIFEST: (json.dumps(manifest, indent=1) + "\n").encode()}


def deterministic_tar_gz(members: Mapping[str, bytes]) -> bytes:
    """Return a gzipped tarball whose bytes depend only on the names and contents of its files.

    The files are sorted by name. Each has mode 0644, owner 0 and time 0. A name that the ustar format cannot store goes
    into a pax header. The gzip data are not compressed, because compressed bytes differ between releases of zlib.
    Raises `ValueError` for a name that would unpack outside of its folder.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8") as tar:
        for name in sorted(members):
            if {"", ".", ".."} & set(name.split("/")) or "\\" in name or "\0" in name:
                raise ValueError(f"{name!r} is not a plain path inside a tarball")
            member = tarfile.TarInfo(name)  # mode 0644, owner 0 without a name, time 0
            member.size = len(members[name])
            tar.addfile(member, io.BytesIO(members[name]))
    return stored_gzip(buffer.getvalue())


def pack_folder(folder: Path, path: Path) -> None:
    """Pack the files of a folder into the tarball `path`, with names that begin with the folder's name.

    Write `<path>.sha256`.
    """
    members = {f"{folder.name}/{file.name}": file.read_bytes() for file in folder.iterdir() if file.is_file()}
    write_with_sha256(path, deterministic_tar_gz(members))


def student_name(student: str) -> str:
    """Return a login or e-mail address, normalized (NFC) for the manifest and the file name.

    The login may use letters of any script. Raises `UserError` if it cannot be part of a file name on every system.
    """
    name = unicodedata.normalize("NFC", student)
    too_long = len(name) > STUDENT_CHARACTERS or len(name.encode("utf-8", "replace")) > STUDENT_BYTES
    if not name or too_long or not name.isprintable() or _NO_FILE_NAME.search(name):
        raise UserError(
            f"The login {student!a} cannot be part of a file name: use a login or an e-mail address of up to"
            f' {STUDENT_CHARACTERS} characters, without / \\ : * ? " < > | and without a dash, a dot or a space at'
            " its start."
        )
    return name


def build_submission(workspace: Workspace, student: str) -> dict[str, bytes]:
    """Return the files of the tarball by name: both runs, the experiment, the report, the commands, and a manifest.

    The tarball contains no other files of the workspace. The caller must have checked that all files exist.
    """
    sources = {EXPERIMENT: workspace.experiment, REPORT: workspace.report}
    for run in RUNS:
        sources |= {f"runs/{run}/{name}": workspace.run_folder(run) / name for name in RUN_FILES}
    members = {name: path.read_bytes() for name, path in sources.items()}
    metas = {run: read_object(workspace.run_folder(run) / META) for run in RUNS}
    members[COMMANDS] = commands_text({run: metas[run].get("command") for run in RUNS}).encode()
    facts = {
        "student": student,
        "recipe": workspace.recipe,
        "seed": workspace.settings.seed,
        "dataset": workspace.settings.dataset,
        "dataset_digest": metas["broken"].get("dataset_digest"),
    }
    noted = progress_of(workspace.folder)
    said = noted.prediction.model_dump() if noted.prediction else None
    more = {"hints": noted.hints, "revealed": noted.revealed, "named_checks": noted.named_checks, "prediction": said}
    return with_manifest(members, facts | {name: value for name, value in more.items() if value})
