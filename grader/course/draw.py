"""Draw the cases of an assignment at random. The secret of the course and the id of the assignment are the seed."""

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
_PAIRS_FROM = 4  # from this level on, a case may have two breaks


class _Drawn(NamedTuple):
    """A case that was drawn, before it has an id: a healthy experiment, its breaks, and its decoy."""

    experiment: str
    breaks: tuple[str, ...]
    decoy: str | None


def draw_cases(course: Course, assignment: str, count: int, level: int, *, pool: int = 1) -> list[CaseTable]:
    """Draw `count` cases of one level, some of them healthy. No two cases use the same experiment or look alike.

    Breaks that other assignments use are not drawn. The same call gives the same cases, even if the course file already
    has other cases for this assignment.
    pool: if greater than 1, draw a pool of this number of cases in place of each case; each student gets one case of a
    pool. The cases of a pool have the same level, the same kind of data and the same number of breaks, and are found by
    about the same number of checks.
    Raises `UserError` if there are too few recipes to draw from.
    """
    known, recipes = load_cases(), {recipe.id: recipe for recipe in load_recipes()[0]}
    others = [case for one in course.assignment if one.id != assignment for case in one.case]
    used = {name for case in others for name in case.breaks}
    words = f"{course.secret}\0{assignment}\0{level}"
    letter = _letter({case.id for case in others}, len([one for one in course.assignment if one.id != assignment]))
    # The highest level has few recipes, so also draw from the level below it.
    levels = {level, level - 1} if level == LEVELS else {level}
    at_level = {one.id for one in recipes.values() if one.goal is not None and one.goal.level in levels} - used
    broken: list[tuple[str, ...]] = [(name,) for name in at_level]
    if level >= _PAIRS_FROM:
        broken += [pair for pair in known.together if at_level & set(pair) and not used & set(pair)]
    # With three or more cases, at least one case and at most a third are healthy. With two cases, at most one is
    # healthy. A single case is never healthy.
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
        # If there are too few breaks, raise an error, instead of drawing more healthy cases.
        if len(pools) < most:
            each = f" with {pool - 1} similar cases for each" if pool > 1 else ""
            raise UserError(
                f"Level {level} has only {len(pools)} breaks of different experiments{each}, but {count - healthy} are"
                " needed: draw fewer cases."
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
    """Return whether the case `one` can join the cases in `there`.

    A case can join if no other case has the same experiment, and if no other case looks like it.
    """
    names = {name for other in there for name in other.breaks}
    return all(one.experiment != other.experiment for other in there) and not _look_alike(one.breaks, names, twins)


def _companions(
    first: _Drawn, every: Sequence[_Drawn], there: Sequence[_Drawn], count: int, twins: Sequence[Twins]
) -> list[_Drawn]:
    """Return the `count` cases (or fewer) that are most similar to `first` and can join the cases in `there`."""
    found: list[_Drawn] = []
    alike = [one for one in every if count and _kind(one) == _kind(first)]
    for one in sorted(
        alike, key=lambda one: abs(_count_finding_checks(one) - _count_finding_checks(first))
    ):  # the sort is stable, so equally similar cases stay in the order of the draw
        if len(found) < count and _fits(one, [first, *there, *found], twins):
            found.append(one)
    return found


def _kind(case: _Drawn) -> tuple[str, int]:
    """Return the kind of data and the number of breaks of a case. All cases of a pool have the same values."""
    recipe = next(one for one in load_recipes()[0] if one.experiment == case.experiment)
    return DATASETS[recipe.dataset].kind, len(case.breaks)


def _count_finding_checks(case: _Drawn) -> int:
    """Return the number of checks that always find the breaks of a case, from `solutions/<id>/measured.toml`."""
    return sum(len(trips_of(name)) for name in case.breaks)


def case_tables(cases: Sequence[CaseTable]) -> str:
    """Return cases as TOML for a course file."""
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
    """Return a letter with which no id begins. If it is free, return the letter at `place` in the alphabet."""
    free = [one for one in string.ascii_lowercase if not any(id.startswith(one) for id in ids)]
    wanted = string.ascii_lowercase[place % 26]
    return wanted if wanted in free or not free else free[0]


def _by_rank(words: str, items: Iterable[_ITEM]) -> list[_ITEM]:
    """Return items in a pseudo-random order, with the seed `words`. An additional item leaves this order unchanged."""
    return sorted(items, key=lambda item: hashlib.sha256(f"{words}\0{item!r}".encode()).digest())
