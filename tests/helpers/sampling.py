"""`make test` uses a sample of the recipes, which depends on their sources. `make test-slow` uses the other recipes."""

import hashlib
from typing import Any

import pytest

from harness.recipes.form import is_script
from harness.recipes.recipe import Recipe, load_recipes

_QUICK = 5  # one recipe in this many
# The helpers train functions in this process; tests/test_script_judging.py is about scripts.
RECIPES = [recipe for recipe in load_recipes()[0] if not is_script(recipe.healthy_source())]


def by_hash(recipe: Recipe) -> str:
    """Return the SHA-256 of the broken experiment, so that no author can choose the sample."""
    return hashlib.sha256(recipe.broken_source().encode()).hexdigest()


def every_recipe() -> list[Any]:
    """Return the test parameters for all recipes. Four fifths of the recipes are marked as slow."""
    return [
        pytest.param(recipe, id=recipe.id, marks=[pytest.mark.slow] if int(by_hash(recipe), 16) % _QUICK else [])
        for recipe in RECIPES
    ]
