"""Find exercises by their names: recipes (the exercises of the suite), hidden exercises, and the cases of a course."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from harness.recipes.cases import MYSTERY, Case
from harness.recipes.mysteries import is_hidden, load_hidden
from harness.recipes.recipe import EXERCISES, Recipe, listed_ids, read_recipe


def load_recipe(recipe_id: str, exercises: Path = EXERCISES) -> Recipe:
    """Return the recipe or hidden exercise with this name. Raises `UserError` if there is none, or if it is invalid."""
    is_meant = recipe_id.startswith(f"{MYSTERY}-") or is_hidden(recipe_id)
    if is_meant and recipe_id not in listed_ids(exercises):
        return load_hidden(recipe_id)
    return read_recipe(recipe_id, exercises)


def is_case(name: str) -> bool:
    """Return whether this is the name of a hidden exercise or a course's case, in which perhaps nothing is broken."""
    return is_hidden(name) or (name in listed_ids() and load_recipe(name).is_case)


class Catalogue:
    """The exercises that students may hand in: a course's cases or, without a course, all recipes and hidden ones."""

    def __init__(self, cases: Iterable[Case] = ()) -> None:
        self._cases = {case.id: case for case in cases}

    def ids(self) -> list[str]:
        """Return the ids of the course's cases or, without a course, of all recipes. Hidden ones are not listed."""
        return list(self._cases) or listed_ids()

    def holds(self, name: str) -> bool:
        """Return whether runs of this exercise may be handed in."""
        return name in self.ids() or (not self._cases and is_hidden(name))

    def find(self, name: str) -> Recipe:
        """Return the course's case or, without a course, the recipe or hidden exercise. Raises as `load_recipe`."""
        return self._cases.get(name) or _loaded(name)


_loaded = cache(load_recipe)
SUITE = Catalogue()
