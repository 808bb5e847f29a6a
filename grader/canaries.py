"""Two canaries before a class: the reference solution must score 100, the untouched break nothing for its fix.

Where they do not, the grader does not grade right on this machine, and nothing is scored.
"""

from collections.abc import Mapping

from grader.evidence import Claim, Evidence, lexicon_of, solution_of
from grader.replay import Replay
from grader.rubric.weights import Weights
from grader.scoring import score_evidence, total_of
from grader.solutions import SOLUTIONS
from harness.recipe import load_recipe
from harness.settings import RunSettings


class CanaryFailed(Exception):
    """The grader does not grade right here: a fault of ours, or of the machine."""


def check_canaries(recipe_id: str, replays: Mapping[str, Replay], weights: Weights) -> None:
    """Score both canaries of a recipe from the replays `broken` and `reference`.

    Raises `CanaryFailed` with the first check that came out wrong.
    """
    for run, replay in replays.items():
        if replay.status != "OK":
            raise CanaryFailed(
                f"Nothing was scored: the {run} run of {recipe_id} failed here ({replay.message})."
                " grader doctor looks for the cause."
            )
    recipe = load_recipe(recipe_id)
    perfect = score_evidence(_canary(recipe_id, recipe.healthy_source(), replays, "reference"), weights)
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
    untouched = score_evidence(_canary(recipe_id, recipe.broken_source(), replays, "broken"), weights)
    if untouched["fix"].points != 0:
        raise CanaryFailed(
            f"Nothing was scored: the untouched experiment of {recipe_id} got {untouched['fix'].points} points"
            " for its fix."
        )


def _canary(recipe_id: str, source: str, replays: Mapping[str, Replay], fixed: str) -> Evidence:
    recipe = load_recipe(recipe_id)
    broken, reference = replays["broken"], replays["reference"]
    report = (SOLUTIONS / recipe_id / "report.md").read_text(encoding="utf-8")
    return Evidence(
        recipe=recipe,
        solution=solution_of(recipe_id),
        lexicon=lexicon_of(recipe_id),
        settings=RunSettings(seed=recipe.seed, dataset=recipe.dataset),
        command_problem="",
        missing=(),
        claims={"broken": _claim(broken), "fixed": _claim(replays[fixed])},
        source=source,
        report=report,
        broken=broken,
        fixed=replays[fixed],
        reference=reference,
        same_class=True,
    )


def _claim(replay: Replay) -> Claim:
    return Claim(replay.log.encode(), replay.checkpoint_sha256, replay.platform)
