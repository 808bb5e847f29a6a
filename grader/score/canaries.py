"""Check a recipe before its submissions: the reference fix must score 100, the untouched break nothing for its fix.

If it does not, the grader does not grade this recipe right on this machine, and its submissions are not judged.
"""

from collections.abc import Sequence
from dataclasses import replace

from grader.intake.submission import Claim
from grader.replay.replay import Replay
from grader.replay.request import recipe_of
from grader.score.bands import load_band
from grader.score.evidence import Evidence
from grader.score.measured import measurements
from grader.score.reference_report import reference_report
from grader.score.scoring import score_evidence
from grader.score.solutions import mechanisms_of
from grader.score.verdict import total_of
from grader.score.weights import Weights
from grader.syntax.plain_edit import plain_edit
from harness.checks import load_check
from harness.recipe import Recipe
from harness.run.settings import RunSettings

_CANARIES = ("The broken run", "The reference run", "The repeated reference run", "The checks")


def canary_problem(recipe_id: str, replays: Sequence[Replay], weights: Weights) -> str:
    """Return what went wrong with the canaries of a recipe, as a sentence, or "".

    replays: those of `grader.replay.request.canary_requests`, in that order. The third repeats the reference fix as a
    student's experiment is run, so that the score compares two runs.
    """
    broken, reference, repeated, made = replays
    for what, replay in zip(_CANARIES, replays, strict=True):
        if replay.status != "OK":
            return f"{what} of {recipe_id} failed here ({replay.message}); grader doctor may say why."
    recipe, solution = recipe_of(recipe_id), f"The reference solution of {recipe_id}"
    report = reference_report(recipe_id, broken.log, reference.log)
    perfect = own_evidence(recipe, recipe.healthy_source(), broken, reference, repeated, report)
    perfect = replace(perfect, claims={**perfect.claims, "fixed": _claim(reference)}, checks=(made, made))
    criteria = score_evidence(perfect, weights)
    if (total := total_of(criteria)) != 100:
        checks = ((name, check) for name, score in criteria.items() for check in score.checks)
        lost = next(
            f"{name}.{check.id}: {check.reason}" for name, check in checks if check.points != check.max
        )
        return f"{solution} got {total}, not 100 ({lost})."
    outcomes = {result.check: result.outcome for result in made.checks}
    for name in mechanisms_of(recipe_id):
        shown = name.replace("_", "-")
        if not (outcome := outcomes.get(name)):
            return f"The check {shown} could not be made for {recipe_id} here."
        if not load_check(name).outcome(outcome).sound:
            return f"{solution} trips the check {shown} here."
    # Equal bytes alone earn the points of the fix, so they would not show a failing check.
    for item in measurements(perfect):
        if not item.good:
            return f"{solution} has {item.name} {item.value} here, not {item.wanted}."
    heldout = None if reference.evaluation is None else reference.evaluation.heldout
    band = load_band(recipe.experiment, recipe.dataset)
    if heldout is None or not band.is_plausible(heldout):
        found = None if heldout is None else band.figure(heldout)
        low, high = band.reference
        measured = f"it was {low:g} to {high:g} when it was measured"
        return f"{solution} has the held-out figure {found} here; {measured}."
    untouched = own_evidence(recipe, recipe.broken_source(), broken, reference, broken, report)
    fix = score_evidence(untouched, weights)["fix"].points
    return "" if fix == 0 else f"The untouched experiment of {recipe_id} got {fix} points for its fix, not 0."


def own_evidence(
    recipe: Recipe, source: str, broken: Replay, reference: Replay, fixed: Replay, report: str | None = None
) -> Evidence:
    """Return the evidence of an honest submission with this experiment, under the recipe's own settings."""
    return Evidence(
        recipe=recipe,
        settings=RunSettings(seed=recipe.seed, dataset=recipe.dataset),
        claims={"broken": _claim(broken), "fixed": _claim(fixed)},
        source=source,
        report=report,
        broken=broken,
        fixed=fixed,
        reference=reference,
        suspicions=plain_edit(recipe.broken_source(), source),
    )


def _claim(replay: Replay) -> Claim:
    return Claim(replay.log.encode(), replay.checkpoint_sha256, replay.platform)
