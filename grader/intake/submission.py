"""Takes one submission in: which of its files are there, whole, and what they say of themselves."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from grader.intake.archive import read_members
from grader.intake.commands import parse_command
from grader.intake.gunzip import MIB, gunzip, read_tarball
from grader.intake.manifest import Manifest, parse_file_manifest, parse_manifest
from grader.intake.names import printable
from grader.intake.rejected import Rejected
from harness.data import DATASETS
from harness.recipe import recipe_ids
from harness.run.settings import RunSettings
from harness.submission.check_run import META, METRICS_LOG, RUN_FILES, RUNS
from harness.submission.submission import COMMANDS, MANIFEST
from harness.workspace import EXPERIMENT, REPORT
from harness.written.exercise import file_exercise_ids

SUFFIX = ".tar.gz"
# All that a submission holds; of anything else only the name is kept.
FILES = (
    MANIFEST,
    EXPERIMENT,
    REPORT,
    COMMANDS,
    *(f"runs/{run}/{name}" for run in RUNS for name in RUN_FILES),
)
# The experiments as handed out have 2 KiB, and a report of 500 words 4; larger texts are read by nobody.
TEXT_BYTES = 64 * 1024
_TEXTS = (EXPERIMENT, REPORT, COMMANDS)
# The longest log of a recipe as handed out has 0.1 MiB. Reading one at the limit takes 3 s and 260 MB.
LOG_BYTES = 8 * MIB
# Where a run was made, in 2 KiB. Read as JSON, 32 MiB of empty lists become 600 MB, which are kept for the class.
META_BYTES = 64 * 1024
# A record of a batch has 5; what nests a few hundred deep takes readers down that recur.
LINE_BRACKETS = 100
# Who looks for the end of a table from each of its lines takes minutes for 30,000; and for a row of 60,000 dashes.
TABLE_ROWS, ROW_CHARACTERS = 2000, 2000
_REMEDY = "make submit writes a whole archive"
_COMMANDS = re.compile(r"# runs/broken\n(?P<broken>[^\n]*)\n\n?# runs/fixed\n(?P<fixed>[^\n]*)\n*")


@dataclass(frozen=True)
class Submission:
    """A submission that was taken. All that is in it is what a stranger wrote.

    `name` is that of the file without `.tar.gz`, `files` the known files by their paths in the archive, `ignored`
    the names of all others, fit to be shown, and `missing` the known files that are not there: they cost points.
    """

    name: str
    sha256: str
    manifest: Manifest
    files: dict[str, bytes]
    ignored: tuple[str, ...]
    missing: tuple[str, ...]


def read_submission(path: Path) -> Submission:
    """Return the submission in a tarball, read in memory.

    Raises `Rejected` for one that cannot be taken, and `OSError` where the file cannot be read at all.
    """
    data = read_tarball(path)
    return parse_submission(submission_name(path), data, hashlib.sha256(data).hexdigest())


def parse_submission(name: str, data: bytes, sha256: str) -> Submission:
    """Return the submission in the bytes of a tarball with this SHA-256. Raises `Rejected`."""
    with opened(data) as members:
        return submission_in(members, name, sha256)


@contextmanager
def opened(data: bytes) -> Iterator[Mapping[str, bytes]]:
    """Give the files in the bytes of a tarball; a `Rejected` of the block is told whose the tarball is."""
    members: dict[str, bytes] = {}
    try:
        read_members(gunzip(data), members)
        yield members
    except Rejected as refusal:
        refusal.student, refusal.recipe = _told_names(members)
        raise


def submission_in(members: Mapping[str, bytes], name: str, sha256: str) -> Submission:
    """Return the submission of two runs in the files of a tarball. Raises `Rejected`."""
    manifest = _checked_manifest(members)
    return Submission(
        name=name,
        sha256=sha256,
        manifest=manifest,
        files={name: members[name] for name in FILES if name in members},
        ignored=tuple(sorted(printable(name) for name in members.keys() - set(FILES))),
        missing=tuple(name for name in FILES if name not in members),
    )


def submission_name(path: Path) -> str:
    """Return what a tarball is called: its file's name without `.tar.gz`, bytes that are no UTF-8 as escapes."""
    return os.fsencode(path.name.removesuffix(SUFFIX)).decode("utf-8", "backslashreplace")


def _told_names(members: Mapping[str, bytes]) -> tuple[str | None, str | None]:
    try:
        data = members[MANIFEST]
        manifest = parse_file_manifest(data, file_exercise_ids()) or parse_manifest(data)
    except (KeyError, Rejected):
        return None, None
    return manifest.student, manifest.recipe


