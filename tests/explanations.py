"""Explanations to be judged: excerpts of the real logs (seed 42, the recipes' own data), and reports around a text."""

from functools import cache
from pathlib import Path

from grader.rubric.explanation import judge_explanation
from grader.rubric.lexicon import Lexicon, load_lexicon
from grader.score import Check
from harness.metrics_log import Record, read_metrics_log
from harness.recipe import Recipe, load_recipe

# Some 25 batches of each run, the first ones and the extremes, without the means of single parameters.
EXCERPTS = Path(__file__).parent / "log_excerpts"


@cache
def recipe_and_lexicon(recipe_id: str) -> tuple[Recipe, Lexicon]:
    """Return a recipe with its lexicon."""
    return load_recipe(recipe_id), load_lexicon(recipe_id)


@cache
def excerpt(name: str) -> list[Record]:
    """Return an excerpt of a broken run, by recipe, or of a healthy one, by experiment."""
    return read_metrics_log(EXCERPTS / f"{name}.log")


def report(body: str, layer: str = "optimizer") -> str:
    """Return a whole report around a text."""
    evidence = "  - {run: broken, signal: loss, step: 2, value: 6305.9}"
    return f"---\nroot_cause_layer: {layer}\nevidence:\n{evidence}\n---\n\n{body}\n"


def judged(text: str | None, recipe_id: str = "huge_lr") -> dict[str, Check]:
    """Return the four checks of a report, by id."""
    recipe, lexicon = recipe_and_lexicon(recipe_id)
    checks = judge_explanation(
        text,
        recipe,
        lexicon,
        broken_log=excerpt(recipe_id),
        fixed_log=excerpt(recipe.experiment),
        broken_source=recipe.broken_source(),
        fixed_source=recipe.healthy_source(),
    )
    return {check.id: check for check in checks}


def total(checks: dict[str, Check]) -> float | None:
    """Return the points of all checks, None while one is open."""
    points = [check.points for check in checks.values()]
    return None if None in points else sum(p for p in points if p is not None)
