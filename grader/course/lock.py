"""The lock file of an assignment, next to the course file. It records the version of each case in each kit.

`grader kit` writes the lock file. If a case changes afterwards, the grader does not judge submissions of this case,
because a correct fix of the old version could look wrong.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

import harness
from grader.course.course import Assignment, Course
from grader.intake.submission import Answer, Submission
from grader.private import write_private
from grader.score.deadlines import local_time
from grader.score.verdict import Flag
from harness.errors import UserError, printable
from harness.formats.toml_file import StrictModel
from harness.recipes.cases import Case
from harness.recipes.personal import login
from harness.run.files import source_hash
from harness.run.provenance import harness_hash

# The ids of the flags that a submission can get.
OTHER_VERSION, OTHER_ASSIGNMENT, OTHER_CASE = "other version of the case", "other assignment", "other case of the pool"
_NAMES = {"source_sha256": "experiment", "dataset": "data set", "seed": "seed", "personal_seeds": "personal seeds"}


class CaseVersion(StrictModel):
    """The values on which the runs of a case depend. If two versions are equal, their runs are equal, too."""

    source_sha256: str
    dataset: str
    seed: int
    personal_seeds: bool

    def differences(self, other: "CaseVersion") -> str:
        """Return a description of the differences between this version and another one, or "" if they are equal."""
        mine, theirs = self.model_dump(), other.model_dump()
        return ", ".join(f"different {words}" for name, words in _NAMES.items() if mine[name] != theirs[name])


class Edition(StrictModel):
    """The record of a kit that was built.

    made: the time. suite: the version of the suite (exercises, harness and grader). harness_sha256: the hash of the
    harness. cases: the version of each case, by id.
    """

    made: Annotated[datetime, Field(strict=False)]
    suite: str
    harness_sha256: str
    cases: dict[str, CaseVersion]


class Lock(StrictModel):
    """The content of a lock file: a record of each kit that was built for an assignment, the newest last."""

    format_version: Literal[1] = 1
    course: str
    assignment: str
    editions: Annotated[tuple[Edition, ...], Field(min_length=1, strict=False)]


def lock_path(course: Course, assignment: Assignment) -> Path:
    """Return the path of an assignment's lock file. It is next to the course file."""
    return course.folder / f"{assignment.id}.lock.json"


def read_lock(course: Course, assignment: Assignment) -> Lock | None:
    """Read an assignment's lock file; return None if no kit was built. Raises `UserError` if the file is invalid."""
    path = lock_path(course, assignment)
    try:
        lock = Lock.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError:
        raise UserError(
            f"{path} is damaged, or from a newer version of the suite: restore it from your backup."
        ) from None
    if (lock.course, lock.assignment) != (course.id, assignment.id):
        raise UserError(
            f"{path} belongs to {lock.assignment} of the course {lock.course}, not to {assignment.id} of {course.id}:"
            " restore the ids in the course file, or restore the correct lock file."
        )
    return lock


def versions_of(cases: Sequence[Case]) -> dict[str, CaseVersion]:
    """Return the current version of each case, by its id."""
    return {
        case.id: CaseVersion(
            source_sha256=source_hash(case.broken_source()),
            dataset=case.dataset,
            seed=case.seed,
            personal_seeds=case.personal_seeds,
        )
        for case in cases
    }


def note_kit(course: Course, assignment: Assignment) -> list[str]:
    """Add the current versions of the cases to the lock file, if they are new. Return messages for the instructor.

    Raises `UserError` as `read_lock` does.
    """
    lock, path = read_lock(course, assignment), lock_path(course, assignment)
    cases = versions_of(course.cases(assignment))
    before = lock.editions[-1] if lock else None
    if before is not None and (before.cases, before.harness_sha256) == (cases, harness_hash()):
        return []
    edition = Edition(
        made=datetime.now(UTC).replace(microsecond=0),
        suite=harness.__version__,
        harness_sha256=harness_hash(),
        cases=cases,
    )
    new = Lock(course=course.id, assignment=assignment.id, editions=(*(lock.editions if lock else ()), edition))
    write_private(path, (new.model_dump_json(indent=1) + "\n").encode())
    changed = _find_changes(before, cases) if before else {}
    said = [f"The file {path} stores the version of each case: keep it next to the course file."]
    return said + [
        f"{id} has changed since the kit of {local_time(before.made, course.zone)} ({why}): the grader can no longer"
        " judge submissions made with that kit. Hand out the new kit."
        for id, why in changed.items()
        if before
    ]


