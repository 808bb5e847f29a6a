"""Read a submission from the bytes of an untrusted tarball, and check its manifest, hashes, sizes and texts."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeVar

from pydantic import ValidationError

from grader.intake.archive import Rejected, gunzip, read_members
from grader.syntax.program import program_digest
from harness.data import DATASETS
from harness.errors import printable
from harness.recipes.catalogue import SUITE, Catalogue
from harness.run.files import EXPERIMENT, META, METRICS_LOG
from harness.run.metrics_log import strict_json
from harness.run.settings import RunSettings
from harness.submission.archive import FILES, FORMAT_VERSION, MANIFEST, FileManifest, Manifest
from harness.submission.commands import COMMANDS, read_commands
from harness.submission.limits import ANSWER_BYTES, KIB, Excess, line_excess, size_excess
from harness.workspace.workspace import REPORT, RUNS, Run
from harness.written.exercise import FileExercise, file_exercise_ids, load_exercise

_TEXTS = (EXPERIMENT, REPORT, COMMANDS)
_LOGS: dict[Run, str] = {run: f"runs/{run}/{METRICS_LOG}" for run in RUNS}
_KEPT = (*_TEXTS, *(f"runs/{run}/{META}" for run in RUNS))
_REMEDY = "make submit writes a complete archive"
_AnyManifest = TypeVar("_AnyManifest", bound=FileManifest)


@dataclass(frozen=True)
class Claim:
    """The result of one run as the student handed it in: the log, and the SHA-256 of the checkpoint."""

    log: bytes | None
    checkpoint_sha256: str | None


@dataclass(frozen=True)
class Submission:
    """A submission with two runs. Everything in it is untrusted.

    name: the file name without `.tar.gz`. files: the short files that scoring needs. logs: the log of each run.
    ignored: the printable names of unknown files in the archive. missing: the files that the archive should contain,
    but does not contain, which costs points.
    """

    name: str
    sha256: str
    manifest: Manifest
    files: Mapping[str, bytes]
    logs: Mapping[Run, bytes]
    ignored: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def student(self) -> str:
        """The student's name in the manifest."""
        return self.manifest.student

    @property
    def recipe(self) -> str:
        """The id of the recipe."""
        return self.manifest.recipe

    @cached_property
    def source(self) -> str:
        """The student's experiment."""
        return self.files[EXPERIMENT].decode("utf-8")

    @cached_property
    def tree(self) -> str:
        """The digest of the experiment's syntax tree. Layout and comments do not change the digest."""
        return program_digest(self.source)

    @property
    def report(self) -> str | None:
        """The student's report, or None if it is missing."""
        data = self.files.get(REPORT)
        return None if data is None else data.decode("utf-8", "replace")

    @property
    def claims(self) -> Mapping[Run, Claim]:
        """The results of both runs. `parse_submission` has compared each file with its hash in the manifest."""
        return {run: Claim(self.logs.get(run), self.manifest.files.get(f"runs/{run}/checkpoint.pt")) for run in RUNS}

    def platform(self, run: Run) -> dict[str, Any] | None:
        """Return the platform class that the files of a run name, or None."""
        platform = self._fact(run, "platform_class")
        return platform if isinstance(platform, dict) else None

    @property
    def broken_source_sha256(self) -> str | None:
        """The SHA-256 of the experiment file, as the broken run recorded it; None without such a record."""
        digest = self._fact("broken", "source_sha256")
        return digest if isinstance(digest, str) else None

    def _fact(self, run: Run, name: str) -> Any:
        try:
            return json.loads(self.files[f"runs/{run}/{META}"])[name]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None

    @property
    def settings(self) -> RunSettings:
        """The settings for replays: the student's settings, but always on the CPU."""
        return self._command[0]

    @property
    def command_problem(self) -> str:
        """The problem with `command.txt`, as a sentence, or ""."""
        return self._command[1]

    @cached_property
    def _command(self) -> tuple[RunSettings, str]:
        settings = RunSettings(seed=self.manifest.seed, dataset=self.manifest.dataset)
        if COMMANDS not in self.files:
            return settings, f"There is no {COMMANDS}."
        text = self.files[COMMANDS].decode("utf-8", "replace")
        return read_commands(text, self.recipe, settings.seed, settings.dataset)


@dataclass(frozen=True)
class Answer:
    """The answer to a written exercise: one file. `text` and `student` are untrusted.

    name: the tarball's name without `.tar.gz`. ignored: the printable names of all other files in the archive.
    """

    name: str
    sha256: str
    exercise: FileExercise
    student: str
    text: str
    ignored: tuple[str, ...]

    @property
    def recipe(self) -> str:
        """The id of the exercise."""
        return self.exercise.id


def escape_name(name: str) -> str:
    """Return a file name as text. A byte that is not UTF-8 becomes `\\xff`, and each backslash is doubled.

    So different file names give different texts.
    """
    return os.fsencode(name).replace(b"\\", rb"\\").decode("utf-8", "backslashreplace")


def parse_submission(name: str, data: bytes, catalogue: Catalogue = SUITE) -> Submission | Answer:
    """Parse a tarball. Return the submission with two runs, or the answer to a written exercise.

    Raises `Rejected` for an invalid tarball, or for an exercise that is not in the catalogue.
    """
    digest = hashlib.sha256(data).hexdigest()
    members: dict[str, bytes] = {}
    try:
        read_members(gunzip(data), members)
        if MANIFEST not in members:
            raise Rejected("no manifest", f"The archive has no {MANIFEST}: {_REMEDY}.")
        manifest = parse_manifest(members[MANIFEST])
        if isinstance(manifest, Manifest):
            return _submission(members, manifest, name, digest, catalogue)
        return _answer(members, manifest, name, digest)
    except Rejected as refusal:
        refusal.student, refusal.recipe = _student_and_recipe(members)
        raise


