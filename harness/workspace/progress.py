"""Store a student's progress in `work/.progress/<id>.json`, which remains when a workspace is deleted.

The progress contains when the exercise was begun, solved, explained and scored, the number of hints that were shown,
and whether the solution was shown. The manifest of a submission repeats some of it as information, not as proof,
because a student can edit the files.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from harness.errors import name_place
from harness.files import write_whole
from harness.formats.toml_file import StrictModel

MOST_HINTS = 3
NO_CHECK = "none"
MOST_WHY = 300  # characters
_WORD = "^[a-z_-]{1,40}$"
_FOLDER = ".progress"
_STUDENT = ".student"


class Prediction(StrictModel):
    """A student's prediction of the broken run: answers to the questions in `harness.student.prediction`, and a reason.

    check: the name of the check that will find the fault, or `NO_CHECK`.
    """

    loss: Annotated[str, Field(pattern=_WORD)]
    half_rate: Annotated[str, Field(pattern=_WORD)]
    check: Annotated[str, Field(pattern=_WORD)]
    why: Annotated[str, Field(min_length=1, max_length=MOST_WHY)]


class Solved(StrictModel):
    """The time when an exercise was solved, and the help and effort until then.

    attempts: the edits that were verified, and the wrong claims that nothing is broken. minutes: the time since the
    student began, or None if that is not known. revealed: whether the student had seen the solution. causes: the ids of
    the faults, or `healthy`, which the name of a hidden exercise does not tell.
    """

    at: datetime
    causes: Annotated[tuple[str, ...], Field(strict=False)]
    attempts: int
    hints: int
    minutes: float | None
    revealed: bool = False


class Progress(StrictModel):
    """Progress in one exercise.

    begun, explained, scored: when the student began, when the report passed `make check` or was handed in, and when
    `make score` gave the points. skipped: whether the student put the case aside. wrong_claims: how many times the
    student claimed that nothing is broken, although something is. `named_checks` says whether `verify` named the checks
    that differ in a hidden exercise. `handed_in` is the name of the tarball, and `score` the points (of 100) from
    `make score`. Each may be None.
    """

    format_version: Literal[1] = 1
    hints: Annotated[int, Field(ge=0, le=MOST_HINTS)] = 0
    revealed: bool = False
    named_checks: bool = False
    handed_in: str | None = None
    score: float | None = None
    begun: datetime | None = None
    solved: Solved | None = None
    explained: datetime | None = None
    scored: datetime | None = None
    skipped: bool = False
    wrong_claims: Annotated[int, Field(ge=0)] = 0
    prediction: Prediction | None = None


def progress_of(folder: Path) -> Progress:
    """Return the progress in the exercise with this workspace folder.

    It is empty if there is no readable progress file.
    """
    try:
        return Progress.model_validate_json(_note(folder).read_bytes())
    except (OSError, ValidationError):
        return Progress()


def note_progress(folder: Path, **facts: object) -> None:
    """Store these facts in the progress file of the exercise. Raises `OSError` if the file cannot be written."""
    note = _note(folder)
    changed = Progress.model_validate({**progress_of(folder).model_dump(), **facts})
    with name_place(note):
        note.parent.mkdir(parents=True, exist_ok=True)
        write_whole({note: changed.model_dump_json(indent=1).encode() + b"\n"})


def note_begin(folder: Path) -> None:
    """Record the time when the student began an exercise, unless it is known."""
    if progress_of(folder).begun is None:
        note_progress(folder, begun=_now())


def note_solved(folder: Path, causes: tuple[str, ...], attempts: int) -> None:
    """Record that the exercise is solved, unless it was solved before.

    causes: the ids of its faults. attempts: the number of edits that were verified.
    """
    known, now = progress_of(folder), _now()
    if known.solved is not None:
        return
    minutes = None if known.begun is None else round((now - known.begun).total_seconds() / 60, 1)
    made = attempts + known.wrong_claims
    found = Solved(
        at=now, causes=causes, attempts=made, hints=known.hints, minutes=minutes, revealed=known.revealed
    )  # fmt: skip
    note_progress(folder, solved=found.model_dump())


def note_explained(folder: Path) -> None:
    """Record the time when the report of an exercise was complete, unless it is known."""
    if progress_of(folder).explained is None:
        note_progress(folder, explained=_now())


def note_score(folder: Path, score: float | None) -> None:
    """Record the points that the student's work got at home. The student then also sees the solution."""
    note_progress(folder, score=score, scored=None if score is None else _now(), revealed=True)


def note_student(work: Path, student: str) -> None:
    """Store the student's login in the folder of workspaces."""
    write_whole({work / _STUDENT: f"{student}\n".encode()}, durable=False)


def noted_student(work: Path) -> str | None:
    """Return the login that is stored in a folder of workspaces, or None."""
    try:
        return (work / _STUDENT).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def begun_exercises(work: Path) -> set[str]:
    """Return the names of all exercises that have a workspace or stored progress in a folder."""
    return {path.name for path in work.glob("*")} | {path.stem for path in (work / _FOLDER).glob("*.json")}


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _note(folder: Path) -> Path:
    return folder.parent / _FOLDER / f"{folder.name}.json"