def _find_changes(before: Edition, cases: Mapping[str, CaseVersion]) -> dict[str, str]:
    """Return the differences between the cases of an earlier kit and the current cases, by id of the case."""
    found = {id: old.differences(cases[id]) if id in cases else "removed" for id, old in before.cases.items()}
    return {id: why for id, why in found.items() if why}


class Handout:
    """Compares submissions with the versions of the cases in the kits that were built for an assignment."""

    def __init__(self, course: Course, assignment: Assignment) -> None:
        """Read the lock file. Raises `UserError` as `read_lock` does."""
        self._lock, self._path = read_lock(course, assignment), lock_path(course, assignment)
        self._zone, self._assignment = course.zone, assignment.id
        self._now = versions_of(course.cases(assignment))
        self._exercises = assignment.exercises
        self._cases = {case.id: case for case in course.cases(assignment)}
        self._mates = {login(name): group for group in assignment.groups for name in group}

    def notes(self) -> list[str]:
        """Return warnings for the instructor, which are printed before the scoring starts."""
        if self._lock is None:
            return [
                f"There is no {self._path}, so the grader cannot see whether a case has changed since you handed it"
                " out. The command grader kit writes this file."
            ]
        last = self._lock.editions[-1]
        found = [f"{id}: {self._was_changed(last, why)}" for id, why in _find_changes(last, self._now).items()]
        if last.suite != harness.__version__:
            found.append(
                f"The kit of {self._assignment} was built with version {last.suite} of the suite, but this is version"
                f" {harness.__version__}."
            )
        elif last.harness_sha256 != harness_hash():
            found.append(f"The harness has changed since the kit of {self._assignment} was built: runs may differ.")
        return found

    def problem(self, submission: Submission | Answer) -> Flag | None:
        """Return a flag if the assignment, the case or the version of a submission is not the expected one; else None.

        If cases form a pool, only the case that the student gets from this pool is expected.
        """
        if submission.recipe not in self._exercises:
            return Flag(id=OTHER_ASSIGNMENT, message=f"{submission.recipe} does not belong to this assignment.")
        if isinstance(submission, Answer):
            return None
        drawn = self._cases_of(submission)
        if submission.recipe not in drawn:
            message = f"The case of {printable(submission.student)} is {drawn[0]}, not {submission.recipe}."
            return Flag(id=OTHER_CASE, message=message)
        now, made_with = self._now.get(submission.recipe), submission.broken_source_sha256
        if self._lock is None or now is None:
            return None
        *_, last = self._lock.editions
        if (was := last.cases.get(submission.recipe)) is not None and was.differences(now):
            return Flag(
                id=OTHER_VERSION, message="The case was changed after your kit was built. Your instructor decides."
            )
        for edition in reversed(self._lock.editions[:-1]):
            old = edition.cases.get(submission.recipe)
            if old is not None and old.source_sha256 == made_with != now.source_sha256:
                message = (
                    f"The submission was made with the kit of {self._when(edition)}. The newer kit of"
                    f" {self._when(last)} changed the case."
                )
                return Flag(id=OTHER_VERSION, message=message)
        return None

    def _cases_of(self, submission: Submission) -> list[str]:
        """Return the cases that the student and the other members of the student's group get from the pool."""
        group = self._mates.get(login(submission.student), ())
        return [self._cases[submission.recipe].case_of(name) for name in (submission.student, *group)]

    def _was_changed(self, edition: Edition, why: str) -> str:
        return (
            f"The case has changed since the kit of {self._when(edition)} ({why}). Restore the old version, or build"
            " the kit again and hand it out."
        )

    def _when(self, edition: Edition) -> str:
        return local_time(edition.made, self._zone)
