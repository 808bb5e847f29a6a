"""Mysteries: exercises that are drawn at random from the whole suite, named `mystery-<level>-<number>`.

The name decides what is drawn. Each candidate gets a rank, which is a hash of the name and the candidate, and the
candidate with the highest rank is drawn. So a new recipe rarely changes the mystery of an existing name.
"""

import hashlib
import re
from collections.abc import Set
from typing import Any

from harness.errors import UserError
from harness.recipes.cases import MYSTERY, SEEDS, Case, case_of, healthy_case, load_cases, sound_experiments
from harness.recipes.recipe import LEVELS, KitRecipe, load_recipes

_NAME = re.compile(rf"{MYSTERY}-([1-{LEVELS}])-([1-9][0-9]{{0,5}})")

# One mystery in eight is healthy. Among the broken mysteries, one in four on level 4 and one in two on level 5 have two
# breaks; on lower levels all have one break.
_HEALTHY_SHARE = 1 / 8
_PAIR_SHARE = {4: 1 / 4, 5: 1 / 2}
_MOST = 1000  # how many mysteries of a level are tried to find one that a student has not seen


def is_mystery(name: str) -> bool:
    """Return whether this is the name of a mystery."""
    return _NAME.fullmatch(name) is not None


def mystery_name(level: int, number: int) -> str:
    """Return the name of a mystery."""
    return f"{MYSTERY}-{level}-{number}"


def draw_mystery(seen: Set[str], level: int | None, number: int | None) -> str:
    """Return the name of a mystery.

    By default the level is 1, and the number is the first whose mystery has other content than all exercises in `seen`.

    seen: the names of the exercises that the student already has.
    Raises `UserError` as `load_mystery` does.
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

    Raises `UserError` for a name of another form, and in a course kit, because it contains no healthy experiments.
    """
    return _Drawer().draw(name)


class _Drawer:
    """Draws mysteries from all recipes and decoys. Raises `UserError` in a course kit."""

    def __init__(self) -> None:
        self.recipes = {recipe.id: recipe for recipe in load_recipes()[0] if not isinstance(recipe, KitRecipe)}
        if not self.recipes:
            raise UserError("A course kit has no mysteries, because it does not contain the healthy experiments.")
        self.cases = load_cases()

    def draw(self, name: str) -> Case:
        """Return the mystery with this name as a case. Raises `UserError` if this is not the name of a mystery."""
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
        """Return the pairs of recipes with a break of level 3 or higher if `hard` is set, otherwise the other pairs."""
        known = [pair for pair in self.cases.together if set(pair) <= self.recipes.keys()]
        levels = {pair: [goal.level for goal in (self.recipes[id].goal for id in pair) if goal] for pair in known}
        return [pair for pair, both in levels.items() if (max(both, default=1) >= LEVELS - 2) == hard]

    def _on(self, level: int) -> list[str]:
        """Return the recipes of a level. The highest level has few recipes, so the level below it is added."""
        levels = {level, LEVELS - 1} if level == LEVELS else {level}
        return [one.id for one in self.recipes.values() if one.goal is not None and one.goal.level in levels]


def _highest(name: str, candidates: Any) -> Any:
    """Return the candidate with the highest rank for this mystery name."""
    return max(candidates, key=lambda one: _digest(name, repr(one)))


def _share(name: str, what: str) -> float:
    """Return a number between 0 and 1 that depends only on the arguments, through a hash."""
    return int.from_bytes(_digest(name, what)[:8], "big") / 2**64


def _digest(*words: str) -> bytes:
    return hashlib.sha256("\0".join(words).encode()).digest()
