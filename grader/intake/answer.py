"""Takes an answer in that is one file: the file is there, whole, a text, and the one that the exercise asks for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from grader.intake.manifest import ManifestHead, parse_file_manifest
from grader.intake.names import printable
from grader.intake.rejected import Rejected
from grader.intake.submission import TEXT_BYTES, Submission, listing_faults, opened, submission_in
from harness.submission.submission import MANIFEST
from harness.written.exercise import FileExercise, file_exercise_ids, load_exercise


@dataclass(frozen=True)
class Answer:
    """An answer that was taken. `text` and `student` are what a stranger wrote.

    `name` is that of the tarball without `.tar.gz`, `ignored` the names of files that were not read, fit to be shown.
    """

    name: str
    sha256: str
    exercise: FileExercise
    student: str
    text: str
    ignored: tuple[str, ...]


def parse_tarball(name: str, data: bytes, sha256: str) -> Submission | Answer:
    """Return what the bytes of a tarball with this SHA-256 hand in: two runs, or one file. Raises `Rejected`."""
    with opened(data) as members:
        known = file_exercise_ids()
        manifest = parse_file_manifest(members[MANIFEST], known) if MANIFEST in members else None
        if manifest is None:
            return submission_in(members, name, sha256)
        return _answer_in(members, manifest, name, sha256)


def _answer_in(members: Mapping[str, bytes], manifest: ManifestHead, name: str, sha256: str) -> Answer:
    exercise = load_exercise(manifest.recipe)
    assert isinstance(exercise, FileExercise)
    for code, message in _faults(exercise, manifest, members):
        raise Rejected(code, message)
    return Answer(
        name=name,
        sha256=sha256,
        exercise=exercise,
        student=manifest.student,
        text=members[exercise.file].decode("utf-8"),
        ignored=tuple(sorted(printable(other) for other in members.keys() - {MANIFEST, exercise.file})),
    )


def _faults(
    exercise: FileExercise, manifest: ManifestHead, members: Mapping[str, bytes]
) -> Iterator[tuple[str, str]]:
    yield from listing_faults(manifest.files, members, (exercise.file,))
    if exercise.file not in members:
        yield "no answer", f"The archive has no {exercise.file}: make submit writes a whole archive."
    data = members.get(exercise.file, b"")
    if len(data) > TEXT_BYTES:
        yield "text too large", f"{exercise.file} is larger than {TEXT_BYTES // 1024} KiB: shorten it."
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        yield "not UTF-8", f"{exercise.file} is not UTF-8 text: save it as UTF-8 and hand it in again."
