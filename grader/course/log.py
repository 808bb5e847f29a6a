"""The log of a folder of reports: who scored or exported, and when. Only `grader forget` changes earlier lines."""

import getpass
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

import harness
from grader.course.decisions import decisions_path
from grader.private import path_beside, private_files
from grader.report.text import clip
from grader.score.deadlines import local_time
from grader.score.identity import Student
from grader.score.verdict import Change, SubmissionScore
from grader.session import ScoreOptions
from harness.errors import UserError
from harness.formats.toml_file import StrictModel
from harness.run.provenance import harness_hash

_SHOWN = 10  # the maximum number of changes to print for one scoring


class LogEntry(StrictModel):
    """One line of the log.

    did: the command. about: details of the command. suite: the version of the suite (exercises, harness and grader).
    harness_sha256: the hash of the harness. inputs: the SHA-256 of each input, by its name. counts: the number of rows
    by status. upgrade: how the suite or the rubric has changed since the last scoring, or "". changes: the submissions
    whose totals differ from the last scoring.
    """

    when: Annotated[datetime, Field(strict=False)]
    who: str
    did: Literal["score", "export", "forget"]
    about: str = ""
    suite: str
    harness_sha256: str
    inputs: dict[str, str] = Field(default_factory=dict)
    counts: dict[str, int] = Field(default_factory=dict)
    upgrade: str = ""
    changes: Annotated[tuple[Change, ...], Field(strict=False)] = ()


def log_path(out: Path) -> Path:
    """Return the path of the log. It is not in the reports, because each scoring replaces them."""
    return path_beside(out, "log.jsonl")


def note(
    out: Path,
    did: Literal["score", "export", "forget"],
    about: str = "",
    *,
    inputs: Mapping[str, str] | None = None,
    counts: Mapping[str, int] | None = None,
    upgrade: str = "",
    changes: Sequence[Change] = (),
) -> None:
    """Append a line to the log of these reports, and sync the line to the disk."""
    entry = LogEntry(
        when=datetime.now(UTC).replace(microsecond=0),
        who=_user(),
        did=did,
        about=about,
        suite=harness.__version__,
        harness_sha256=harness_hash(),
        inputs=dict(inputs or {}),
        counts=dict(counts or {}),
        upgrade=upgrade,
        changes=tuple(changes),
    )
    line = entry.model_dump_json(exclude_defaults=True) + "\n"
    with private_files(), log_path(out).open("a", encoding="utf-8") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for its user
        return f"user {os.getuid()}"


def read_log(out: Path) -> list[LogEntry]:
    """Return the lines of the log, the newest last; [] without a log. Raises `UserError` if a line is invalid."""
    path = log_path(out)
    if not path.is_file():
        return []
    found = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            found.append(LogEntry.model_validate_json(line))
        except ValidationError:
            raise UserError(
                f"{path}, line {number} is not a valid entry of the log: restore the file from your backup."
            ) from None
    return found


def digest(lines: Sequence[Sequence[str]]) -> str:
    """Return the SHA-256 of a table of texts. The hash does not depend on the order of the rows."""
    return hashlib.sha256(json.dumps(sorted(map(list, lines))).encode()).hexdigest()


def format_log(entries: Sequence[LogEntry], zone: tzinfo = UTC, *, every: bool = False) -> Iterator[str]:
    """Yield the log as lines for a terminal. every: whether to show all changes of a scoring, or only the first ten."""
    for entry in entries:
        yield (
            f"{local_time(entry.when, zone)}  {clip(entry.who, 40)}: {entry.did}"
            f"{entry.about and ' '}{clip(entry.about, 200)}  (version {clip(entry.suite, 40)}, harness"
            f" {entry.harness_sha256[:8]})"
        )
        counts = ", ".join(f"{count} {clip(name, 40)}" for name, count in entry.counts.items())
        inputs = ", ".join(f"{clip(name, 40)} {value[:8]}" for name, value in entry.inputs.items())
        yield from (f"  {line}" for line in (counts, inputs) if line)
        if entry.upgrade:
            yield f"  changed in suite or rubric: {clip(entry.upgrade, 300)}"
        shown = entry.changes if every else entry.changes[:_SHOWN]
        for one in shown:
            yield f"  {clip(one.submission, 80)}: {one.before} -> {one.after} ({clip(one.why, 200)})"
        if len(shown) < len(entry.changes):
            yield f"  and {len(entry.changes) - len(shown)} more changes: --all shows them"


def digest_inputs(
    rows: Sequence[SubmissionScore], options: ScoreOptions, students: Sequence[Student]
) -> dict[str, str]:
    """Return the SHA-256 of each input of a scoring (submissions, course, times, decisions, roster), by its name."""
    files = {"course": options.course, "times": options.times, "decisions": decisions_path(options.out)}
    found = {
        "submissions": digest([(row.submission, str(row.provenance.get("tarball_sha256", ""))) for row in rows]),
        **{
            name: hashlib.sha256(path.read_bytes()).hexdigest()
            for name, path in files.items()
            if path is not None and path.is_file()
        },
    }
    if students:
        found["roster"] = digest([(one.login, one.name, one.email, one.section) for one in students])
    return found
