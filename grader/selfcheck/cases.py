"""Check the cases in `solutions/cases.toml`: twins, decoys, and experiments with several breaks.

Twins are two exercises that look similar at first but have different causes. A decoy is a healthy experiment that looks
broken.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from grader.replay.replay import Replay
from grader.score.measurements import has_learnt
from grader.selfcheck.guide import MADE, SILENT, parts_of
from grader.selfcheck.runs import Runs, SubjectChecks, request_of
from grader.selfcheck.seeds import MORE_SEEDS
from harness.checks import checks_for, load_check
from harness.recipes.cases import Cases, Decoy, case_of
from harness.recipes.known_edits import KnownFix
from harness.recipes.recipe import SOLUTIONS, Recipe, experiment_source
from harness.run.metrics_log import epoch_records
from harness.run.settings import RunSettings
from harness.run.symptoms import judge_symptom

_SEED = 42


def what_parts(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Return the checks whose outcomes differ between two exercises, beginning with checks that directly show a fault.

    first, second: {check: outcome} of each exercise.
    """
    names = [name for name in first if name in second and first[name] != second[name]]
    return sorted(names, key=lambda name: -sum(_shows_fault(name, one[name]) for one in (first, second)))


def _shows_fault(name: str, outcome: str) -> bool:
    return load_check(name).outcome(outcome).mechanism


