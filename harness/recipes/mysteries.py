"""Hidden exercises: exercises that are drawn at random from the whole suite, under names that do not tell the fault.

There are two kinds of names. `mystery-<level>-<number>` contains the level. `case-<five digits>` is a case of the
queue of `harness next`, and does not even contain its level. The name decides what is drawn. Each candidate gets a
rank, which is a hash of the name and the candidate, and the candidate with the highest rank is drawn. So a new recipe
rarely changes the exercise of an existing name.
"""

import hashlib
import re
from collections.abc import Iterable, Set
from typing import Any

from harness.errors import UserError
from harness.recipes.cases import (
    CASE,
    MYSTERY,
    SEEDS,
    Case,
    Sound,
    case_of,
    healthy_case,
    load_cases,
    sound_experiments,
)
from harness.recipes.recipe import HEALTHY, LEVELS, KitRecipe, load_recipes

_MYSTERY_NAME = re.compile(rf"{MYSTERY}-([1-{LEVELS}])-([1-9][0-9]{{0,5}})")
_CASE_NAME = re.compile(rf"{CASE}-[0-9]{{5}}")

# One hidden exercise in five is sound, perhaps a decoy. From level 3 on, some of the others have several breaks.
_SOUND_SHARE = 1 / 5
_DECOY_SHARE = 1 / 2
_SEVERAL_SHARE = {3: 1 / 4, 4: 1 / 3, 5: 1 / 2}
_FIRST_SEVERAL = min(_SEVERAL_SHARE)
_MOST = 1000  # how many mysteries of a level are tried to find one that a student has not seen
_MOST_CASES = 10**5


def is_hidden(name: str) -> bool:
    """Return whether this is the name of a hidden exercise: a mystery, or a case of the queue."""
    return is_mystery(name) or _CASE_NAME.fullmatch(name) is not None


def is_mystery(name: str) -> bool:
    """Return whether this is the name of a mystery."""
    return _MYSTERY_NAME.fullmatch(name) is not None


def mystery_name(level: int, number: int) -> str:
    """Return the name of a mystery."""
    return f"{MYSTERY}-{level}-{number}"


def level_of_hidden(name: str) -> int:
    """Return the level of the hidden exercise with this name. Raises `UserError` if there is no such name."""
    if match := _MYSTERY_NAME.fullmatch(name):
        return int(match[1])
    if _CASE_NAME.fullmatch(name):
        return 1 + int(_share(name, "level") * LEVELS)
    raise UserError(
        f"There is no exercise {name!r}: a mystery has a level and a number, as in {MYSTERY}-1-17, and a case has five"
        f" digits, as in {CASE}-00017."
    )


def draw_mystery(seen: Set[str], level: int | None, number: int | None) -> str:
    """Return the name of a mystery.

    By default the level is 1, and the number is the first whose mystery has other content than all exercises in `seen`.

    seen: the names of the exercises that the student already has.
    Raises `UserError` as `load_hidden` does.
    """
    level = level or 1
    if number is not None:
        return mystery_name(level, number)
    names = [name for name in (mystery_name(level, one) for one in range(1, _MOST)) if name not in seen]
    return _first_new(names, seen) or names[0]


def draw_case(seen: Set[str], level: int) -> str | None:
    """Return the name of the next case in the queue of a level, or None if the student has seen everything there.

    The case has other content than all exercises in `seen`, which are cases, mysteries, or recipes by their own names.
    Raises `UserError` in a course kit.
    """
    names = (f"{CASE}-{number:05}" for number in range(1, _MOST_CASES))
    return _first_new((name for name in names if level_of_hidden(name) == level and name not in seen), seen)


def _first_new(names: Iterable[str], seen: Set[str]) -> str | None:
    every = _Drawer()
    known = every.contents(seen)
    left: set[tuple[str, ...]] | None = None
    for name in names:
        if left is None:
            left = every.contents_of(level_of_hidden(name)) - known
        if not left:
            return None
        if every.content(name) not in known:
            return name
    return None


def load_hidden(name: str) -> Case:
    """Return the hidden exercise with a name of the form `mystery-<level>-<number>` or `case-<five digits>`.

    Raises `UserError` for a name of another form, and in a course kit, because it contains no healthy experiments.
    """
    return _Drawer().draw(name)


