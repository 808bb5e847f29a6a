"""The queue of a level: the case that is open, the next case, and the cases that a student has solved.

A case is a hidden exercise with a neutral name (`harness.recipes.mysteries`). A level is complete when the student has
solved `CASES_OF_A_LEVEL` hidden exercises of the level without seeing a solution first. A course kit has no levels: its
queue contains its own exercises.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from harness.errors import UserError
from harness.recipes.catalogue import SUITE
from harness.recipes.mysteries import draw_case, is_hidden, level_of_hidden
from harness.recipes.recipe import LEVELS, KitRecipe, listed_ids
from harness.workspace.progress import Progress, begun_exercises, note_progress, noted_student, progress_of
from harness.workspace.workspace import SETTINGS, open_workspace

CASES_OF_A_LEVEL = 10
_HOUR, _DAY = 60, 24 * 60  # minutes


@dataclass(frozen=True)
class CaseRecord:
    """A hidden exercise that a student has begun, or an exercise of a kit."""

    name: str
    level: int | None
    progress: Progress

    @property
    def fault(self) -> str:
        """The ids of the faults, `healthy`, or "" as long as the student does not know them."""
        return ", ".join(self.progress.solved.causes) if self.progress.solved else ""

    @property
    def counts(self) -> bool:
        """Whether the student solved the exercise without seeing its solution first."""
        return self.progress.solved is not None and not self.progress.solved.revealed

    @property
    def is_open(self) -> bool:
        """Whether the student still works on it: it is not solved, shown, handed in or put aside."""
        noted = self.progress
        return not (noted.solved or noted.revealed or noted.handed_in or noted.skipped)


def _timestamp(time: datetime | None) -> float:
    return time.timestamp() if time else 0.0


def duration(minutes: float | None) -> str:
    """Return a time in words, such as "12 min", "3 h 5 min" or "2 days". Return "" for a time that is not known."""
    if minutes is None:
        return ""
    whole = max(round(minutes), 1)
    if whole < _HOUR:
        return f"{whole} min"
    if whole < 2 * _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR} min"
    return f"{whole // _DAY} days"


class PracticeQueue:
    """The queue of the student whose workspaces are in the folder `work`, as it is when this object is made."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._begun = frozenset(begun_exercises(work))

    @cached_property
    def in_kit(self) -> bool:
        """Whether this is a course kit, whose queue contains its own exercises."""
        return any(isinstance(SUITE.find(name), KitRecipe) for name in listed_ids()[:1])

    @cached_property
    def records(self) -> tuple[CaseRecord, ...]:
        """The exercises of the queue that the student has begun, in the order in which they were begun."""
        names = filter(is_hidden, self._begun) if not self.in_kit else self._begun & {*self._own()}
        found = [
            CaseRecord(name, None if self.in_kit else level_of_hidden(name), progress_of(self._work / name))
            for name in sorted(names)
            if (self._work / name / SETTINGS).is_file() or progress_of(self._work / name).begun is not None
        ]
        return tuple(sorted(found, key=lambda one: _timestamp(one.progress.begun)))

    def open_case(self) -> CaseRecord | None:
        """Return the exercise that the student works on: the one that was begun last, or None."""
        return next((one for one in reversed(self.records) if one.is_open), None)

    def has_run(self, case: CaseRecord) -> bool:
        """Return whether the broken run of an exercise was made."""
        folder = self._work / case.name
        return (folder / SETTINGS).is_file() and open_workspace(self._work, case.name).has_run("broken")

    def solved_on(self, level: int) -> list[CaseRecord]:
        """Return the exercises that count for a level, in the order in which they were solved."""
        found = [one for one in self.records if one.level == level and one.counts]
        return sorted(found, key=lambda one: _timestamp(one.progress.solved.at if one.progress.solved else None))

    def is_complete(self, level: int) -> bool:
        """Return whether the student has completed a level."""
        return len(self.solved_on(level)) >= CASES_OF_A_LEVEL

    @property
    def level(self) -> int:
        """The student's level: the level of the last exercise, or the next level that is not complete."""
        last = self.records[-1].level if self.records else None
        level = last or 1
        while level < LEVELS and self.is_complete(level):
            level += 1
        return level

    def draw(self, level: int | None = None) -> str:
        """Return the name of the next exercise of a level (default: the student's level). It differs from all before.

        Raises `UserError` if the student had everything, and in a course kit if a level is given.
        """
        if self.in_kit:
            return self._draw_of_kit(level)
        level = level or self.level
        name = draw_case(self._begun, level)
        if name is None:
            others = [one for one in range(1, LEVELS + 1) if one != level and draw_case(self._begun, one)]
            remedy = f"choose LEVEL={others[0]} (--level)." if others else "make exercises lists the exercises."
            raise UserError(f"You have had every case of level {level}: {remedy}")
        return name

    def _draw_of_kit(self, level: int | None) -> str:
        if level is not None:
            raise UserError("A course kit has no levels: remove LEVEL= (--level).")
        name = next((name for name in self._own() if name not in self._begun), None)
        if name is None:
            raise UserError("You have begun every exercise of this kit: make exercises lists them.")
        return name

    def _own(self) -> list[str]:
        """Return the exercises of a kit, easy ones first, without those that its course gives to other students."""
        student, every = noted_student(self._work), map(SUITE.find, listed_ids())
        own = [one for one in every if student is None or one.case_of(student) == one.id]
        return [one.id for one in sorted(own, key=lambda one: one.goal.level if one.goal else 0)]

    def skip(self) -> None:
        """Put the open case aside. Raises `UserError` if there is no open case."""
        case = self.open_case()
        if case is None:
            raise UserError("No case is open: remove SKIP=1 (--skip).")
        note_progress(self._work / case.name, skipped=True)
