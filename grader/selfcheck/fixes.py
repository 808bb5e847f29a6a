"""Known edits, replayed as if a student had handed them in, against the verdict that the grader must give them."""

from collections.abc import Iterator, Mapping, Sequence

from grader.replay.request import trusted_requests
from grader.score.canaries import own_evidence
from grader.score.fix import CORRECT, MINIMAL, judge_fix
from grader.score.known_edits import KnownFix, Verdict
from grader.score.verdict import Check
from grader.selfcheck.runs import Runs, request_of
from harness.run.settings import RunSettings

# Points for a correct and for a minimal fix that each verdict must get: at least, at most.
EXPECTED: Mapping[Verdict, tuple[tuple[float, float], tuple[float, float]]] = {
    "full": ((CORRECT, CORRECT), (6, MINIMAL)),
    "alternative": ((CORRECT, CORRECT), (0, MINIMAL - 0.5)),
    "overreach": ((CORRECT, CORRECT), (0, MINIMAL - 2.5)),
    "sound": ((CORRECT, CORRECT), (0, MINIMAL)),
    "masking": ((0, 4), (0, 0)),
    "wrong": ((0, 0), (0, 0)),
}


def problem_of(fix: KnownFix, checks: Sequence[Check]) -> str:
    """Return what is wrong with the points that a known fix got, or ""."""
    for check, (low, high) in zip(checks, EXPECTED[fix.verdict], strict=True):
        # Another network, sound or not, may wait for the instructor.
        if check.points is None and fix.verdict == "sound":
            continue
        if check.points is None or not low <= check.points <= high:
            points = "open" if check.points is None else f"{check.points:g}"
            return (
                f"{fix.recipe.id} {fix.id} ({fix.verdict}): {points} for {check.id}, not {low:g} to {high:g}:"
                f" {check.reason}"
            )
    return ""


def judge_fixes(fixes: Sequence[KnownFix], runs: Runs) -> Iterator[tuple[KnownFix, Sequence[Check]]]:
    """Replay the fixes at their recipe's own settings, and yield each with its checks `correct` and `minimal`."""
    own = {}
    for fix in fixes:
        settings = RunSettings(seed=fix.recipe.seed, dataset=fix.recipe.dataset)
        own[fix] = request_of(fix.recipe, fix.source, settings, trusted=False)
    ours = {fix.recipe.id: trusted_requests(fix.recipe.id) for fix in fixes}
    replays = runs.replays("known edits", [*own.values(), *(one for pair in ours.values() for one in pair)])
    for fix, request in own.items():
        broken, reference = (replays[item] for item in ours[fix.recipe.id])
        yield fix, judge_fix(own_evidence(fix.recipe, fix.source, broken, reference, replays[request]))
