"""Settings with which the behaviour of a recipe's programs is measured and checked."""

import ast
from dataclasses import replace
from functools import lru_cache
from typing import Any

from harness.recipes.form import is_script
from harness.recipes.recipe import Recipe
from harness.run.settings import RunSettings


@lru_cache(maxsize=512)
def examined_settings(recipe: Recipe, source: str) -> RunSettings:
    """Return the settings of the recipe's measured programs. Epochs and batch size are constants of one of them.

    A script has no such settings.
    """
    constants: dict[str, Any] = {
        ast.unparse(node.targets[0]): node.value.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }
    own = RunSettings(seed=recipe.measured_seed, dataset=recipe.dataset)
    if is_script(source):
        return own
    return replace(own, epochs=constants["EPOCHS"], batch_size=constants["BATCH_SIZE"])
