"""Experiments that keep the fault but look fixed, one class of tricks per file in `tests/data/tricks/`.

A trick has its recipe, a description, and edits of the broken experiment. The tricks for this recipe are attacks. `make
trial` judges all tricks. Their authors had not seen the rules. A program that contains the correct fix and undoes it
where no check looks is not a trick, because its author knows the fix.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from attacks.attack import RECIPE, Attack, Base, Expected, with_members
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import Edit, apply_edits

_FOLDER = Path(__file__).parents[1] / "data" / "tricks"


def tricks() -> Iterator[tuple[str, str, str, str]]:
    """Yield the id, the recipe, the description and the source of every trick."""
    for path in sorted(_FOLDER.glob("*.toml")):
        for name, trick in tomllib.loads(path.read_text(encoding="utf-8")).items():
            edits = [Edit(find=find, replace=replace) for find, replace in trick["edits"]]
            source = apply_edits(load_recipe(trick["recipe"]).broken_source(), edits, where=f"{path.name} {name}")
            yield f"{path.stem}_{name}", trick["recipe"], trick["says"], source


def _attack(name: str, says: str, source: str) -> Attack:
    def build(base: Base) -> bytes:
        return with_members(base.untouched, {"experiment.py": source.encode()}, student=name)

    return Attack(name, "score", says, Expected(("graded", "not judged"), gains_over="masked"), build, in_suite=False)


ATTACKS = tuple(_attack(name, says, source) for name, recipe, says, source in tricks() if recipe == RECIPE)
