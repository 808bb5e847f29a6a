"""`grader new-recipe`: writes a recipe from an edit, runs it over seeds, and measures its symptoms and checks."""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from rich.console import Console

from grader.replay.cache import default_folder
from grader.sandbox import sandbox_problem
from grader.score.solutions import SOLUTIONS
from grader.selfcheck import trips
from grader.selfcheck.runs import open_runs
from grader.selfcheck.seeds import SeedRuns, run_seeds
from grader.selfcheck.thresholds import Proposal, propose
from grader.syntax.edit_size import changed_areas
from harness.data.loading import default_cache
from harness.errors import UserError
from harness.files import write_whole
from harness.recipe import (
    EXERCISES,
    PLACEHOLDER,
    Area,
    Edit,
    Recipe,
    experiment_source,
    load_recipes,
    suggestion,
)

_SEED = 42


@dataclass(frozen=True)
class NewRecipe:
    """What the author of a recipe gives; what is None is left to fill in."""

    id: str
    experiment: str
    edits: tuple[Edit, ...]
    dataset: str | None = None
    title: str | None = None
    cause: str | None = None
    area: str | None = None


def write_recipe(new: NewRecipe, *, seeds: int, jobs: int) -> int:
    """Measure a new recipe, write its two folders and print the result; return 0, or 1 if nothing shows the break.

    Raises `UserError` for an id that exists, an unknown experiment, and an edit that does not fit.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]{2,39}", new.id):
        raise UserError(f"{new.id!r} cannot be an id: use 3 to 40 lower-case letters, digits and _.")
    if new.area not in (None, *get_args(Area)):
        raise UserError(f"There is no area {new.area!r}: {suggestion(str(new.area), get_args(Area))}")
    if (EXERCISES / new.id).exists() or (SOLUTIONS / new.id).exists():
        raise UserError(
            f"There is already an exercise {new.id}: choose another id, or delete its two folders."
        )
    if (problem := sandbox_problem()) is not None:
        raise UserError(problem)
    draft = _draft(new)
    measured = trips.measured_path(new.id)
    try:
        tripped, own = _measure(draft, measured, seeds, jobs)
    except BaseException:
        shutil.rmtree(measured.parent, ignore_errors=True)
        raise
    proposals = propose(
        *([first.records() for first, _ in side.values()] for side in (own.broken, own.healthy))
    )
    recipe = draft.model_copy(update={"symptoms": tuple(item.symptom for item in proposals)})
    folder = EXERCISES / new.id
    files = {
        folder / "recipe.toml": recipe_toml(recipe),
        folder / "PROMPT.md": f"# {recipe.title}\n\n{PLACEHOLDER}\n\n**To think about.** {PLACEHOLDER}\n",
        measured.with_name("notes.md"): _notes(recipe),
    }
    folder.mkdir()
    write_whole({path: text.encode() for path, text in files.items()})
    _show(new.id, [*files, measured], proposals, tripped)
    return 0 if proposals or tripped else 1


def _measure(draft: Recipe, measured: Path, seeds: int, jobs: int) -> tuple[dict[str, str], SeedRuns]:
    """Write `measured.toml`; return which checks the break trips, and the runs over seeds."""
    carriers = {recipe.experiment: recipe for recipe in reversed(load_recipes()[0])}
    carriers.setdefault(draft.experiment, draft)
    with open_runs(default_cache(), default_folder(), jobs=jobs) as runs:
        if draft.id not in (found := trips.measure([draft], runs)):
            raise UserError("The checks fail on the broken experiment: does it run at all?")
        measured.parent.mkdir()
        # A replay measures the checks that are listed there.
        measured.write_text(trips.measured_toml(*found[draft.id]), encoding="utf-8")
        made = run_seeds([draft], carriers, seeds, default_cache(), runs)
    own = next(item for item in made if item.dataset == draft.dataset)
    for name, side in own.sides.items():
        for seed, (first, _) in side.items():
            if first.status != "OK":
                raise UserError(f"The {name} run with seed {seed} does not come to its end: {first.message}")
    return trips.trips(*found[draft.id]), own


def edits_of(finds: Sequence[str], replaces: Sequence[str]) -> tuple[Edit, ...]:
    """Return the edits of a command line, in which a backslash and n stand for a line break.

    Raises `UserError` for a `--find` without its `--replace`.
    """
    if len(finds) != len(replaces):
        raise UserError("Every --find needs one --replace, in the same order.")
    return tuple(
        Edit(find=find.replace("\\n", "\n"), replace=replace.replace("\\n", "\n"))
        for find, replace in zip(finds, replaces, strict=True)
    )


def _draft(new: NewRecipe) -> Recipe:
    """Return the recipe without its symptoms. Raises `UserError` for an edit that does not fit the experiment."""
    experiment_source(new.experiment)  # raises for an unknown one
    datasets = {recipe.experiment: recipe.dataset for recipe in load_recipes()[0]}
    dataset = new.dataset or datasets.get(new.experiment)
    if dataset is None:
        raise UserError(
            f"No recipe breaks {new.experiment} yet: say which data set it is for, with --dataset."
        )
    recipe = Recipe.model_construct(
        id=new.id, format_version=2, title=new.title or PLACEHOLDER, experiment=new.experiment, dataset=dataset,
        seed=_SEED, area=new.area or "model", cause=new.cause or PLACEHOLDER, hints=(PLACEHOLDER,) * 3,
        breaks=new.edits, symptoms=(), observations=(),
    )  # fmt: skip
    try:
        changed = changed_areas(recipe.healthy_source(), recipe.broken_source())
    except ValueError as error:
        raise UserError(f"The edit does not fit {new.experiment}: {error}") from None
    return recipe.model_copy(update={"area": new.area or min(changed, default="model")})


def recipe_toml(recipe: Recipe) -> str:
    """Return the text of `recipe.toml`."""
    keys = ("title", "experiment", "dataset", "area", "seed", "cause")
    lines = ["format_version = 2", *(f"{key:10} = {_toml(getattr(recipe, key))}" for key in keys)]
    lines += ["hints = [", *(f"    {_toml(hint)}," for hint in recipe.hints), "]"]
    for edit in recipe.breaks:
        lines += ["", "[[break]]", f"find    = {_toml(edit.find)}", f"replace = {_toml(edit.replace)}"]
    for symptom in recipe.symptoms:
        lines += ["", "[[symptom]]"]
        table = symptom.model_dump(exclude_none=True)
        lines += [f"{key:6} = {_toml(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    # A string, number or list of JSON is one of TOML, too.
    return json.dumps(value, ensure_ascii=False)


def _notes(recipe: Recipe) -> str:
    parts = ("Why it looks so.", "Fix.", "What masks it.", "Interview question.")
    rest = "".join(f"\n**{part}** {PLACEHOLDER}\n" for part in parts)
    return f"# {recipe.id}: {recipe.cause}\n\n**Cause.** {PLACEHOLDER}\n{rest}"


def _show(
    recipe_id: str, paths: Sequence[Path], proposals: Sequence[Proposal], tripped: Mapping[str, str]
) -> None:
    console = Console(soft_wrap=True, highlight=False)
    for path in paths:
        console.print(f"wrote {path}", markup=False)
    for item in proposals:
        spans = [" to ".join(f"{value:.4g}" for value in span) for span in (item.broken, item.healthy)]
        console.print(f"symptom: {item.symptom.says} (broken {spans[0]}, healthy {spans[1]})", markup=False)
    for check, outcome in tripped.items():
        console.print(f"trips {check}: {outcome}", markup=False)
    if not proposals and not tripped:
        console.print("Nothing shows this break: no signal of the log separates it, and no check trips.")
    console.print(
        f"Next: replace every {PLACEHOLDER} in these files, then grader selfcheck --only {recipe_id}"
    )
