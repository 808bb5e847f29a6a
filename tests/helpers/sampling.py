"""`make test` takes a sample of the recipes, which changes as they change; `make test-slow` takes the others."""

import hashlib
from typing import Any

import pytest

from harness.recipes.recipe import Recipe, load_recipes

_QUICK = 5  # one recipe of so many
RECIPES = load_recipes()[0]


def by_hash(recipe: Recipe) -> str:
    """Return the SHA-256 of the broken experiment: no author chooses the sample."""
    return hashlib.sha256(recipe.broken_source().encode()).hexdigest()


def every_recipe() -> list[Any]:
    """Return the parameters of a test for all recipes; all but a fifth are slow."""
    return [
        pytest.param(recipe, id=recipe.id, marks=[pytest.mark.slow] if int(by_hash(recipe), 16) % _QUICK else [])
        for recipe in RECIPES
    ]
