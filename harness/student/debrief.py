"""The explanation of an exercise: cause, evidence, known fixes, what masks the fault, and the interview question.

A terminal and the page of `harness serve` show the same passages. Everything comes from `solutions/`, so a course kit
has no explanations.
"""

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.markdown import Markdown

from harness.checks import load_check
from harness.checks.core.outcomes import trips_of
from harness.console.output import show_diff
from harness.errors import UserError
from harness.recipes.catalogue import load_recipe
from harness.recipes.known_edits import load_variants
from harness.recipes.recipe import HEALTHY, SOLUTIONS, KitRecipe, Recipe
from harness.run.files import METRICS_LOG
from harness.run.metrics_log import Record, epoch_records, read_metrics_log
from harness.student.attempts import Attempt, edit_of

_SECTION = re.compile(r"^\*\*([^*\n]+)\.\*\*", re.MULTILINE)
# The sections of `notes.md` that follow the known fixes, with their headings.
_AFTER = {"What masks it": "What masks it, and why that is no fix", "Interview question": "Interview question"}
_RIGHT = ("full", "alternative")
_MOST_FIXES = 3
_MOST_LINES = 4  # of one further fix
_NOTES_ALONE = (
    "These notes describe runs with only one of the faults. With all of them, or with another seed, values differ."
)
_NOTHING_WRONG = (
    "The right answer is to leave the file alone and to claim that nothing is broken. The evidence: no check finds"
    " anything wrong. If a line looks odd to you, test it: change only this line, run the experiment, compare the run"
    " with the first one, and undo the change. A line whose change does not improve the run is not a fault."
)
_OVERFITS = (
    "This run overfits: the validation loss is lowest after epoch {best}, at {lowest:.4g}, and ends at {last:.4g}."
    " Here, overfitting is not a bug: every line does what it should, but the network trains for longer than its few"
    " examples allow. Fewer epochs, early stopping or more regularization would help."
)
# The last validation loss over the lowest one, in runs of 21 healthy experiments with three seeds: orders_mlp and
# machines_mlp at least 1.64, visits_mlp at most 1.18. Three others reach up to 1.89 in single runs by noise
# (digits_mlp, digits_deep, digits_quantized), but their lowest loss comes in the second half.
_OVERFIT_RATIO = 1.5


class Passage(NamedTuple):
    """A passage of an explanation: a heading, a text in Markdown, or the lines of an edit. The others are empty.

    minor: whether the heading belongs to the last heading that is not minor.
    """

    heading: str = ""
    text: str = ""
    edit: Sequence[str] = ()
    minor: bool = False


def has_debrief(recipe: Recipe) -> bool:
    """Return whether `verify` may show the solution: not for a case of a course, and not in a course kit."""
    return not isinstance(recipe, KitRecipe) and recipe.course is None


def explain(recipe: Recipe, attempt: Attempt | None = None, records: Sequence[Record] = ()) -> Iterator[Passage]:
    """Yield the passages of the explanation of an exercise. Do not call it in a course kit, which has no solutions.

    attempt: the attempt that solved the exercise, to compare its edit with the known fixes. records: the log of the
    first run.
    """
    if recipe.is_healthy:
        yield Passage("Cause")
        yield Passage(text=f"{HEALTHY}: {recipe.cause}.{' Your edit was not necessary.' if attempt else ''}")
        if not attempt:
            yield Passage(text=_NOTHING_WRONG)
        if said := describe_overfitting(records):
            yield Passage(text=said)
        return
    several = len(recipe.causes) > 1
    if several:
        yield Passage(text=_NOTES_ALONE)
    for cause in recipe.causes:
        one = load_recipe(cause)
        notes = read_notes(SOLUTIONS / cause / "notes.md")
        is_named = cause == recipe.id  # the name of a hidden exercise does not tell the fault
        yield Passage(f"The cause: {one.cause}" if is_named else f"The cause: {cause}, {one.cause}")
        yield from _sections(notes, {"Cause": "", "Why it looks so": "Why it looks so"})
        yield Passage("How to find it", minor=True)
        for line in _evidence(one, recipe.id, notes):
            yield Passage(text=line)
        yield from _sections(notes, {"How to find it": ""})
        if several:
            yield from _sections(notes, {"Fix": "Known fix"})
        else:
            yield Passage("Known fixes", minor=True)
            yield from _fixes(one, attempt)
            yield from _sections(notes, {"Fix": ""})
        yield from _sections(notes, _AFTER)
    if several:
        yield Passage("All faults together")
        yield from _fixes(recipe, attempt)


