"""Known edits, replayed as if a student had handed them in, against the verdict that the grader must give them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from grader.replay.request import Request, Role, own_settings, trusted_requests
from grader.score.canaries import own_evidence
from grader.score.fix import CORRECT, MINIMAL, further_requests, judge_fix
from grader.score.known_edits import KnownFix, Verdict
from grader.score.verdict import Check
from grader.selfcheck.runs import Runs, request_of

# Points for a correct and for a minimal fix that each verdict must get: at least, at most.
EXPECTED: Mapping[Verdict, tuple[tuple[float, float], tuple[float, float]]] = {
    "full": ((CORRECT, CORRECT), (6, MINIMAL)),
    "alternative": ((CORRECT, CORRECT), (0, MINIMAL)),
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


def fix_problems(fixes: Sequence[KnownFix], runs: Runs) -> Mapping[KnownFix, str]:
    """Return what is wrong with the points that each fix gets, or ""."""
    return {fix: problem_of(fix, checks) for fix, checks in judge_fixes(fixes, runs)}


def judge_fixes(fixes: Sequence[KnownFix], runs: Runs) -> Iterator[tuple[KnownFix, Sequence[Check]]]:
    """Replay the fixes at their recipe's own settings, and yield each with its checks `correct` and `minimal`."""
    requests: dict[KnownFix, dict[Role, Request]] = {}
    for fix in fixes:
        settings = own_settings(fix.recipe, fix.recipe.dataset)
        broken, reference = trusted_requests(fix.recipe.id)
        fixed = request_of(fix.recipe, fix.source, settings, trusted=False)
        requests[fix] = {"broken": broken, "reference": reference, "fixed": fixed}
    made = runs.replays("known edits", _all(requests))
    for wanted in requests.values():
        wanted.update(further_requests(wanted, {role: made[request] for role, request in wanted.items()}))
    made = runs.replays("checks of known edits", _all(requests))
    for fix, wanted in requests.items():
        replays = {role: made[request] for role, request in wanted.items()}
        evidence = own_evidence(
            fix.recipe, fix.source, replays["broken"], replays["reference"], replays["fixed"]
        )
        if "fixed checks" in replays:
            evidence = replace(evidence, checks=(replays["fixed checks"], replays["reference checks"]))
        yield fix, judge_fix(evidence)


def _all(requests: Mapping[KnownFix, Mapping[Role, Request]]) -> list[Request]:
    return [request for wanted in requests.values() for request in wanted.values()]
