"""Compute the goal of a recipe: the conditions under which `make verify` says that it is fixed, and its level.

The level starts at 1. Each of these facts adds 1: the file has more than 75 lines; the file has more than 200 lines;
the log shows no symptom; at most one check finds the break; the first function that `harness triage` suggests to read
does not contain the cause.
"""

import json
from collections.abc import Mapping, Sequence

from grader.replay.request import Request, Role, own_settings
from grader.score.behaviour import break_requests, sound_programs, sound_requests
from grader.score.measurements import load_band
from grader.selfcheck.guide import leads
from grader.selfcheck.runs import Runs, request_of
from harness.behaviour.sound import encode
from harness.checks import load_check
from harness.recipes.recipe import LEVELS, Goal, Recipe

_LINES = (75, 200)


def goal_of(recipe: Recipe, trips: Mapping[str, str], outcomes: Mapping[str, str]) -> Goal:
    """Return the goal that follows from the measurements of a recipe.

    trips: {check: outcome} of the checks that find the break. outcomes: {check: outcome} of all checks. Raises
    `LookupError` if the metrics of the experiment's healthy runs were not measured.
    """
    band = load_band(recipe.experiment, recipe.dataset)
    low, high = band.reference
    shown = [name for name, outcome in trips.items() if load_check(name).outcome(outcome).mechanism]
    by_accuracy = band.accuracy_below is not None
    return Goal(
        format_version=1,
        level=difficulty_of(recipe, trips, outcomes),
        checks=tuple(shown or trips),
        least_accuracy=round(band.limit(low), 2) if by_accuracy else None,
        greatest_loss=None if by_accuracy else float(f"{band.limit(high):.3g}"),
    )


def difficulty_of(recipe: Recipe, trips: Mapping[str, str], outcomes: Mapping[str, str]) -> int:
    """Return the level of a recipe: from 1 for an obvious fault in a short file to 5 for a hidden fault."""
    lines = len(recipe.broken_source().splitlines())
    hides = [lines > limit for limit in _LINES]
    hides += [not recipe.symptoms, len(trips) <= 1, leads(recipe, outcomes) != 1]
    return min(1 + sum(hides), LEVELS)


def behaviour_files(recipes: Sequence[Recipe], runs: Runs) -> Mapping[Recipe, bytes]:
    """Measure the correct programs of each recipe, and return {recipe: content of its `behaviour.txt`}."""
    wanted: dict[Recipe, dict[Role, Request]] = {}
    for recipe in recipes:
        reference = request_of(recipe, recipe.healthy_source(), own_settings(recipe, recipe.dataset))
        wanted[recipe] = break_requests(reference) | sound_requests(reference)
    made = runs.replays("behaviours", (request for one in wanted.values() for request in one.values()))
    found = {
        recipe: sound_programs({role: made[one] for role, one in roles.items()}) for recipe, roles in wanted.items()
    }
    return {recipe: encode(programs.shorten()) for recipe, programs in found.items() if programs is not None}


def goal_toml(goal: Goal) -> str:
    """Return the text of `goal.toml`."""
    # A JSON string, number or list is also valid TOML.
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in goal.model_dump(exclude_none=True).items()]
    lines[0] = f"{lines[0].rstrip()}  # computed by `grader selfcheck --write`\n"
    return "".join(lines)
