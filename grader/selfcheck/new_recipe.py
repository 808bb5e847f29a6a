"""`grader new-recipe`: write a recipe for an edit, run it with several seeds, and measure symptoms and checks."""

import json
import math
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import get_args

from grader.sandbox import sandbox_problem
from grader.selfcheck.guide import SILENT
from grader.selfcheck.runs import open_runs
from grader.selfcheck.seeds import SeedRuns, measure, measured_path, measured_toml, quantity_of, run_seeds
from grader.syntax.edit_size import changed_areas
from grader.syntax.program import Unparsable
from harness.data import DATASETS
from harness.errors import UserError, printable, suggestion
from harness.files import write_whole
from harness.recipes.recipe import (
    EXERCISES,
    PLACEHOLDER,
    SYMPTOM_SIGNALS,
    Edit,
    Recipe,
    Reducer,
    Symptom,
    experiment_source,
    load_recipes,
)
from harness.run.metrics_log import Record
from harness.run.symptoms import judge_symptom

_SEED = 42
_WINDOWS = (None, (0, 20), (1, 5))
# A threshold is placed between two ranges only if their distance, divided by the sum of their ends, is at least this
# number. Their ends then differ by a factor of 1.22.
_LEAST_MARGIN = 0.1
_MOST = 2
# To compute a bound between two values, the lower value is raised to at least this fraction of the higher value.
_FLOOR = 1e-4
_ROUNDING = 1e-6  # the rounding error of accuracies, which are float32


