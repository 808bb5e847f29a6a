"""Mysteries: cases that are drawn from the whole suite by their names, `mystery-<level>-<number>`.

A hash of the name and the candidate ranks all candidates, and the highest is drawn. So a new recipe seldom changes the
mystery of an old name.
"""

import hashlib
import re
from collections.abc import Set
from typing import Any

from harness.errors import UserError
from harness.recipes.cases import MYSTERY, SEEDS, Case, case_of, healthy_case, load_cases, sound_experiments
from harness.recipes.recipe import LEVELS, KitRecipe, load_recipes

_NAME = re.compile(rf"{MYSTERY}-([1-{LEVELS}])-([1-9][0-9]{{0,5}})")

# One mystery in eight is healthy. Of the others, one in four on level 4, and one in two on level 5, has two breaks.
_HEALTHY_SHARE = 1 / 8

_PAIR_SHARE = {4: 1 / 4, 5: 1 / 2}

_MOST = 1000  # at most this many mysteries of a level are tried to find a new one


def is_mystery(name: str) -> bool:
    """Return whether this is the name of a mystery."""
    return _NAME.fullmatch(name) is not None


def mystery_name(level: int, number: int) -> str:
    """Return the name of a mystery."""
    return f"{MYSTERY}-{level}-{number}"


def draw_mystery(seen: Set[str], level: int | None, number: int | None) -> str:
    """Return the name of a mystery: by default of level 1, and the first that differs from all in `seen`.

    seen: the names of the student's exercises. Raises `UserError` as `load_mystery` does.
    """
    level = level or 1
    if number is not None:
        return mystery_name(level, number)
    every = _Drawer()
    known = {every.draw(name).content for name in filter(is_mystery, seen)}
    names = [name for name in (mystery_name(level, one) for one in range(1, _MOST)) if name not in seen]
    return next((name for name in names if every.draw(name).content not in known), names[0])


def load_mystery(name: str) -> Case:
    """Return the case with a name of the form `mystery-<level>-<number>`.

    Raises `UserError` for another name, and in a student's kit, which has no healthy experiments.
    """
    return _Drawer().draw(name)


class _Drawer:
    """Draws mysteries from all recipes and decoys. Raises `UserError` in a student's kit."""

    def __init__(self) -> None:
        self.recipes = {recipe.id: recipe for recipe in load_recipes()[0] if not isinstance(recipe, KitRecipe)}
        if not self.recipes:
            raise UserError("A course kit has no mysteries, because it does not contain the healthy experiments.")
        self.cases = load_cases()

    def draw(self, name: str) -> Case:
        """Return the case of a name. Raises `UserError` if it is not the name of a mystery."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise UserError(f"There is no exercise {name!r}: a mystery has a level and a number, as in {MYSTERY}-1-17.")
        level = int(match[1])
        if _share(name, "healthy") < _HEALTHY_SHARE:
            sound = {one.name: one for one in sound_experiments(self.cases.decoy, self.recipes.values())}
            return healthy_case(name, sound[_highest(name, sound)], self.recipes.values(), _highest(name, SEEDS))
        drawn: tuple[str, ...] = (_highest(name, self._on(level)),)
        if _share(name, "two") < _PAIR_SHARE.get(level, 0.0):
            drawn = _highest(name, self._pairs(hard=level == LEVELS))
        return case_of(name, [self.recipes[id] for id in drawn], seed=_highest(name, SEEDS))

    def _pairs(self, *, hard: bool) -> list[tuple[str, str]]:
        """Return the pairs with a break of level 3 or higher or, if there are none, the other pairs."""
        known = [pair for pair in self.cases.together if set(pair) <= self.recipes.keys()]
        levels = {pair: [goal.level for goal in (self.recipes[id].goal for id in pair) if goal] for pair in known}
        return [pair for pair, both in levels.items() if (max(both, default=1) >= LEVELS - 2) == hard]

    def _on(self, level: int) -> list[str]:
        """Return the recipes of a level. The highest level has few, so it includes the level below it."""
        levels = {level, LEVELS - 1} if level == LEVELS else {level}
        return [one.id for one in self.recipes.values() if one.goal is not None and one.goal.level in levels]


def _highest(name: str, candidates: Any) -> Any:
    """Return the candidate with the highest rank under this name."""
    return max(candidates, key=lambda one: _digest(name, repr(one)))


def _share(name: str, what: str) -> float:
    """Return a number from 0 to 1 that depends only on the arguments."""
    return int.from_bytes(_digest(name, what)[:8], "big") / 2**64


def _digest(*words: str) -> bytes:
    return hashlib.sha256("\0".join(words).encode()).digest()
