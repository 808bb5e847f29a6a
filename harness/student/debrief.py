"""Show what a student can learn from a solved exercise: cause, evidence, fixes, masks, and the interview question.

Everything comes from `solutions/`, so a course kit shows nothing of it.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from harness.checks import load_check
from harness.checks.core.outcomes import trips_of
from harness.console.terminal import fold
from harness.errors import UserError
from harness.recipes.catalogue import load_recipe
from harness.recipes.known_edits import load_variants
from harness.recipes.recipe import HEALTHY, SOLUTIONS, KitRecipe, Recipe
from harness.student.attempts import Attempt, edit_of
from harness.student.solution import NOTES_ALONE
from harness.workspace.workspace import Workspace

_SECTION = re.compile(r"^\*\*([^*\n]+)\.\*\*", re.MULTILINE)
# The sections of `notes.md` that a student sees after solving, with the headings that `verify` prints.
_CAUSE = {"Cause": "Cause", "Why it looks so": "Why it looks so"}
_AFTER = {"What masks it": "What masks it, and why that is no fix", "Interview question": "Interview question"}
_RIGHT = ("full", "alternative")
_MOST_FIXES = 3
_MOST_LINES = 4  # of one further fix


def has_debrief(recipe: Recipe) -> bool:
    """Return whether `verify` may show the solution: not for a case of a course, and not in a course kit."""
    return not isinstance(recipe, KitRecipe) and recipe.course is None


def show_debrief(workspace: Workspace, attempt: Attempt) -> None:
    """Print the cause, how to find it, the known fixes beside the student's, what masks it, and the question."""
    console, recipe = Console(), workspace.exercise
    if recipe.is_healthy:
        _print_heading(console, "Cause")
        _sentence(console, f"{HEALTHY}: {recipe.cause}. Your edit was not necessary.")
        return
    if len(recipe.causes) > 1:
        console.print()
        _sentence(console, NOTES_ALONE)
    for cause in recipe.causes:
        one = load_recipe(cause)
        notes = read_notes(SOLUTIONS / cause / "notes.md")
        is_named = cause == workspace.recipe  # the name of a hidden exercise does not tell the fault
        _print_heading(console, f"The cause: {one.cause}" if is_named else f"The cause: {cause}, {one.cause}")
        _sections(console, notes, _CAUSE)
        _print_heading(console, "How to find it")
        for line in _evidence(one, workspace.recipe, notes):
            _sentence(console, line)
        _sections(console, notes, {"How to find it": ""})
        if len(recipe.causes) == 1:
            _print_heading(console, "Known fixes")
            for line in _fixes(one, attempt):
                console.print(line, markup=False, highlight=False, soft_wrap=True)
        _sections(console, notes, {"Fix": "" if len(recipe.causes) == 1 else "Known fix"})
        _sections(console, notes, _AFTER)


def read_notes(path: Path) -> dict[str, str]:
    """Return the sections of a `notes.md` as {title: text}, or {} if there is no such file."""
    if not path.is_file():
        return {}
    _, *parts = _SECTION.split(path.read_text(encoding="utf-8"))
    return {title: text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}


def changed_lines(before: str, after: str) -> int:
    """Return how many lines an edit changes. A line that is replaced counts once."""
    body = edit_of(before, after)[2:]
    return max(sum(line[0] == sign for line in body) for sign in "+-")


def _evidence(recipe: Recipe, exercise: str, notes: dict[str, str]) -> Iterator[str]:
    """Yield sentences about the log and the checks that show the fault."""
    for symptom in recipe.on(recipe.dataset).symptoms:
        yield f"In the log: {symptom.says}."
    try:
        trips = trips_of(recipe)
    except UserError:  # a recipe that its author has not measured yet
        return
    found = {name: load_check(name).outcome(outcome) for name, outcome in trips.items()}
    for name, outcome in found.items():
        if outcome.mechanism:
            yield f"{load_check(name).command(exercise)} finds {outcome.id}: {outcome.reading}"
    others = [name.replace("_", "-") for name, outcome in found.items() if not outcome.mechanism]
    if others:
        yield f"These checks show consequences: {', '.join(others)}."
    if not found:
        yield f"No check finds it. {notes.get('Why no check finds it', '')}".strip()


def _fixes(recipe: Recipe, attempt: Attempt) -> Iterator[str]:
    """Yield lines that compare the student's fix with the reference fix and with further known fixes."""
    broken = recipe.broken_source()
    reference = recipe.healthy_source()
    variants = [(one.id, one.source(broken)) for one in load_variants(recipe.id) if one.verdict in _RIGHT]
    yours = changed_lines(broken, attempt.source())
    shortest = min(changed_lines(broken, source) for source in (reference, *(source for _, source in variants)))
    yield f"Yours changes {yours} {_lines(yours)}; the shortest known fix changes {shortest}."
    yield from ("  " + line for line in edit_of(broken, reference, ("broken", "reference fix")))
    shown = sorted(variants, key=lambda one: changed_lines(broken, one[1]))
    for name, source in shown[:_MOST_FIXES]:
        yield f"Also right, {name.replace('_', ' ')}:"
        yield from _body(edit_of(broken, source))


def _body(edit: Sequence[str]) -> Iterator[str]:
    """Yield the changed lines of a diff, at most a few."""
    changed = [line for line in edit[2:] if line[0] in "+-"]
    yield from ("  " + line for line in changed[:_MOST_LINES])
    if len(changed) > _MOST_LINES:
        yield f"  ... and {len(changed) - _MOST_LINES} more lines"


def _lines(count: int) -> str:
    return "line" if count == 1 else "lines"


def _print_heading(console: Console, text: str) -> None:
    console.print(f"\n{text}", style="bold", markup=False, highlight=False, soft_wrap=True)


def _sentence(console: Console, text: str) -> None:
    width = console.width if console.is_terminal else None
    console.print(fold(text, width), markup=False, highlight=False, soft_wrap=True)


def _sections(console: Console, notes: dict[str, str], titles: dict[str, str]) -> None:
    """Print sections of the notes. A section whose heading is "" continues the part above it."""
    for title, heading in titles.items():
        if title not in notes:
            continue
        if heading and title != "Cause":
            _print_heading(console, heading)
        text = notes[title]
        if console.is_terminal:
            console.print(Markdown(text))  # with soft_wrap, lines would break inside words
        else:
            console.print(" ".join(text.split()), markup=False, highlight=False, soft_wrap=True)