def write_recipe(
    recipe_id: str, experiment: str, edits: tuple[Edit, ...], dataset: str | None, *, seeds: int, jobs: int
) -> int:
    """Measure a new recipe, write its two folders, and print the result. Return 1 if nothing shows the break, else 0.

    By default, `dataset` is the data set of the experiment's other recipes. Raises `UserError` if the id exists, if the
    experiment is unknown, or if the edit cannot be applied.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]{2,39}", recipe_id):
        raise UserError(f"{recipe_id!r} cannot be an id: use 3 to 40 lower-case letters, digits and _.")
    folder, measured = EXERCISES / recipe_id, measured_path(recipe_id)
    if folder.exists() or measured.parent.exists():
        raise UserError(f"There is already an exercise {recipe_id}: choose another id, or delete its two folders.")
    if (problem := sandbox_problem()) is not None:
        raise UserError(problem)
    draft = _draft(recipe_id, experiment, edits, dataset)
    try:
        tripped, own = _measure(draft, measured, seeds, jobs)
    except BaseException:
        shutil.rmtree(measured.parent, ignore_errors=True)
        raise
    logs = [[first.records() for first, _ in side.values()] for side in (own.broken, own.healthy)]
    recipe = draft.model_copy(update={"symptoms": tuple(propose(*logs))})
    silent = () if tripped else (SILENT,)
    notes = ("Cause", "Why it looks so", *silent, "Fix", "What masks it", "Interview question")
    parts = "".join(f"\n**{part}.** {PLACEHOLDER}\n" for part in notes)
    files = {
        folder / "recipe.toml": recipe_toml(recipe),
        folder / "PROMPT.md": f"# {PLACEHOLDER}\n\n{PLACEHOLDER}\n\n**To think about.** {PLACEHOLDER}\n",
        measured.with_name("notes.md"): f"# {recipe_id}: {PLACEHOLDER}\n{parts}",
    }
    folder.mkdir()
    write_whole({path: text.encode() for path, text in files.items()})
    print(*(f"wrote {path}" for path in (*files, measured)), sep="\n")
    for symptom in recipe.symptoms:
        *_, broken, healthy = quantity_of(own, symptom).row()
        print(f"symptom: {symptom.says} (broken {broken}, healthy {healthy})")
    for check, outcome in tripped.items():
        print(f"found by the check {check}: {outcome}")
    if recipe.symptoms or tripped:
        print(f"Next: replace every {PLACEHOLDER} in these files, then")
        print(f"  grader selfcheck --only {recipe_id} --seeds 10 --write")
        return 0
    print("Nothing shows this break: no signal in the log differs clearly from healthy runs, and no check finds it.")
    print(f"Next: delete {folder} and {measured.parent}, and try another edit")
    return 1


def _measure(draft: Recipe, measured: Path, seeds: int, jobs: int) -> tuple[Mapping[str, str], SeedRuns]:
    """Run the checks, write `measured.toml`, and run the recipe with several seeds.

    Return {check: outcome} of the checks that find the break, and the runs.
    """
    with open_runs(jobs=jobs) as runs:
        _say(
            f"1 of 2: all checks on the broken and the healthy experiment with {max(seeds, 3)} seeds take some minutes."
        )
        found = measure([draft], seeds, runs).get(draft.id)
        if found is None:
            raise UserError(
                "The checks cannot run on the broken experiment: make sure that it still runs after your edit."
            )
        measured.parent.mkdir()
        # Replays run the checks that this file lists.
        measured.write_text(measured_toml(found), encoding="utf-8")
        _say(f"2 of 2: the broken and the healthy run are made with {seeds} seeds.")
        made = run_seeds([draft], seeds, runs)
    own = next(item for item in made if item.dataset == draft.dataset)
    for name, side in own.sides.items():
        for seed, (first, _) in side.items():
            if first.status != "OK":
                raise UserError(f"The {name} run with seed {seed} does not finish: {first.message}")
    return found.trips, own


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def edits_of(finds: Sequence[str], replaces: Sequence[str]) -> tuple[Edit, ...]:
    """Return the edits from the options `--find` and `--replace`. In these options, `\\n` is replaced by a line break.

    Raises `UserError` for a `--find` without a `--replace`.
    """
    if len(finds) != len(replaces):
        raise UserError("Every --find needs one --replace, in the same order.")
    return tuple(
        Edit(find=find.replace("\\n", "\n"), replace=replace.replace("\\n", "\n"))
        for find, replace in zip(finds, replaces, strict=True)
    )


def _draft(recipe_id: str, experiment: str, edits: tuple[Edit, ...], dataset: str | None) -> Recipe:
    """Return the recipe without symptoms. Raises `UserError` if the edit cannot be applied to the experiment."""
    experiment_source(experiment)  # raises `UserError` for an unknown experiment
    dataset = dataset or {recipe.experiment: recipe.dataset for recipe in load_recipes()[0]}.get(experiment)
    if dataset is None and experiment in DATASETS:  # new-experiment gives a data set and its experiment the same name
        dataset = experiment
    if dataset is None:
        raise UserError(f"There is no recipe for {experiment} yet: name its data set with --dataset.")
    if dataset not in DATASETS:
        raise UserError(f"There is no data set {printable(dataset)}: {suggestion(dataset, [*DATASETS])}")
    recipe = Recipe.model_construct(
        id=recipe_id, format_version=2, title=PLACEHOLDER, experiment=experiment, dataset=dataset, seed=_SEED,
        area="model", cause=PLACEHOLDER, hints=(PLACEHOLDER,) * 3, breaks=edits, symptoms=(), observations=(),
    )  # fmt: skip
    try:
        changed = changed_areas(recipe.healthy_source(), recipe.broken_source())
    except (ValueError, Unparsable) as error:
        raise UserError(f"The edit cannot be applied to {experiment}: {error}") from None
    if recipe.healthy_source() == recipe.broken_source():
        raise UserError("The edit changes nothing: use different texts for --find and --replace.")
    return recipe.model_copy(update={"area": min(changed, default="model")})


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
    # A JSON string, number or list is also valid TOML.
    return json.dumps(value, ensure_ascii=False)


def propose(broken: Sequence[Sequence[Record]], healthy: Sequence[Sequence[Record]]) -> list[Symptom]:
    """Return symptoms that all broken runs show and no healthy run shows, or [] if no signal separates the runs.

    The symptoms with the largest margins are chosen, for at most two different signals.

    broken, healthy: the records of the runs, with the same seeds.
    """
    best: dict[str, tuple[float, Symptom]] = {}
    for signal, reducer, steps in product(SYMPTOM_SIGNALS, get_args(Reducer), _WINDOWS):
        if steps is not None and reducer in ("first", "last"):
            continue
        measure = Symptom(signal=signal, reduce=reducer, steps=steps, above=0.0, says="x")
        ours, theirs = _span(broken, measure), _span(healthy, measure)
        found = _between(measure, ours, theirs) if ours and theirs else None
        if found and found[0] >= _LEAST_MARGIN and (signal not in best or found[0] > best[signal][0]):
            best[signal] = found
    return [symptom for _, symptom in sorted(best.values(), key=lambda item: -item[0])[:_MOST]]


def _span(runs: Sequence[Sequence[Record]], measure: Symptom) -> tuple[float, float] | None:
    values = [judge_symptom(records, measure).value for records in runs]
    known = [value for value in values if value is not None and not math.isnan(value)]
    return (min(known), max(known)) if known and len(known) == len(values) else None


def _between(
    measure: Symptom, broken: tuple[float, float], healthy: tuple[float, float]
) -> tuple[float, Symptom] | None:
    """Return the margin and a symptom that separates the two ranges, or None if the ranges overlap.

    The margin is the distance of the ranges divided by the sum of their ends, or 1 if an end is infinite.
    """
    above = broken[0] > healthy[1]
    low, high = (healthy[1], broken[0]) if above else (broken[1], healthy[0])
    if not high - low > (_ROUNDING if measure.signal == "eval_mode_gain" else 0.0):
        return None
    bound = middle(low, high)
    margin = 1.0 if math.inf in (abs(low), abs(high)) else (high - low) / (abs(high) + abs(low))
    window = "" if measure.steps is None else f" of steps {measure.steps[0]} to {measure.steps[1] - 1}"
    says = f"the {measure.reduce} {measure.signal}{window} is {'above' if above else 'below'} {bound:g}"
    bounds = {"above": bound, "below": None} if above else {"above": None, "below": bound}
    return margin, measure.model_copy(update={**bounds, "says": says})


def middle(low: float, high: float) -> float:
    """Return a number with few digits near the geometric mean of two numbers; near their mean if one is negative."""
    if high == math.inf:
        high = 100 * abs(low) or 1.0
    if low == -math.inf:
        low = min(0.0, 10 * high)
    exact = (low + high) / 2 if low < 0 or high <= 0 else math.sqrt(max(low, high * _FLOOR) * high)
    for digits in range(1, 17):
        rounded = float(f"{exact:.{digits}g}")
        if low < rounded < high:
            return rounded
    return exact
