"""Make the pages about all recipes: the field guide, the interview cards, and the matrix of checks.

These pages are for instructors. Course kits do not contain them, because they name the cause of every exercise.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

from grader.selfcheck.calibration import Trips
from grader.syntax.edit_size import functions_changed
from harness.checks import Finding, every_check, load_check
from harness.checks.core.report import CheckReport, where_next
from harness.errors import UserError
from harness.recipes.recipe import EXERCISES, SOLUTIONS, Area, Recipe
from harness.workspace.workspace import PROMPT

_PART = re.compile(r"^\*\*(.+?)\.\*\* (.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
SILENT = "Why no check finds it"  # if no check finds a break, the notes of its recipe have a part with this title
_ORDINALS = ("no", "first", "second", "third")
MADE = "Made from the recipes."


def parts_of(recipe: Recipe, solutions: Path = SOLUTIONS) -> Mapping[str, str]:
    """Return {title: text on one line} for the parts of a recipe's notes, such as "Cause" and "Fix".

    Raises `UserError` if the notes cannot be read.
    """
    path = solutions / recipe.id / "notes.md"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error}): write the notes of this recipe.") from None
    return {name: " ".join(body.split()) for name, body in _PART.findall(text)}


def field_guide(recipes: Sequence[Recipe], trips: Trips) -> str:
    """Return the field guide, a page that lists the faults by area, with symptom, checks, cause, fix and wrong fix."""
    lines = ["# Field guide to faults", "", MADE]
    lines += ["", "| area | faults |", "| --- | --- |"]
    by_area = {area: [recipe for recipe in recipes if recipe.area == area] for area in get_args(Area)}
    lines += [f"| {area} | {', '.join(f'[{own.id}](#{own.id})' for own in found)} |" for area, found in by_area.items()]
    for area, found in by_area.items():
        lines += ["", f"## {area.capitalize()}"]
        lines += [line for recipe in found for line in _fault(recipe, trips.get(recipe.id, {}))]
    return "\n".join(lines) + "\n"


def _fault(recipe: Recipe, trips: Mapping[str, str]) -> Iterator[str]:
    parts = parts_of(recipe)
    seen = "; ".join(symptom.says for symptom in recipe.symptoms) or "nothing in the log"
    finds = [f"`{check.replace('_', '-')}` says `{outcome}`" for check, outcome in trips.items()]
    yield from ("", f"### {recipe.id}", "", f"*{recipe.title}* ({recipe.experiment})", "")
    yield f"- **Symptom.** {seen[0].upper()}{seen[1:]}."
    yield f"- **How to find it.** {', '.join(finds) or 'No check finds it, but the log shows it'}."
    yield from (f"- **{name}.** {parts.get(name, '')}" for name in ("Cause", "Why it looks so", "Fix"))
    yield f"- **The tempting wrong fix.** {parts.get('What masks it', '')}"


def interview_cards(recipes: Sequence[Recipe]) -> str:
    """Return the interview cards, a page with the story of each fault as an interview question, and a good answer."""
    lines = ["# Interview cards", "", MADE, "Read the question aloud. The candidate may ask for values from the log."]
    for recipe in recipes:
        story = (EXERCISES / recipe.id / PROMPT).read_text(encoding="utf-8").split("\n", 1)[1].strip()
        parts = parts_of(recipe)
        lines += ["", f"## {recipe.title}", "", story, "", f'??? note "{recipe.id}"', ""]
        told = ("Cause", "Why it looks so", "Fix", "Interview question")
        lines += [f"    **{name}.** {parts.get(name, '')}\n" for name in told]
    return "\n".join(lines) + "\n"


def matrix(recipes: Sequence[Recipe], trips: Trips, outcomes: Trips) -> str:
    """Return the matrix page, which shows the checks that find each break, and whether triage names the right function.

    trips: {recipe: {check that finds its break: outcome}}. outcomes: {recipe: {check: outcome}} for all checks.
    """
    led = {recipe.id: leads(recipe, outcomes.get(recipe.id, {})) for recipe in recipes}
    names = [name for name in every_check() if any(name in found for found in trips.values())]
    lines = [
        "# Recipes and checks",
        "",
        MADE,
        "A check finds a break if, with every seed of the self-check, it reports a fault in the broken experiment and"
        " no fault in the healthy experiment. ● means that the check shows the fault itself, and ○ that it shows a"
        " consequence. At its end, `harness triage` lists functions to read. The column `leads` says which entry of"
        " this list is the first that names a function that the break changes.",
        "",
        f"`harness triage` names a function with the cause for {sum(map(bool, led.values()))} of {len(led)} recipes,"
        f" and for {list(led.values()).count(1)} of these recipes in the first entry of its list.",
    ]
    lines += [
        "",
        '<div class="matrix" markdown>',
        "",
        f"| recipe | leads | {' | '.join(name.replace('_', ' ') for name in names)} |",
        "| --- | :-: |" + " :-: |" * len(names),
    ]
    for recipe in recipes:
        cells = [_mark(name, trips.get(recipe.id, {}).get(name)) for name in names]
        lines.append(f"| {recipe.id} | {_ORDINALS[led[recipe.id]]} | {' | '.join(cells)} |")
    lines += ["", "</div>"]
    return "\n".join(lines) + "\n"


def places_of(outcomes: Mapping[str, str]) -> list[str]:
    """Return the places that `harness triage` suggests to read, in its order. outcomes: {check: outcome}."""
    made = {name: one for name, one in outcomes.items() if load_check(name).in_triage}
    found = [CheckReport(load_check(name), "", Finding(one, "", {})) for name, one in made.items()]
    return [line for line in where_next(sorted(found, key=_order)) if line.startswith("read: ")]


def _order(report: CheckReport) -> int:
    return every_check().index(report.check.name)


def leads(recipe: Recipe, outcomes: Mapping[str, str]) -> int:
    """Return the number of the first place in the list of `harness triage` that names a changed function, or 0."""
    changed = functions_changed(recipe.healthy_source(), recipe.broken_source())
    named = (set(re.findall(r"\w+", place)) for place in places_of(outcomes))
    return next((number for number, words in enumerate(named, 1) if changed & words), 0)


def _mark(check: str, outcome: str | None) -> str:
    if outcome is None:
        return ""
    return "●" if load_check(check).outcome(outcome).mechanism else "○"
