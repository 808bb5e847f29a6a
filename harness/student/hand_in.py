"""`make submit`: check a workspace, pack its files, and record that the exercise is handed in."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UserError
from harness.files import write_with_sha256
from harness.submission.archive import SUFFIX, build_submission, deterministic_tar_gz, student_name, with_manifest
from harness.submission.check import check_workspace
from harness.submission.check_run import CheckItem
from harness.workspace.progress import note_explained, note_progress
from harness.workspace.workspace import Workspace
from harness.written.workspace import FileWorkspace, file_items


@dataclass(frozen=True)
class Tarball:
    """A tarball that is ready to hand in. `warnings` holds the failed items that do not prevent handing in."""

    path: Path
    sha256: str
    warnings: tuple[CheckItem, ...]


def submit(workspace: Workspace | FileWorkspace, student: str, out: Path, *, handed_in: bool = True) -> Tarball:
    """Write `<out>/<student>_<recipe>.tar.gz` and its `.sha256`. If `handed_in`, record that the exercise is handed in.

    The new tarball replaces an older one. Raises `UserError` if the tarball would be incomplete or contradict itself.
    All other failed items become warnings, because students may hand in imperfect work.
    """
    student = student_name(student)
    if isinstance(workspace, FileWorkspace):
        warnings = _warnings(file_items(workspace), workspace.command("check"))
        facts = {"student": student, "recipe": workspace.exercise.id}
        members = with_manifest({workspace.exercise.file: workspace.answer.read_bytes()}, facts)
    else:
        warnings = _warnings(check_workspace(workspace), workspace.command("check"))
        members = build_submission(workspace, student)
    data = deterministic_tar_gz(members)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{student}_{workspace.folder.name}{SUFFIX}"
    write_with_sha256(path, data)
    if handed_in:
        note_progress(workspace.folder, handed_in=path.name)
        if not warnings:
            note_explained(workspace.folder)
    return Tarball(path, hashlib.sha256(data).hexdigest(), tuple(warnings))


def _warnings(items: Sequence[CheckItem], command: str) -> list[CheckItem]:
    """Return the failed items. Raises `UserError` if one of them prevents handing in."""
    failures = [item for item in items if item.outcome == "failed"]
    blocking = [item for item in failures if item.blocks]
    if blocking:
        more = f" ({command} lists all {len(blocking)} problems.)" if blocking[1:] else ""
        raise UserError(f"Not packed, {blocking[0].id}: {blocking[0].message}{more}")
    return failures
