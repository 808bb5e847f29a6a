"""`make submit`: pack a workspace into one tarball; equal content has equal bytes."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UserError
from harness.files import write_whole, write_with_sha256
from harness.hints import hints_given
from harness.submission.archive import (
    COMMANDS,
    FORMAT_VERSION,
    META,
    RUN_FILES,
    RUNS,
    SUFFIX,
    deterministic_tar_gz,
    with_manifest,
)
from harness.submission.check import CheckItem, quick_checks
from harness.submission.check_run import read_object
from harness.workspace import EXPERIMENT, REPORT, SUBMITTED, Workspace
from harness.written.workspace import FileWorkspace, file_items

_STUDENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Submission:
    """A tarball that is ready to be handed in.

    `warnings`: checks that failed and do not prevent that. `kept`: where an older tarball with other content is now.
    `unchanged`: the same tarball was there already.
    """

    path: Path
    sha256: str
    warnings: tuple[CheckItem, ...]
    kept: Path | None
    unchanged: bool


def check_student_name(student: str) -> None:
    """Raise `UserError`, with a suggestion, unless it is 1 to 64 letters, digits, dots, dashes or _."""
    if _STUDENT.fullmatch(student):
        return
    ascii_name = unicodedata.normalize("NFKD", student).encode("ascii", "ignore").decode()
    better = re.sub(r"[^A-Za-z0-9._-]+", "-", ascii_name).strip(".-")[:64] or "ada"
    raise UserError(
        f"STUDENT={student!a} cannot be part of a file name: use up to 64 letters, digits, dots, dashes or"
        f" underscores, and begin with a letter or digit, as in STUDENT={better}."
    )


def build_submission(workspace: Workspace, student: str) -> dict[str, bytes]:
    """Return the members of the tarball by name: runs, experiment, report, commands, and a manifest.

    Other files of the workspace are left out. Raises `UserError` for an unusable name, and for a missing file.
    """
    check_student_name(student)
    sources = {EXPERIMENT: workspace.experiment, REPORT: workspace.report}
    for run in RUNS:
        sources |= {f"runs/{run}/{name}": workspace.run_folder(run) / name for name in RUN_FILES}
    members = {name: _read(path) for name, path in sources.items()}
    metas = {run: read_object(workspace.run_folder(run) / META) for run in RUNS}
    lines = [f"# runs/{run}\n{' '.join(str(metas[run].get('command')).split())}\n" for run in RUNS]
    members[COMMANDS] = "\n".join(lines).encode()
    facts = {
        "student": student,
        "recipe": workspace.recipe,
        "seed": workspace.settings.seed,
        "dataset": workspace.settings.dataset,
        "dataset_digest": metas["broken"].get("dataset_digest"),
    }
    given = hints_given(workspace)
    return with_manifest(members, facts | ({"hints": given} if given else {}))


def submit(workspace: Workspace, student: str, out: Path) -> Submission:
    """Write `<out>/<student>_<recipe>.tar.gz` and its `.sha256`, and note it in the workspace.

    A tarball with other content under that name is kept under another. Raises `UserError` if the tarball would be
    incomplete or contradict itself. A student may hand in imperfect work: other failed checks become warnings.
    """
    check_student_name(student)
    warnings = _without_blocking(quick_checks(workspace), workspace.command("check"))
    return _hand_in(build_submission(workspace, student), workspace.folder, student, out, warnings)


def submit_file(workspace: FileWorkspace, student: str, out: Path) -> Submission:
    """Write the tarball of an exercise whose answer is one file, as `submit` does for runs."""
    check_student_name(student)
    warnings = _without_blocking(file_items(workspace), workspace.command("check"))
    members = {workspace.exercise.file: workspace.answer.read_bytes()}
    facts = {"student": student, "recipe": workspace.exercise.id}
    return _hand_in(with_manifest(members, facts), workspace.folder, student, out, warnings)


def _without_blocking(items: Sequence[CheckItem], command: str) -> list[CheckItem]:
    """Return the failed checks. Raises `UserError` if one of them prevents handing in."""
    failures = [item for item in items if item.outcome == "failed"]
    blocking = [item for item in failures if item.blocks]
    if blocking:
        more = f" (and {len(blocking) - 1} more: {command})" if blocking[1:] else ""
        raise UserError(f"Not handed in, {blocking[0].id}: {blocking[0].message}{more}")
    return failures


def _hand_in(
    members: Mapping[str, bytes], folder: Path, student: str, out: Path, warnings: Sequence[CheckItem]
) -> Submission:
    data = deterministic_tar_gz(members)
    digest = hashlib.sha256(data).hexdigest()
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{student}_{folder.name}{SUFFIX}"
    before = path.read_bytes() if path.exists() else None
    kept = None if before is None or before == data else _keep(path, before)
    write_with_sha256(path, data)
    note = {"format_version": FORMAT_VERSION, "student": student, "file": path.name, "sha256": digest}
    write_whole({folder / SUBMITTED: (json.dumps(note, indent=1) + "\n").encode()})
    return Submission(path, digest, tuple(warnings), kept, before == data)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path} is missing: make check says which step makes it.") from None


def _keep(path: Path, content: bytes) -> Path:
    """Keep an older tarball as `<name>.<n>.tar.gz`, unless one with its content is there; return that path."""
    number = 1
    while True:
        kept = path.with_name(f"{path.name.removesuffix(SUFFIX)}.{number}.tar.gz")
        if not kept.exists():
            write_with_sha256(kept, content)
            return kept
        if kept.read_bytes() == content:
            return kept
        number += 1
