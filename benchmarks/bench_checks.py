"""`make bench-checks`: measure whether the checks find the faults of the recipes.

The checks run on the broken experiment of every recipe, and on every healthy experiment and its harmless edits. An
outcome on a broken experiment counts only if the check gives another outcome on the healthy experiment. Outcomes are
stored, so an interrupted run can be continued. The exit status is 0 if the checks point at the area of the cause in
nine of ten recipes and raise no false alarm, otherwise 1.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import get_args

import click

from benchmarks.judging import PLACES, Answer, Subject, Verdict, answers, jobs_option, verdict
from benchmarks.measure import PAGE, BenchmarkError, publish, this_machine
from grader.syntax.edit_size import functions_changed
from harness.recipes.form import is_script
from harness.recipes.known_edits import load_shared_edits
from harness.recipes.recipe import Recipe, load_recipes
from harness.run.settings import RunSettings

SHARE = 0.9
HEADINGS = (
    "points at the area", "points elsewhere", "only that it does not learn", "nothing", "false alarms",
    "seconds a subject (median)",
)  # fmt: skip


def broken_subjects(recipes: Iterable[Recipe]) -> list[Subject]:
    """Return the broken experiments. A fault has the area of its recipe and the areas of the changed functions."""
    found = []
    for one in recipes:
        broken = one.broken_source()
        places = functions_changed(one.healthy_source(), broken)
        areas = frozenset({one.area}.union(*(PLACES.get(place, ()) for place in places)))
        found.append(Subject(one.id, broken, _settings(one), areas, f"{one.experiment}/healthy"))
    return found


def sound_subjects(recipes: Iterable[Recipe], most: int | None = None) -> list[Subject]:
    """Return the healthy experiments of the recipes, each followed by some of its harmless edits."""
    found = []
    for recipe in {one.experiment: one for one in recipes}.values():
        healthy = recipe.healthy_source()
        edits = [edit for edit in load_shared_edits(recipe.experiment) if edit.verdict == "sound"][:most]
        sources = {"healthy": healthy} | {edit.id: edit.source(healthy) for edit in edits}
        found += [Subject(f"{recipe.experiment}/{name}", text, _settings(recipe)) for name, text in sources.items()]
    return found


def _settings(recipe: Recipe) -> RunSettings:
    return RunSettings(seed=recipe.seed, dataset=recipe.dataset)


def row(broken: Sequence[Subject], sound: Sequence[Subject], found: Mapping[str, Answer]) -> list[str]:
    """Return the row of the result table."""
    verdicts = Counter(verdict(one.areas, found[one.name].said, found[one.sound].said) for one in broken)
    counts = [f"{verdicts[kind]} of {len(broken)}" for kind in get_args(Verdict)]
    alarms = sum(bool(found[one.name].said) for one in sound)
    return [*counts, f"{alarms} of {len(sound)}", f"{median(answer.seconds for answer in found.values()):.1f}"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", multiple=True, metavar="ID", help="Check only this recipe and its experiment; may be repeated.")
@click.option(
    "--sound",
    "most",
    type=click.IntRange(min=0),
    help="Check at most this number of harmless edits of each experiment.",
)
@jobs_option
@click.option("--write", is_flag=True, help=f"Write the table into {PAGE.parent.name}/{PAGE.name}, too.")
def main(only: tuple[str, ...], most: int | None, jobs: int, write: bool) -> None:
    """Run the checks on the broken and healthy experiments of the recipes."""
    machine = this_machine()
    recipes = [
        one for one in load_recipes()[0] if one.id in (only or (one.id,)) and not is_script(one.healthy_source())
    ]
    if unknown := set(only) - {one.id for one in recipes}:
        raise BenchmarkError(f"There is no recipe {', '.join(sorted(unknown))}: harness list names them.")
    broken, sound = broken_subjects(recipes), sound_subjects(recipes, most)
    cells = row(broken, sound, answers([*broken, *sound], jobs))
    publish("checks", HEADINGS, [cells], machine, write=write)
    sys.exit(0 if int(cells[0].split()[0]) >= SHARE * len(broken) and cells[4].startswith("0 ") else 1)


if __name__ == "__main__":
    main()