def show_explanation(recipe: Recipe, attempt: Attempt | None = None, records: Sequence[Record] = ()) -> None:
    """Print the explanation of an exercise. `attempt` and `records` mean the same as in `explain`."""
    console = Console()
    for passage in explain(recipe, attempt, records):
        if passage.heading:
            console.print(f"\n{passage.heading}", style="bold", markup=False, highlight=False, soft_wrap=True)
        if passage.text:
            # With soft_wrap, the lines of Markdown would break inside words.
            if console.is_terminal:
                console.print(Markdown(passage.text))
            else:
                console.print(" ".join(passage.text.split()), markup=False, highlight=False, soft_wrap=True)
        show_diff(console, passage.edit, indent=2)


def first_records(folder: Path) -> Sequence[Record]:
    """Return the log of the first run of a workspace, or [] without one."""
    log = folder / "runs" / "broken" / METRICS_LOG
    return read_metrics_log(log) if log.is_file() else []


def describe_overfitting(records: Sequence[Record]) -> str:
    """Return sentences that say how far a healthy run overfits, or "" if it does not."""
    losses = [record["val_loss"] for record in epoch_records(records)]
    known = [loss for loss in losses if loss is not None and math.isfinite(loss)]
    if not known or losses[-1] not in known or losses[-1] < _OVERFIT_RATIO * min(known):
        return ""
    best = losses.index(min(known)) + 1
    return "" if 2 * best >= len(losses) else _OVERFITS.format(best=best, lowest=min(known), last=losses[-1])


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
            yield f"`{load_check(name).command(exercise)}` finds {outcome.id}: {outcome.reading}"
    others = [name.replace("_", "-") for name, outcome in found.items() if not outcome.mechanism]
    if others:
        yield f"These checks show consequences: {', '.join(others)}."
    if not found:
        yield f"No check finds it. {notes.get('Why no check finds it', '')}".strip()


def _fixes(recipe: Recipe, attempt: Attempt | None) -> Iterator[Passage]:
    """Yield the reference fix and further known fixes, and compare the student's fix with them."""
    broken, reference = recipe.broken_source(), recipe.healthy_source()
    known = load_variants(recipe.id) if recipe.causes == (recipe.id,) else []
    variants = [(one.id, one.source(broken)) for one in known if one.verdict in _RIGHT]
    if attempt:
        yours = changed_lines(broken, attempt.source())
        shortest = min(changed_lines(broken, source) for source in (reference, *(source for _, source in variants)))
        lines = "line" if yours == 1 else "lines"
        yield Passage(text=f"Yours changes {yours} {lines}; the shortest known fix changes {shortest}.")
    yield Passage(edit=edit_of(broken, reference, ("broken", "reference fix")))
    shown = sorted(variants, key=lambda one: changed_lines(broken, one[1]))
    for name, source in shown[:_MOST_FIXES]:
        yield Passage(text=f"Also right, {name.replace('_', ' ')}:")
        yield Passage(edit=_body(edit_of(broken, source)))


def _body(edit: Sequence[str]) -> list[str]:
    """Return the changed lines of a diff, at most a few."""
    changed = [line for line in edit[2:] if line[0] in "+-"]
    more = [f"... and {len(changed) - _MOST_LINES} more lines"] if len(changed) > _MOST_LINES else []
    return changed[:_MOST_LINES] + more


def _sections(notes: dict[str, str], titles: dict[str, str]) -> Iterator[Passage]:
    """Yield sections of the notes. A section whose heading is "" continues the part above it."""
    for title, heading in titles.items():
        if title in notes:
            if heading:
                yield Passage(heading, minor=True)
            yield Passage(text=notes[title])