def _checked_manifest(members: Mapping[str, bytes]) -> Manifest:
    if MANIFEST not in members:
        raise Rejected("no manifest", f"The archive has no {MANIFEST}: {_REMEDY}.")
    manifest = parse_manifest(members[MANIFEST])
    if manifest.recipe not in recipe_ids():
        raise Rejected("unknown recipe", f"There is no exercise {printable(manifest.recipe)}: {_REMEDY}.")
    if manifest.dataset not in DATASETS:
        raise Rejected("unknown data set", f"There is no data set {printable(manifest.dataset)}: {_REMEDY}.")
    for code, message in _faults(manifest, members):
        raise Rejected(code, message)
    return manifest


def listing_faults(
    listed: Mapping[str, str], members: Mapping[str, bytes], known: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield where the files of a tarball are not those that its manifest lists; `known` are those that are read."""
    for name, digest in listed.items():
        if name not in members:
            yield "missing file", f"{printable(name)} is in the manifest and not in the archive: {_REMEDY}."
        elif hashlib.sha256(members[name]).hexdigest() != digest:
            yield "wrong hash", f"{printable(name)} has another SHA-256 than the manifest says: {_REMEDY}."
    for name in known:
        if name in members and name not in listed and name != MANIFEST:
            yield "unlisted file", f"{name} is in the archive and not in the manifest: {_REMEDY}."


def _faults(manifest: Manifest, members: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    yield from listing_faults(manifest.files, members, FILES)
    if EXPERIMENT not in members:
        yield "no experiment", f"The archive has no {EXPERIMENT}: {_REMEDY}."
    for name in _TEXTS:
        if len(members.get(name, b"")) > TEXT_BYTES:
            yield "text too large", f"{name} is larger than {TEXT_BYTES // 1024} KiB: shorten it."
    report = members.get(REPORT, b"")[:TEXT_BYTES].decode("utf-8", "replace")
    rows = [line for line in report.split("\n") if line.lstrip().startswith("|")]
    if len(rows) > TABLE_ROWS or any(len(row) > ROW_CHARACTERS for row in rows):
        what = f"more than {TABLE_ROWS} rows of tables, or one of more than {ROW_CHARACTERS} characters"
        yield "table too large", f"{REPORT} has {what}: shorten it."
    for run in RUNS:
        yield from _faults_of_a_run(run, members)
    try:
        members[EXPERIMENT].decode("utf-8")
    except UnicodeDecodeError:
        yield "not UTF-8", f"{EXPERIMENT} is not UTF-8 text: save it as UTF-8 and hand it in again."


def _faults_of_a_run(run: str, members: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    log = members.get(f"runs/{run}/{METRICS_LOG}", b"")
    if len(log) > LOG_BYTES:
        yield (
            "log too large",
            f"The log of the {run} run is larger than {LOG_BYTES // MIB} MiB: train for less.",
        )
    if any(line.count(b"{") + line.count(b"[") > LINE_BRACKETS for line in log.split(b"\n")):
        yield "no log", f"The log of the {run} run is none that a run writes: {_REMEDY}."
    if len(members.get(f"runs/{run}/{META}", b"")) > META_BYTES:
        yield "meta too large", f"{META} of the {run} run is larger than {META_BYTES // 1024} KiB: {_REMEDY}."


def read_settings(submission: Submission) -> dict[Literal["broken", "fixed"], RunSettings]:
    """Return the settings of both runs, from `command.txt`.

    Raises `ValueError`, with a sentence, where it is missing, not what `make submit` writes, or of another seed
    or data set than the manifest's.
    """
    data = submission.files.get(COMMANDS)
    if data is None:
        raise ValueError(f"There is no {COMMANDS}.")
    found = _COMMANDS.fullmatch(data.decode("utf-8", "replace").replace("\r\n", "\n"))
    if found is None:
        raise ValueError(
            f"{COMMANDS} is not the commands of the broken and the fixed run, as make submit writes them."
        )
    manifest = submission.manifest
    settings: dict[Literal["broken", "fixed"], RunSettings] = {
        "broken": parse_command(found["broken"], manifest.recipe, None),
        "fixed": parse_command(found["fixed"], manifest.recipe, EXPERIMENT),
    }
    for run, of_run in settings.items():
        if (of_run.seed, of_run.dataset) != (manifest.seed, manifest.dataset):
            raise ValueError(f"The command of the {run} run has another seed or data set than the manifest.")
    return settings
