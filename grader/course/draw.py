"""Draw the cases of an assignment: all follow from the course's secret and the assignment's id."""

import hashlib
import string
from collections.abc import Iterable, Sequence
from typing import TypeVar

from grader.course.course import Course
from harness.cases import CaseTable, Twins, load_cases, sound_experiments
from harness.errors import UserError
from harness.recipe import LEVELS, load_recipes

_Item = TypeVar("_Item")
_PAIRS_FROM = 4  # the level from which a case may have two breaks


def draw_cases(course: Course, assignment: str, count: int, level: int) -> list[CaseTable]:
    """Return so many cases of a level: no two of one experiment, none that looks like another, some of them healthy.

    No break of another assignment comes again. The same call gives the same cases: what the course file says of this
    assignment does not matter. Raises `UserError` if the catalogue has too few.
    """
    known, recipes = load_cases(), {recipe.id: recipe for recipe in load_recipes()[0]}
    others = [case for one in course.assignment if one.id != assignment for case in one.case]
    used = {name for case in others for name in case.breaks}
    words = f"{course.secret}\0{assignment}\0{level}"
    letter = _letter({case.id for case in others}, len([one for one in course.assignment if one.id != assignment]))
    levels = {level, level - 1} if level == LEVELS else {level}  # the highest has few
    at_level = {one.id for one in recipes.values() if one.goal is not None and one.goal.level in levels} - used
    broken: list[tuple[str, ...]] = [(name,) for name in at_level]
    if level >= _PAIRS_FROM:
        broken += [pair for pair in known.together if at_level & set(pair) and not used & set(pair)]
    # One to a third of the cases is healthy; of two or one perhaps none.
    share = count // 3
    healthy = _by_rank(words, range(1, share + 1))[0] if share else _by_rank(words, range(2))[0] if count > 1 else 0
    drawn: list[tuple[str, tuple[str, ...], str | None]] = []
    taken: set[str] = set()
    for names in _by_rank(words, broken):
        experiment = recipes[names[0]].experiment
        there = {name for _, others, _ in drawn for name in others}
        if len(drawn) < count - healthy and experiment not in taken and not _look_alike(names, there, known.twins):
            taken.add(experiment)
            drawn.append((experiment, names, None))
    for sound in _by_rank(words, sound_experiments(known.decoy, recipes.values())):
        if len(drawn) < count and sound.experiment not in taken:
            taken.add(sound.experiment)
            drawn.append((sound.experiment, (), None if sound.name == sound.experiment else sound.name))
    # Healthy ones must not make up for breaks that the catalogue lacks.
    if sum(bool(names) for _, names, _ in drawn) < count - healthy or len(drawn) < count:
        least = sum(bool(names) for _, names, _ in drawn)
        raise UserError(f"Level {level} has {least} breaks of different experiments for {count - healthy}: draw fewer.")
    return [
        CaseTable(id=f"{letter}{number}", experiment=experiment, breaks=names, decoy=decoy)
        for number, (experiment, names, decoy) in enumerate(_by_rank(words, drawn), start=1)
    ]


def case_tables(cases: Sequence[CaseTable]) -> str:
    """Return cases as text for a course file."""
    tables = []
    for case in cases:
        breaks = ", ".join(f'"{name}"' for name in case.breaks)
        decoy = f'decoy = "{case.decoy}"\n' if case.decoy else ""
        tables.append(
            f'[[assignment.case]]\nid = "{case.id}"\nexperiment = "{case.experiment}"\nbreaks = [{breaks}]\n{decoy}'
        )
    return "\n".join(tables)


def _look_alike(names: Sequence[str], there: set[str], twins: Sequence[Twins]) -> bool:
    pairs = [pair.exercises for pair in twins]
    return any((one in names and two in there) or (two in names and one in there) for one, two in pairs)


def _letter(ids: set[str], place: int) -> str:
    """Return a letter that begins no other id: the alphabet's at this place if it can be."""
    free = [one for one in string.ascii_lowercase if not any(id.startswith(one) for id in ids)]
    wanted = string.ascii_lowercase[place % 26]
    return wanted if wanted in free or not free else free[0]


def _by_rank(words: str, items: Iterable[_Item]) -> list[_Item]:
    """Return items in an order that follows from these words; another item changes the order of no others."""
    return sorted(items, key=lambda item: hashlib.sha256(f"{words}\0{item!r}".encode()).digest())
