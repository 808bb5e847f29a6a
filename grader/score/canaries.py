"""Two canaries before a class: the reference solution must score 100, the untouched break nothing for its fix.

Where they do not, the grader does not grade right on this machine, and nothing is scored.
"""

from dataclasses import replace

from grader.replay.replay import Replay
from grader.score.bands import load_band
from grader.score.evidence import Claim, Evidence, recipe_of
from grader.score.measured import measurements
from grader.score.reference_report import reference_report
from grader.score.scoring import score_evidence
from grader.score.verdict import total_of
from grader.score.weights import Weights
from harness.recipe import Recipe
from harness.run.settings import RunSettings


class CanaryFailed(Exception):
    """The grader does not grade right here: a fault of ours, or of the machine."""


def check_canaries(
    recipe_id: str, broken: Replay, reference: Replay, repaired: Replay, *, weights: Weights
) -> None:
    """Score both canaries of a recipe.

    repaired: a replay of its own of the reference solution, made as a student's is, so that the score rests on a
    comparison of two runs. Raises `CanaryFailed` with the first thing that came out wrong.
    """
    for run, replay in (("broken", broken), ("reference", reference), ("repaired", repaired)):
        if replay.status != "OK":
            raise CanaryFailed(
                f"Nothing was scored: the {run} run of {recipe_id} failed here ({replay.message})."
                " grader doctor looks for the cause."
            )
    perfect = _canary(recipe_of(recipe_id), broken, reference, repaired)
    criteria = score_evidence(perfect, weights)
    if (total := total_of(criteria)) != 100:
        lost = next(
            f"{criterion}.{check.id}: {check.reason}"
            for criterion, score in criteria.items()
            for check in score.checks
            if check.points != check.max
        )
        raise CanaryFailed(
            f"Nothing was scored: the reference solution of {recipe_id} got {total}, not 100 ({lost})."
        )
    # Equal bytes alone earn the points of the fix, so that a broken instrument would not show in them.
    for item in measurements(perfect):
        if not item.good:
            raise CanaryFailed(
                f"Nothing was scored: of the reference solution of {recipe_id}, {item.name} is {item.value},"
                f" wanted {item.wanted}."
            )
    heldout = None if reference.evaluation is None else reference.evaluation.heldout
    band = load_band(perfect.recipe.experiment, perfect.recipe.dataset)
    if heldout is None or not band.is_plausible(heldout):
        found = None if heldout is None else band.figure(heldout)
        raise CanaryFailed(
            f"Nothing was scored: the held-out figure of {recipe_id}'s reference solution is {found} here, and was"
            f" {band.reference[0]:g} to {band.reference[1]:g} where it was measured."
        )
    untouched = replace(
        perfect,
        source=perfect.recipe.broken_source(),
        fixed=broken,
        claims={**perfect.claims, "fixed": _claim(broken)},
    )
    fix = score_evidence(untouched, weights)["fix"].points
    if fix != 0:
        raise CanaryFailed(
            f"Nothing was scored: the untouched experiment of {recipe_id} got {fix} points for its fix."
        )


def _canary(recipe: Recipe, broken: Replay, reference: Replay, repaired: Replay) -> Evidence:
    return Evidence(
        recipe=recipe,
        settings=RunSettings(seed=recipe.seed, dataset=recipe.dataset),
        command_problem="",
        missing=(),
        claims={"broken": _claim(broken), "fixed": _claim(reference)},
        source=recipe.healthy_source(),
        report=reference_report(recipe.id, broken.log, reference.log),
        broken=broken,
        fixed=repaired,
        reference=reference,
        same_class=True,
    )


def _claim(replay: Replay) -> Claim:
    return Claim(replay.log.encode(), replay.checkpoint_sha256, replay.platform)