class _Drawer:
    """Draws hidden exercises from all recipes, decoys and healthy experiments. Raises `UserError` in a course kit."""

    def __init__(self) -> None:
        self.recipes = {recipe.id: recipe for recipe in load_recipes()[0] if not isinstance(recipe, KitRecipe)}
        if not self.recipes:
            raise UserError("A course kit has no hidden exercises, because it contains no healthy experiments.")
        cases = load_cases()
        self._sound = {one.name: one for one in sound_experiments(cases.decoy, self.recipes.values())}
        self._decoys = {decoy.id for decoy in cases.decoy}
        self._several = [ids for ids in (*cases.together, *cases.several) if set(ids) <= self.recipes.keys()]

    def draw(self, name: str) -> Case:
        """Return the hidden exercise with this name as a case. Raises `UserError` if there is no such name."""
        drawn, seed = self._drawn(name), _highest(name, SEEDS)
        if isinstance(drawn, Sound):
            return healthy_case(name, drawn, self.recipes.values(), seed)
        return case_of(name, [self.recipes[id] for id in drawn], seed=seed)

    def content(self, name: str) -> tuple[str, ...]:
        """Return the content of the hidden exercise with this name, as `Case.content` does."""
        return self._content_of(self._drawn(name))

    def contents(self, names: Iterable[str]) -> set[tuple[str, ...]]:
        """Return the content of each hidden exercise and each recipe among these names."""
        found = set()
        for name in names:
            if is_hidden(name):
                found.add(self.content(name))
            elif name in self.recipes:
                found.add(self._content_of((name,)))
        return found

    def contents_of(self, level: int) -> set[tuple[str, ...]]:
        """Return every content that a hidden exercise of this level can have."""
        singles = [(id,) for id in self._on(level)]
        every: list[Sound | tuple[str, ...]] = [*singles, *self._several_on(level), *self._sound_on(level)]
        return set(map(self._content_of, every))

    def _content_of(self, drawn: Sound | tuple[str, ...]) -> tuple[str, ...]:
        if isinstance(drawn, Sound):
            return (HEALTHY, drawn.name)
        return (*drawn, self.recipes[drawn[0]].experiment)

    def _drawn(self, name: str) -> Sound | tuple[str, ...]:
        """Return the sound experiment or the ids of the recipes that the name draws."""
        level = level_of_hidden(name)
        if _share(name, "healthy") < _SOUND_SHARE:
            sound = {one.name: one for one in self._sound_on(level)}
            is_decoy = _share(name, "decoy") < _DECOY_SHARE
            chosen = [one for one in sound if (one in self._decoys) == is_decoy] or [*sound]
            return sound[_highest(name, chosen)]
        several = self._several_on(level)
        if several and _share(name, "two") < _SEVERAL_SHARE.get(level, 0.0):
            return tuple(_highest(name, several))
        return (_highest(name, self._on(level)),)

    def _on(self, level: int) -> list[str]:
        """Return the recipes of a level."""
        return [one.id for one in self.recipes.values() if one.goal is not None and one.goal.level == level]

    def _several_on(self, level: int) -> list[tuple[str, ...]]:
        """Return the combinations of recipes on a level. Each further recipe makes a combination harder by a level."""
        found = []
        for ids in self._several:
            levels = [goal.level for goal in (self.recipes[id].goal for id in ids) if goal is not None]
            own = max(levels, default=1) + len(ids) - 1
            if level == min(max(own, _FIRST_SEVERAL), LEVELS):
                found.append(ids)
        return found

    def _sound_on(self, level: int) -> list[Sound]:
        """Return the healthy experiments that recipes of a level use, and the decoys made from these experiments."""
        used = {self.recipes[id].experiment for id in self._on(level)}
        return [one for one in self._sound.values() if one.experiment in used]


def _highest(name: str, candidates: Any) -> Any:
    """Return the candidate with the highest rank for this name."""
    return max(candidates, key=lambda one: _digest(name, repr(one)))


def _share(name: str, what: str) -> float:
    """Return a number between 0 and 1 that depends only on the arguments, through a hash."""
    return int.from_bytes(_digest(name, what)[:8], "big") / 2**64


def _digest(*words: str) -> bytes:
    return hashlib.sha256("\0".join(words).encode()).digest()