def twin_problems(cases: Cases, outcomes: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield a sentence for each pair of twins that no check distinguishes."""
    for one, two in (twins.exercises for twins in cases.twins):
        if one in outcomes and two in outcomes and not what_parts(outcomes[one], outcomes[two]):
            yield f"no check distinguishes the twins {one} and {two}"


def silent_reasons(recipes: Sequence[Recipe], solutions: Path = SOLUTIONS) -> dict[str, str]:
    """Return {recipe: reason why no check finds its break} for the recipes whose notes give such a reason."""
    parts = {recipe.id: parts_of(recipe, solutions) for recipe in recipes}
    return {id: own[SILENT] for id, own in parts.items() if SILENT in own}


def silence_problems(silent: Mapping[str, str], trips: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield a sentence for each exercise whose notes are wrong about whether a check finds the break."""
    for id, found in trips.items():
        if not found and id not in silent:
            yield f"{id}: no check finds the break. Explain why in its notes.md, under **{SILENT}.**"
        elif found and id in silent:
            yield f"{id}: its notes.md says that no check finds the break, but {', '.join(found)} finds the break."


def decoy_problems(decoys: Sequence[Decoy], runs: Runs) -> Iterator[str]:
    """Yield the problems with decoys.

    A decoy does not look broken, does not learn, ends worse than its experiment, or a check finds a fault in it.
    """
    subjects = {
        (decoy.id, seed): SubjectChecks(source, RunSettings(seed=seed, dataset=decoy.dataset), checks_for(source))
        for decoy in decoys
        for source in [decoy.source()]
        for seed in (_SEED, *MORE_SEEDS)
    }
    found = runs.outcomes("decoys", [*subjects.values()])
    requests = {}
    for experiment, dataset in {(decoy.experiment, decoy.dataset) for decoy in decoys}:
        recipe = Recipe.model_construct(id=experiment, experiment=experiment, dataset=dataset, breaks=())
        for seed in (_SEED, *MORE_SEEDS):
            settings = RunSettings(seed=seed, dataset=dataset)
            requests[experiment, seed] = request_of(recipe, experiment_source(experiment), settings)
    for decoy in decoys:
        recipe = Recipe.model_construct(id=decoy.id, experiment=decoy.experiment, dataset=decoy.dataset, breaks=())
        for seed in (_SEED, *MORE_SEEDS):
            requests[decoy.id, seed] = request_of(recipe, *subjects[decoy.id, seed][:2])
    made = runs.replays("runs of decoys", requests.values())
    for decoy in decoys:
        mine, usual = (
            [_last_accuracy(made[requests[name, seed]]) for seed in (_SEED, *MORE_SEEDS)]
            for name in (decoy.id, decoy.experiment)
        )
        if is_worse(mine, usual):
            yield f"decoy {decoy.id}: its validation accuracy is worse than in a run of {decoy.experiment}"
        for seed in (_SEED, *MORE_SEEDS):
            where = f"decoy {decoy.id}, seed {seed}"
            replay = made[requests[decoy.id, seed]]
            if replay.status != "OK":
                yield f"{where}: {replay.message}"
                continue
            looks = judge_symptom(replay.records(), decoy.looks)
            if not looks.present:
                yield f"{where}: {decoy.looks.reduce} {decoy.looks.signal} is {looks.value}"
            if not has_learnt(replay, decoy.dataset):
                yield f"{where}: it does not learn"
            for name, outcome in found.get(subjects[decoy.id, seed], {"checks": "fail"}).items():
                if name == "checks" or not load_check(name).outcome(outcome).sound:
                    yield f"{where}: {name} finds {outcome}"


def _last_accuracy(replay: Replay) -> float | None:
    epochs = epoch_records(replay.records()) if replay.status == "OK" else []
    return epochs[-1]["val_accuracy"] if epochs else None


def is_worse(decoy: Sequence[float | None], usual: Sequence[float | None]) -> bool:
    """Return whether the mean accuracy of a decoy over seeds is below the lowest accuracy of its experiment."""
    mine, others = ([one for one in values if one is not None] for values in (decoy, usual))
    return bool(mine and others) and fmean(mine) < min(others)


def combination_fixes(*recipes: Recipe) -> list[KnownFix]:
    """Return the known fixes of an experiment with several breaks: the whole fix, and fixes that leave one break."""
    case = case_of("+".join(one.id for one in recipes), recipes)
    parts = [KnownFix(case, f"all but {one.id}", "half", one.broken_source()) for one in recipes]
    return [KnownFix(case, "all", "full", case.healthy_source()), *parts]


def cases_page(cases: Cases, outcomes: Mapping[str, Mapping[str, str]], silent: Mapping[str, str]) -> str:
    """Return the page about twins, decoys, pairs of breaks, and breaks that no check finds.

    outcomes: {exercise: {check: outcome}}. silent: {exercise: reason why no check finds its break}.
    """
    lines = ["# Twins, decoys, and several at once", "", MADE]
    lines += [
        "",
        "## Twins",
        "",
        "Two exercises whose logs look similar at first, and the checks that give different outcomes for them.",
        "",
    ]
    lines += ["| exercises | both | checks that differ |", "| --- | --- | --- |"]
    for twins in cases.twins:
        one, two = twins.exercises
        names = what_parts(outcomes.get(one, {}), outcomes.get(two, {}))
        parts = [f"`{name}`: {outcomes[one][name]}, {outcomes[two][name]}" for name in names[:2]]
        lines.append(f"| {one}, {two} | {twins.alike} | {'; '.join(parts)} |")
    lines += ["", "## Decoys", "", "Healthy experiments that look broken. No check finds anything wrong with them.", ""]
    lines += ["| decoy | experiment | symptom | why it is healthy |", "| --- | --- | --- | --- |"]
    lines += [f"| {one.id} | {one.experiment} | {one.looks.says} | {one.why} |" for one in cases.decoy]
    lines += [
        "",
        "## Several at once",
        "",
        "Breaks that can be in the same experiment. Each fixed one earns its share of the points for the fix.",
        "",
    ]
    lines += [f"- {', '.join(ids)}" for ids in (*cases.together, *cases.several)]
    lines += ["", "## Silent", "", "Breaks that no check finds. Only the log shows them.", ""]
    lines += ["| exercise | why no check finds it |", "| --- | --- |"]
    lines += [f"| {id} | {why} |" for id, why in silent.items()]
    return "\n".join(lines) + "\n"
