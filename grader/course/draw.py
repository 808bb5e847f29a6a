"""Draw the cases of an assignment: all follow from the course's secret and the assignment's id."""

import hashlib
import string
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from grader.course.course import Course
from harness.checks.core.outcomes import trips_of
from harness.data import DATASETS
from harness.errors import UserError
from harness.recipes.cases import CaseTable, Twins, load_cases, sound_experiments
from harness.recipes.recipe import LEVELS, load_recipes

_ITEM = TypeVar("_ITEM")
_PAIRS_FROM = 4  # the level from which a case may have two breaks


class _Drawn(NamedTuple):
    """The content of a case."""

    experiment: str
    breaks: tuple[str, ...]
    decoy: str | None


def draw_cases(course: Course, assignment: str, count: int, level: int, *, pool: int = 1) -> list[CaseTable]:
    """Return so many cases of a level: no two of one experiment, none that looks like another, some of them healthy.

    No break of another assignment comes again. The same call gives the same cases: what the course file says of this
    assignment does not matter. pool: how many cases stand for each one, of which each student gets one. They have the
    same level, the same kind of data and as many breaks, and the numbers of checks that find them are as close as the
    catalogue allows. Raises `UserError` if the catalogue has too few.
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
    every_broken = [_Drawn(recipes[names[0]].experiment, names, None) for names in _by_rank(words, broken)]
    every_sound = [
        _Drawn(sound.experiment, (), None if sound.name == sound.experiment else sound.name)
        for sound in _by_rank(words, sound_experiments(known.decoy, recipes.values()))
    ]
    pools: list[list[_Drawn]] = []
    for most, candidates in ((count - healthy, every_broken), (count, every_sound)):
        for first in candidates:
            there = [one for members in pools for one in members]
            if len(pools) < most and _fits(first, there, known.twins):
                members = [first, *_companions(first, candidates, there, pool - 1, known.twins)]
                if len(members) == pool:
                    pools.append(members)
        # Healthy ones must not make up for breaks that the catalogue lacks.
        if len(pools) < most:
            each = f" with {pool - 1} like each" if pool > 1 else ""
            raise UserError(
                f"Level {level} has {len(pools)} breaks of different experiments{each} for {count - healthy}: draw"
                " fewer."
            )
    ordered = _by_rank(words, [tuple(members[0]) for members in pools])
    pools.sort(key=lambda members: ordered.index(tuple(members[0])))
    tables: list[CaseTable] = []
    for number, members in enumerate(pools, start=1):
        for one in members:
            name = f"{letter}-{number}" if pool > 1 else None
            tables.append(CaseTable(id=f"{letter}{len(tables) + 1}", pool=name, **one._asdict()))
    return tables


def _fits(one: _Drawn, there: Sequence[_Drawn], twins: Sequence[Twins]) -> bool:
    """Return whether a case shares its experiment with none of these, and looks like none."""
    names = {name for other in there for name in other.breaks}
    return all(one.experiment != other.experiment for other in there) and not _look_alike(one.breaks, names, twins)


def _companions(
    first: _Drawn, every: Sequence[_Drawn], there: Sequence[_Drawn], count: int, twins: Sequence[Twins]
) -> list[_Drawn]:
    """Return up to `count` cases: those that are most like the first one, and fit to all that are there."""
    found: list[_Drawn] = []
    alike = [one for one in every if count and _kind(one) == _kind(first)]
    for one in sorted(
        alike, key=lambda one: abs(_count_finding_checks(one) - _count_finding_checks(first))
    ):  # the order stays where equal
        if len(found) < count and _fits(one, [first, *there, *found], twins):
            found.append(one)
    return found


def _kind(case: _Drawn) -> tuple[str, int]:
    """Return what all cases of a pool share: the kind of data, and the number of breaks."""
    recipe = next(one for one in load_recipes()[0] if one.experiment == case.experiment)
    return DATASETS[recipe.dataset].kind, len(case.breaks)


def _count_finding_checks(case: _Drawn) -> int:
    """Return how many checks find the breaks of a case over all seeds (`solutions/<id>/measured.toml`)."""
    return sum(len(trips_of(name)) for name in case.breaks)


def case_tables(cases: Sequence[CaseTable]) -> str:
    """Return cases as text for a course file."""
    tables = []
    for case in cases:
        breaks = ", ".join(f'"{name}"' for name in case.breaks)
        decoy = f'decoy = "{case.decoy}"\n' if case.decoy else ""
        decoy += f'pool = "{case.pool}"\n' if case.pool else ""
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


def _by_rank(words: str, items: Iterable[_ITEM]) -> list[_ITEM]:
    """Return items in an order that follows from these words; another item changes the order of no others."""
    return sorted(items, key=lambda item: hashlib.sha256(f"{words}\0{item!r}".encode()).digest())
