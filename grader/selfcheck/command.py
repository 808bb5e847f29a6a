"""`grader selfcheck`: check the exercises, print the result, and write the measurements to the recipes' folders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from grader.replay.replays import default_folder
from grader.sandbox import sandbox_problem
from grader.score.measurements import load_band, load_bands
from grader.score.rubric import DEFAULT_RUBRIC, load_weights
from grader.score.self_test import self_test_problem, self_test_requests
from grader.selfcheck.calibration import Calibration, Section, calibration_path, recipe_section
from grader.selfcheck.cases import combination_fixes, decoy_problems, silence_problems, silent_reasons, twin_problems
from grader.selfcheck.fixes import fix_problems
from grader.selfcheck.goals import behaviour_files, goal_of, goal_toml
from grader.selfcheck.runs import Runs, open_runs
from grader.selfcheck.seeds import (
    MeasuredOutcomes,
    SeedRuns,
    measure,
    measured_path,
    measured_toml,
    pair_differences,
    problems_of,
    quantity_of,
    run_seeds,
    write_bands,
    write_sound,
)
from grader.selfcheck.written import written_problems
from grader.written.grade import AnswerGrader
from grader.written.known_answers import known_answers
from harness.checks.core.outcomes import SOUND, outcomes_of, trips_of
from harness.errors import UserError
from harness.files import write_whole
from harness.formats.toml_file import read_table
from harness.recipes.cases import CASES, Cases, load_cases, sound_experiments
from harness.recipes.known_edits import KnownFix, Verdict, known_fixes
from harness.recipes.recipe import BEHAVIOUR, EXERCISES, GOAL, SOLUTIONS, Recipe, load_recipes
from harness.written.exercise import FileExercise, exercise_ids, load_exercise

_LEAST_SEEDS = 5


@dataclass(frozen=True)
class SelfcheckOptions:
    """The options of `grader selfcheck`. If `only` is empty, all exercises are checked."""

    seeds: int
    jobs: int
    only: tuple[str, ...] = ()
    write: bool = False
    exercises: Path = EXERCISES
    solutions: Path = SOLUTIONS


def run_selfcheck(options: SelfcheckOptions) -> int:
    """Check the exercises and print the result. Return 0 if there is no problem, otherwise 1.

    With `write`, the measurements are written to the folders of the recipes. With `only`, the earlier measurements of
    healthy experiments are kept. Raises `UserError` for an unknown exercise, if no sandbox starts on this machine, and
    if `write` is set with too few seeds.
    """
    if options.write and options.seeds < _LEAST_SEEDS:
        raise UserError(
            f"--write needs --seeds {_LEAST_SEEDS} or more: measurements with fewer seeds are not reliable."
        )
    if (problem := sandbox_problem()) is not None:
        raise UserError(problem)
    recipes, problems = load_recipes(options.exercises)
    chosen = options.only or exercise_ids(options.exercises)
    found = [load_exercise(name, options.exercises) for name in chosen if name not in problems]
    sections = [Section("Left out", problems=tuple(problems.values()))] if problems else []
    with open_runs(jobs=options.jobs) as runs:
        wanted = [item for item in found if isinstance(item, Recipe)]
        sections += check_recipes(wanted, options, runs)
        behaviours = behaviour_files(wanted, runs) if options.write else {}
        if options.write:
            sound = sound_experiments(load_cases(options.solutions).decoy, recipes)
            write_sound(sound, options.solutions / SOUND, runs, whole=not options.only)
        if not options.only and (options.solutions / CASES).is_file():
            sections.append(_cases_section(load_cases(options.solutions), wanted, options, runs))
        answers = AnswerGrader(runs.replayer, default_folder(), jobs=options.jobs)
        written = {
            item.id: written_problems(item, answers, write=options.write)
            for item in found
            if isinstance(item, FileExercise)
        }
    if written:
        rows = [(id, str(len(known_answers(id))), " ".join(wrong) or "right") for id, wrong in written.items()]
        columns = ("exercise", "known answers", "self-tests")
        sections.append(Section("Answers", (), columns, rows, [*chain.from_iterable(written.values())]))
    command = f"grader selfcheck --seeds {options.seeds}{' --write' if options.write else ''}"
    text = page(sections, command)
    console = Console(highlight=False)
    console.print(Markdown(text) if console.is_terminal else text, markup=False, soft_wrap=True)
    if options.write:
        write_whole({options.exercises / one.id / BEHAVIOUR: text for one, text in behaviours.items()})
        for one in wanted:
            goal = goal_of(one, trips_of(one.id, options.solutions), outcomes_of(one.id, options.solutions))
            write_whole({options.exercises / one.id / GOAL: goal_toml(goal).encode()})
    count = sum(len(section.problems) for section in sections)
    console.print(f"Exercises checked: {len(chosen)}. Disagreements: {count}.")
    return 1 if count else 0


@dataclass(frozen=True)
class _Plan:
    """The data for checking one recipe.

    trips: {check: outcome} of the checks that find the recipe's break, as measured now.
    stored: {check: outcome} of the checks that find the break according to `measured.toml`.
    alarms: the checks that wrongly find a fault in the healthy experiment.
    fixes: the known fixes. left_out: the ids of the known edits that cannot be applied.
    """

    recipe: Recipe
    trips: Mapping[str, str]
    stored: Mapping[str, str]
    alarms: Sequence[str]
    fixes: Sequence[KnownFix]
    left_out: Sequence[str]


def check_recipes(wanted: Sequence[Recipe], options: SelfcheckOptions, runs: Runs) -> list[Section]:
    """Check the recipes in `wanted`. Return a section about each recipe, and a section about their differences.

    If a recipe cannot be checked, its section says why.
    """
    sections, plans = [], []
    measured = measure(wanted, options.seeds, runs)
    for recipe in wanted:
        try:
            plans.append(_plan(recipe, measured.get(recipe.id), options))
        except (UserError, ValueError, LookupError) as error:
            sections.append(Section(recipe.id, problems=[str(error)]))
    seed_runs = run_seeds([plan.recipe for plan in plans], options.seeds, runs)
    if options.write:
        known = {(band.experiment, band.dataset) for band in load_bands()} if options.only else set()
        write_bands([item for item in seed_runs if (item.recipe.experiment, item.dataset) not in known], runs)
    wrong = fix_problems([fix for plan in plans for fix in plan.fixes], runs)
    # The grader finds recipes by their names, so it does not know recipes in another folder.
    graded = [plan.recipe for plan in plans] if options.exercises == EXERCISES else []
    unfit = _self_test_problems(graded, runs)
    for plan in plans:
        own = [item for item in seed_runs if item.recipe.id == plan.recipe.id]
        found = _calibration(plan, own, [wrong[fix] for fix in plan.fixes], unfit.get(plan.recipe.id, ""))
        sections.append(recipe_section(plan.recipe, plan.trips, found))
        if options.write:
            write_whole({calibration_path(plan.recipe.id, options.solutions): found.toml().encode()})
    if len(plans) > 1:
        sections.append(_pairs_section(seed_runs, measured))
    return sections


def _plan(recipe: Recipe, measured: MeasuredOutcomes | None, options: SelfcheckOptions) -> _Plan:
    """Return the data for checking a recipe. With `--write`, first write its `measured.toml`.

    Raises `UserError`, `ValueError` or `LookupError` if a measurement or file is missing or invalid.
    """
    if measured is None:
        raise UserError(f"{recipe.id}: the checks cannot run on its experiment. `harness triage` says why.")
    path = measured_path(recipe.id, options.solutions)
    if options.write:
        write_whole({path: measured_toml(measured).encode()})
    if not options.write:
        load_band(recipe.experiment, recipe.dataset)
    trips_of(recipe.id, options.solutions)  # raises `UserError` for an invalid file
    stored = read_table(path)["trips"]
    return _Plan(recipe, measured.trips, stored, measured.alarms, *known_fixes(recipe, options.solutions))


def _self_test_problems(recipes: Sequence[Recipe], runs: Runs) -> Mapping[str, str]:
    """Return {recipe: problem that the grader's self-test found with it, or ""}."""
    wanted = {recipe: self_test_requests(recipe) for recipe in recipes}
    made = runs.replays("reference solutions", chain.from_iterable(wanted.values()))
    weights = load_weights(DEFAULT_RUBRIC)
    return {
        recipe.id: self_test_problem(recipe, [made[item] for item in items], weights)
        for recipe, items in wanted.items()
    }


def _calibration(plan: _Plan, own: Sequence[SeedRuns], judged: Sequence[str], unfit: str) -> Calibration:
    """Return the calibration of a recipe.

    own: the runs of the recipe over seeds. judged: for each known edit, a problem or "". unfit: the problem that the
    self-test found, or "".
    """
    recipe = plan.recipe
    quantities = [
        quantity_of(item, symptom) for item in own for symptom in (*item.recipe.symptoms, *item.recipe.observations)
    ]
    problems = [*(problem for item in own for problem in problems_of(item)), *filter(None, [*judged, unfit])]
    if not recipe.symptoms and not plan.trips:
        problems.append(
            f"{recipe.id}: this recipe has no symptom, and no check finds its break, so nothing shows the break"
        )
    if plan.stored != plan.trips:
        told = f"measured.toml contains {plan.stored}, but `grader selfcheck` has measured {plan.trips}"
        problems.append(f"{recipe.id}: {told}: run with --write")
    problems += [
        f"{recipe.experiment}: the check `{check}` finds a fault in the healthy experiment" for check in plan.alarms
    ]
    edits: dict[Verdict, tuple[str, ...]] = {}
    for fix, problem in zip(plan.fixes, judged, strict=True):
        if not problem:
            edits[fix.verdict] = (*edits.get(fix.verdict, ()), fix.id)
    return Calibration(
        seeds=len(own[0].broken),
        quantities=tuple(quantities),
        left_out=tuple(plan.left_out),
        wrong=tuple(problems),
        edits=edits,
    )


def _pairs_section(seed_runs: Sequence[SeedRuns], measured: Mapping[str, MeasuredOutcomes]) -> Section:
    pairs = pair_differences(seed_runs, measured)
    close = [(*pair, found[0]) for pair, found in pairs.items() if len(found) == 1]
    alike = [
        f"no check and no symptom distinguishes {one} and {two}" for (one, two), found in pairs.items() if not found
    ]
    says = (
        f"{len(pairs) - len(alike)} of {len(pairs)} pairs differ. The table lists the pairs that differ in only one"
        " check or symptom."
    )
    return Section("Differences between recipes", (says,), ("recipe", "recipe", "difference"), close, alike)


def _cases_section(cases: Cases, recipes: Sequence[Recipe], options: SelfcheckOptions, runs: Runs) -> Section:
    by_id = {recipe.id: recipe for recipe in recipes}
    outcomes = {
        id: outcomes_of(id, options.solutions) for id in by_id if measured_path(id, options.solutions).is_file()
    }
    several = [[by_id[id] for id in ids] for ids in (*cases.together, *cases.several) if by_id.keys() >= {*ids}]
    judged = fix_problems([fix for recipes in several for fix in combination_fixes(*recipes)], runs)
    trips = {id: trips_of(id, options.solutions) for id in outcomes}
    silent = silent_reasons(recipes, options.solutions)
    problems = [*twin_problems(cases, outcomes), *silence_problems(silent, trips)]
    problems += [*decoy_problems(cases.decoy, runs), *filter(None, judged.values())]
    says = (
        f"{len(cases.twins)} pairs of twins, {len(cases.decoy)} decoys, {len(several)} combinations of breaks in one"
        " experiment."
    )
    return Section("Twins, decoys, several at once", (says,), problems=problems)


def page(sections: Sequence[Section], command: str) -> str:
    """Return the sections as a Markdown page, which begins with the command that measured them."""
    head = f"# Calibration\n\nWritten by `{command}`. Ranges: smallest to largest value over seeds.\n"
    return "\n".join((head, *(section.markdown() for section in sections)))
