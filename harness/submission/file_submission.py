"""`make submit` of an answer that is one file: the file and a manifest, packed as every submission is."""

from pathlib import Path

from harness.errors import UserError
from harness.submission.archive import with_manifest
from harness.submission.submission import Submission, check_student_name, hand_in
from harness.written.workspace import FileWorkspace, file_items


def submit_file(workspace: FileWorkspace, student: str, out: Path) -> Submission:
    """Write `<out>/<student>_<exercise>.tar.gz` and its `.sha256`, and note in the workspace that it was done.

    A tarball of another content under that name is kept under another. Raises `UserError` for a name that does not
    serve, and for a file that is missing or no text; whatever else fails comes back as a warning.
    """
    check_student_name(student)
    failures = [item for item in file_items(workspace) if item.outcome == "failed"]
    if blocking := [item for item in failures if item.blocks]:
        raise UserError(f"Not handed in, {blocking[0].id}: {blocking[0].message}")
    members = {workspace.exercise.file: workspace.answer.read_bytes()}
    told = {"student": student, "recipe": workspace.exercise.id}
    return hand_in(with_manifest(members, told), workspace.folder, student, out, failures)
