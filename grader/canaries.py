"""Two canaries before a class: the reference solution must score 100, the untouched break nothing for its fix.

Where they do not, the grader does not grade right on this machine, and nothing is scored.
"""

from collections.abc import Mapping
from dataclasses import replace

from grader.evidence import Claim, Evidence, Run, lexicon_of, recipe_of, solution_of
from grader.replay import Replay
from grader.rubric.weights import Weights
from grader.score import total_of
from grader.scoring import score_evidence
from grader.solutions import SOLUTIONS
from harness.recipe import Recipe
from harness.settings import RunSettings


class CanaryFailed(Exception):
    """The grader does not grade right here: a fault of ours, or of the machine."""


def check_canaries(recipe_id: str, broken: Replay, reference: Replay, weights: Weights) -> None:
    """Score both canaries of a recipe from the replays of its broken run and its reference fix.

    Raises `CanaryFailed` with the first check that came out wrong.
    """
    for run, replay in (("broken", broken), ("reference", reference)):
        if replay.status != "OK":
            raise CanaryFailed(
                f"Nothing was scored: the {run} run of {recipe_id} failed here ({replay.message})."
                " grader doctor looks for the cause."
            )
    recipe = recipe_of(recipe_id)
    untouched, mended = _canaries(recipe, broken, reference)
    perfect = score_evidence(mended, weights)
    if (total := total_of(perfect)) != 100:
        lost = next(
            f"{criterion}.{check.id}: {check.reason}"
            for criterion, score in perfect.items()
            for check in score.checks
            if check.points != check.max
        )
        raise CanaryFailed(
            f"Nothing was scored: the reference solution of {recipe_id} got {total}, not 100 ({lost})."
        )
    fix = score_evidence(untouched, weights)["fix"].points
    if fix != 0:
        raise CanaryFailed(
            f"Nothing was scored: the untouched experiment of {recipe_id} got {fix} points for its fix."
        )


def _canaries(recipe: Recipe, broken: Replay, reference: Replay) -> tuple[Evidence, Evidence]:
    """Return the evidence of the untouched experiment, and of the reference fix."""
    mended = Evidence(
        recipe=recipe,
        solution=solution_of(recipe.id),
        lexicon=lexicon_of(recipe.id),
        settings=RunSettings(seed=recipe.seed, dataset=recipe.dataset),
        command_problem="",
        missing=(),
        claims={"broken": _claim(broken), "fixed": _claim(reference)},
        source=recipe.healthy_source(),
        report=(SOLUTIONS / recipe.id / "report.md").read_text(encoding="utf-8"),
        broken=broken,
        fixed=reference,
        reference=reference,
        same_class=True,
    )
    claims: Mapping[Run, Claim] = {"broken": _claim(broken), "fixed": _claim(broken)}
    return replace(mended, claims=claims, source=recipe.broken_source(), fixed=broken), mended


def _claim(replay: Replay) -> Claim:
    return Claim(replay.log.encode(), replay.checkpoint_sha256, replay.platform)