def parse_manifest(data: bytes) -> Manifest | FileManifest:
    """Return the manifest: a `FileManifest` if it names a written exercise, else a `Manifest` of two runs.

    Raises `Rejected` if the data is not strict JSON with the fields of a manifest.
    """
    _refuse(MANIFEST, size_excess(MANIFEST, len(data)))
    try:
        value = strict_json(data)
    except ValueError:
        raise Rejected("manifest", f"{MANIFEST} is not strict JSON: {_REMEDY}.") from None
    recipe = value.get("recipe") if isinstance(value, dict) else None
    if isinstance(recipe, str) and recipe in _written_exercises():
        return _validate(value, FileManifest)
    return _validate(value, Manifest)


@cache
def _written_exercises() -> frozenset[str]:
    return frozenset(file_exercise_ids())


def _validate(value: Any, form: type[_AnyManifest]) -> _AnyManifest:
    version = value.get("format_version") if isinstance(value, dict) else None
    if isinstance(version, int) and not isinstance(version, bool) and version != FORMAT_VERSION:
        message = f"{MANIFEST} has a different format version: hand in again with the current suite."
        raise Rejected("format version", message)
    try:
        return form.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = printable(".".join(map(str, first["loc"]))) or "it"
        message = f"{MANIFEST} is not the manifest of a submission ({where}: {first['msg']}): {_REMEDY}."
        raise Rejected("manifest", message) from None


def _student_and_recipe(members: Mapping[str, bytes]) -> tuple[str | None, str | None]:
    try:
        manifest = parse_manifest(members[MANIFEST])
    except (KeyError, Rejected):
        return None, None
    return manifest.student, manifest.recipe


def _submission(
    members: Mapping[str, bytes], manifest: Manifest, name: str, sha256: str, catalogue: Catalogue
) -> Submission:
    # If a recipe is invalid, students are not to blame, so do not reject its submissions: they wait for the instructor.
    if not catalogue.holds(manifest.recipe):
        raise Rejected("unknown recipe", f"The grader has no exercise {printable(manifest.recipe)}: {_REMEDY}.")
    if manifest.dataset not in DATASETS:
        raise Rejected("unknown data set", f"The grader has no data set {printable(manifest.dataset)}: {_REMEDY}.")
    _check_listing(manifest.files, members, FILES)
    if EXPERIMENT not in members:
        raise Rejected("no experiment", f"The archive has no {EXPERIMENT}: {_REMEDY}.")
    for member in FILES:
        _refuse(member, size_excess(member, len(members.get(member, b""))))
    for log in _LOGS.values():
        _refuse(log, line_excess(members.get(log, b"")))
    _check_encoding(EXPERIMENT, members)
    return Submission(
        name=name,
        sha256=sha256,
        manifest=manifest,
        files={name: members[name] for name in _KEPT if name in members},
        logs={run: members[log] for run, log in _LOGS.items() if log in members},
        ignored=tuple(sorted(printable(name) for name in members.keys() - set(FILES))),
        missing=tuple(name for name in FILES if name not in members),
    )


def _answer(members: Mapping[str, bytes], manifest: FileManifest, name: str, sha256: str) -> Answer:
    exercise = load_exercise(manifest.recipe)
    assert isinstance(exercise, FileExercise)
    _check_listing(manifest.files, members, (exercise.file,))
    if exercise.file not in members:
        raise Rejected("no answer", f"The archive has no {exercise.file}: {_REMEDY}.")
    if len(members[exercise.file]) > ANSWER_BYTES:
        raise Rejected("text too large", f"{exercise.file} is larger than {ANSWER_BYTES // KIB} KiB: shorten it.")
    _check_encoding(exercise.file, members)
    return Answer(
        name=name,
        sha256=sha256,
        exercise=exercise,
        student=manifest.student,
        text=members[exercise.file].decode("utf-8"),
        ignored=tuple(sorted(printable(other) for other in members.keys() - {MANIFEST, exercise.file})),
    )


def _check_listing(listed: Mapping[str, str], members: Mapping[str, bytes], known: Iterable[str]) -> None:
    """Raise `Rejected` if the members differ from the manifest's list.

    known: the files that will be read, which the list must contain.
    """
    for name, digest in listed.items():
        if name not in members:
            message = f"{printable(name)} is in the manifest, but not in the archive: {_REMEDY}."
            raise Rejected("missing file", message)
        if hashlib.sha256(members[name]).hexdigest() != digest:
            message = f"{printable(name)} does not have the SHA-256 that the manifest lists: {_REMEDY}."
            raise Rejected("wrong hash", message)
    for name in known:
        if name in members and name not in listed and name != MANIFEST:
            raise Rejected("unlisted file", f"{name} is in the archive, but not in the manifest: {_REMEDY}.")


def _refuse(name: str, excess: Excess | None) -> None:
    """Raise `Rejected` for a file that exceeds a limit."""
    if excess is not None:
        raise Rejected(excess.code, f"{name} {excess.says}: {excess.cure}.")


def _check_encoding(name: str, members: Mapping[str, bytes]) -> None:
    try:
        members[name].decode("utf-8")
    except UnicodeDecodeError:
        message = f"{name} is not UTF-8 text: save it as UTF-8 and hand it in again."
        raise Rejected("not UTF-8", message) from None
