"""Evidence for scoring, from real training in this process instead of the sandbox."""

import dataclasses
import hashlib
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from grader.intake.submission import Claim
from grader.replay.inside.evaluate import evaluate
from grader.replay.replay import CheckResult, Evaluation, Replay
from grader.replay.request import check_request, own_settings
from grader.score.behaviour import OWN_BEHAVIOUR, break_requests, comparison_of, sound_requests
from grader.score.evidence import Evidence
from grader.score.self_test import own_evidence, reference_report
from grader.selfcheck.runs import request_of
from harness.behaviour.child import behaviour_of
from harness.behaviour.probes import measure_behaviour
from harness.behaviour.sound import Comparison
from harness.checks import make_check, mechanism_checks, run_checks
from harness.checks.core.subject import Subject
from harness.data.datasets import Dataset, read_embedded
from harness.data.loading import load_dataset
from harness.recipes.catalogue import load_recipe
from harness.recipes.form import is_script
from harness.recipes.recipe import Recipe
from harness.run.experiment import tensor_data
from harness.run.metrics_log import to_strict
from harness.run.settings import RunSettings
from harness.run.training import train
from helpers.mini_experiments import load, real_data

HELDOUT = Path(__file__).parents[2] / "grader" / "replay" / "heldout"
PLATFORM: dict[str, Any] = {
    "architecture": "x86_64",
    "numerics": "portable",
    "device": "cpu",
    "torch": "2.13.0",
    "golden": True,
}


def replay(recipe: Recipe | str, source: str) -> Replay:
    """Train an experiment, and evaluate its weights on the held-out split."""
    recipe = load_recipe(recipe) if isinstance(recipe, str) else recipe
    return replay_with(recipe, source, RunSettings(seed=recipe.seed, dataset=recipe.dataset))


@cache
def replay_with(recipe: Recipe, source: str, settings: RunSettings) -> Replay:
    """Return a replay like `replay`, but under other settings than the recipe's own."""
    data = real_data(recipe.dataset)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        train(load(folder, source), data, settings, folder)
        log, checkpoint = (folder / "metrics.log").read_bytes(), (folder / "checkpoint.pt").read_bytes()
        return Replay(
            status="OK",
            log=log.decode(),
            log_sha256=hashlib.sha256(log).hexdigest(),
            checkpoint_sha256=hashlib.sha256(checkpoint).hexdigest(),
            platform=dict(PLATFORM),
            evaluation=_evaluated(recipe, folder),
        )


@cache
def checks(recipe_id: str, source: str) -> Replay:
    """Run the checks on an experiment, as the grader does."""
    recipe = load_recipe(recipe_id)
    request = check_request(request_of(recipe, source, own_settings(recipe, recipe.dataset)))
    if is_script(source):
        made = run_checks(source, request.settings, mechanism_checks(source)).items()
        return Replay(status="OK", checks=tuple(CheckResult(check=name, outcome=one.outcome) for name, one in made))
    subject = Subject(Path("experiment.py"), source, request.settings, load_dataset(recipe.dataset))
    found = (
        CheckResult(check=name, outcome=make_check(subject, name).outcome) for name in mechanism_checks(subject.source)
    )
    return Replay(status="OK", checks=tuple(found))


@cache
def behaviour(recipe_id: str, source: str) -> Replay:
    """Measure the behaviour of an experiment, as the grader does."""
    recipe = load_recipe(recipe_id)
    request = check_request(request_of(recipe, source, own_settings(recipe, recipe.dataset)), "behaviour")
    if is_script(source):
        return Replay(status="OK", behaviour=to_strict(behaviour_of(source, request.settings)))
    subject = Subject(Path("experiment.py"), source, request.settings, load_dataset(recipe.dataset))
    return Replay(status="OK", behaviour=to_strict(measure_behaviour(subject)))


def comparison(recipe_id: str, source: str) -> Comparison | None:
    """Compare an experiment with all sound programs of its recipe."""
    recipe = load_recipe(recipe_id)
    reference = request_of(recipe, recipe.healthy_source(), own_settings(recipe, recipe.dataset))
    wanted = break_requests(reference) | sound_requests(reference)
    made = {role: behaviour(recipe_id, one.source) for role, one in wanted.items()}
    return comparison_of(made | {OWN_BEHAVIOUR: behaviour(recipe_id, source)})


def _evaluated(recipe: Recipe, folder: Path) -> Evaluation:
    known = load_dataset(recipe.dataset)
    heldout = read_embedded(recipe.dataset, ["heldout"], HELDOUT)[0]
    experiment = load(folder / "healthy", recipe.healthy_source())
    splits = {
        "validation": experiment.load_data(tensor_data(known))[1],
        "heldout": experiment.load_data(tensor_data(Dataset.of(known.name, known.train, heldout)))[1],
    }
    return Evaluation.model_validate(to_strict(evaluate(experiment, folder / "checkpoint.pt", splits)))


def claim(of: Replay, **changes: Any) -> Claim:
    """Return the claim of an honest submission about a run."""
    return dataclasses.replace(Claim(of.log.encode(), of.checkpoint_sha256), **changes)


def evidence(recipe_id: str, source: str | None = None, **changes: Any) -> Evidence:
    """Return the evidence of an honest submission. source: the experiment, by default the reference fix."""
    recipe = load_recipe(recipe_id)
    source = recipe.healthy_source() if source is None else source
    broken, fixed = replay(recipe_id, recipe.broken_source()), replay(recipe_id, source)
    reference = replay(recipe_id, recipe.healthy_source())
    report = reference_report(recipe, broken.log, reference.log)
    honest = own_evidence(recipe, source, broken, reference, fixed, report)
    if "comparison" not in changes and source not in (recipe.broken_source(), recipe.healthy_source()):
        changes["comparison"] = comparison(recipe_id, source)
    if fixed.log_sha256 not in (broken.log_sha256, reference.log_sha256) and "checks" not in changes:
        changes["checks"] = (checks(recipe_id, source), checks(recipe_id, recipe.healthy_source()))
    return dataclasses.replace(honest, **changes)
