"""Judge the known fixes of recipes as the grader does, and hold their verdicts against `variants.toml`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from grader.replay.replay import Replay
from grader.replay.request import Request, Role, own_settings
from grader.score.behaviour import OWN_BEHAVIOUR, comparison_of, sound_programs
from grader.score.fix import CORRECT, MASKED, MINIMAL, checks_requests, further_requests, judge_fix
from grader.score.self_test import own_evidence
from grader.score.verdict import RubricItem
from grader.selfcheck.runs import Runs, request_of
from harness.behaviour.compare import Behaviour
from harness.behaviour.sound import SoundPrograms
from harness.recipes.known_edits import KnownFix, Verdict
from harness.student.goal import judge

# Points for a correct and for a minimal fix that each verdict must get: at least, at most.
EXPECTED: Mapping[Verdict, tuple[tuple[float, float], tuple[float, float]]] = {
    "full": ((CORRECT, CORRECT), (6, MINIMAL)),
    "alternative": ((CORRECT, CORRECT), (0, MINIMAL)),
    "overreach": ((CORRECT, CORRECT), (0, MINIMAL - 2.5)),
    # A sound edit may switch a feature off that a fix must keep.
    "sound": ((MASKED, CORRECT), (0, MINIMAL)),
    "masking": ((0, 4), (0, 0)),
    "wrong": ((0, MASKED), (0, 0)),
    "half": ((CORRECT / 2, CORRECT / 2), (0, 0)),
}


def problem_of(fix: KnownFix, checks: Sequence[RubricItem]) -> str:
    """Return what is wrong with the points that a known fix got, or ""."""
    for check, (low, high) in zip(checks, EXPECTED[fix.verdict], strict=True):
        # Another network, sound or not, may wait for the instructor, and so may another change of what was broken.
        if check.points is None and fix.verdict in ("sound", "masking", "overreach"):
            continue
        if check.points is None or not low <= check.points <= high:
            points = "open" if check.points is None else f"{check.points:g}"
            return (
                f"{fix.recipe.id} {fix.id} ({fix.verdict}): {points} for {check.id}, not {low:g} to {high:g}:"
                f" {check.reason}"
            )
    return ""


def fix_problems(fixes: Sequence[KnownFix], runs: Runs) -> Mapping[KnownFix, str]:
    """Return what is wrong with the points that each fix gets, or with what `make verify` says of it, or "".

    The checks are made of right variants, of both ends of a range and of sound edits, too: the comparison takes these
    for right because `variants.toml` says so.
    """
    found = {}
    for fix, replays in replay_fixes(fixes, runs, prove=True):
        checks = judge_known(fix, replays)
        found[fix] = problem_of(fix, checks) or verify_problem(fix, replays, checks[0])
    return found


def judge_fixes(fixes: Sequence[KnownFix], runs: Runs) -> Iterator[tuple[KnownFix, Sequence[RubricItem]]]:
    """Replay the fixes, and yield each with its checks `correct` and `minimal`."""
    for fix, replays in replay_fixes(fixes, runs):
        yield fix, judge_known(fix, replays)


def replay_fixes(
    fixes: Sequence[KnownFix], runs: Runs, *, prove: bool = False
) -> Iterator[tuple[KnownFix, Mapping[Role, Replay]]]:
    """Replay the fixes at their recipe's own settings, and yield each with all that its judgement needs.

    With `prove`, the checks of right and sound ones are made in any case.
    """
    requests: dict[KnownFix, dict[Role, Request]] = {}
    for fix in fixes:
        settings = own_settings(fix.recipe, fix.recipe.dataset)
        broken, reference = (
            request_of(fix.recipe, source, settings)
            for source in (fix.recipe.broken_source(), fix.recipe.healthy_source())
        )
        fixed = request_of(fix.recipe, fix.source, settings, trusted=False)
        requests[fix] = {"broken": broken, "reference": reference, "fixed": fixed}
        if prove and fix.verdict not in ("masking", "wrong", "half"):
            requests[fix] |= checks_requests(requests[fix])
    made = dict(runs.replays("known edits", _all(requests)))
    open_ones = dict(requests)
    while open_ones:
        following = {
            fix: further_requests(wanted, {role: made[request] for role, request in wanted.items()})
            for fix, wanted in open_ones.items()
        }
        open_ones = {fix: requests[fix] for fix, further in following.items() if further}
        for fix, further in following.items():
            requests[fix].update(further)
        made |= runs.replays("behaviour and checks of known edits", _all(following))
    for fix, wanted in requests.items():
        yield fix, {role: made[request] for role, request in wanted.items()}


def judge_known(fix: KnownFix, replays: Mapping[Role, Replay]) -> Sequence[RubricItem]:
    """Return the checks `correct` and `minimal` of a fix."""
    evidence = own_evidence(fix.recipe, fix.source, replays["broken"], replays["reference"], replays["fixed"])
    comparison = comparison_of(replays)
    evidence = replace(evidence, comparison=comparison)
    # The checks know usual losses only, so they prove nothing about another one that `variants.toml` has.
    is_another_loss = comparison is not None and comparison.is_right and comparison.other_loss
    if "fixed checks" in replays and not is_another_loss:
        evidence = replace(evidence, checks=(replays["fixed checks"], replays["reference checks"]))
    return judge_fix(evidence)


class _Replayed:
    """What `make verify` would measure of a fix, as the replays have it."""

    def __init__(self, replays: Mapping[Role, Replay]) -> None:
        self._replays = replays

    @property
    def programs(self) -> SoundPrograms | None:
        programs = sound_programs(self._replays)
        return None if programs is None else programs.shorten()

    def behaviour(self) -> Behaviour:
        behaviour = self._replays[OWN_BEHAVIOUR].behaviour
        assert behaviour is not None
        return behaviour

    def outcomes(self, names: Sequence[str]) -> Mapping[str, str]:
        made = {one.check: one.outcome for one in self._replays["fixed checks"].checks if not one.problem}
        return {name: made[name] for name in names if name in made}


def verify_problem(fix: KnownFix, replays: Mapping[Role, Replay], correct: RubricItem) -> str:
    """Return where `make verify` and the grader disagree about a fix, or ""; neither judges one that waits."""
    fixed = replays["fixed"]
    own = replays.get(OWN_BEHAVIOUR)
    if correct.points is None or fixed.status != "OK" or own is None or own.behaviour is None:
        return ""
    settings = own_settings(fix.recipe, fix.recipe.dataset)
    criteria = judge(fix.recipe, settings, fixed.records(), _Replayed(replays))
    says = all(one.reached for one in criteria)
    if says == (correct.points == CORRECT):
        return ""
    missed = next((f": {one.says}: {one.found}" for one in criteria if not one.reached), "")
    said = f"make verify says {'Fixed' if says else 'not fixed'}{missed}"
    return f"{fix.recipe.id} {fix.id} ({fix.verdict}): {said}, the grader gives {correct.points:g}: {correct.reason}"


def _all(requests: Mapping[KnownFix, Mapping[Role, Request]]) -> list[Request]:
    return [request for wanted in requests.values() for request in wanted.values()]
