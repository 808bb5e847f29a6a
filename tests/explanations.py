"""Explanations to be judged: the real logs (seed 42, the recipes' own data), and reports around a text."""

import gzip
from functools import cache
from pathlib import Path

from grader.score.explanation import judge_explanation
from grader.score.lexicon import Lexicon, load_lexicon
from grader.score.verdict import Check
from harness.recipe import Recipe, load_recipe
from harness.run.metrics_log import Record, log_lines, parse_log

# Made by `python tests/runs.py` (in portable numerics), then `gzip -9n`; tests/test_recipes.py runs them again.
LOGS = Path(__file__).parent / "whole_logs"


@cache
def recipe_and_lexicon(recipe_id: str) -> tuple[Recipe, Lexicon]:
    """Return a recipe with its lexicon."""
    return load_recipe(recipe_id), load_lexicon(recipe_id)


def log_bytes(name: str) -> bytes:
    """Return the log of a broken run, by recipe, or of a healthy one, by experiment."""
    return gzip.decompress((LOGS / f"{name}.log.gz").read_bytes())


@cache
def whole_log(name: str) -> list[Record]:
    """Return the records of such a log."""
    return parse_log(log_lines(log_bytes(name).decode()), name)


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
        broken_log=whole_log(recipe_id),
        fixed_log=whole_log(recipe.experiment),
        broken_source=recipe.broken_source(),
        fixed_source=recipe.healthy_source(),
    )
    return {check.id: check for check in checks}


def total(checks: dict[str, Check]) -> float | None:
    """Return the points of all checks, None while one is open."""
    points = [check.points for check in checks.values()]
    return None if None in points else sum(filter(None, points))
