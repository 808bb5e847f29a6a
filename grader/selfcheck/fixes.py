"""Judge the known fixes of recipes as the grader does, and compare the points with the verdicts in `variants.toml`."""

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

# For each verdict, the points (least, most) that a fix must get for `correct`, and for `minimal`.
EXPECTED: Mapping[Verdict, tuple[tuple[float, float], tuple[float, float]]] = {
    "full": ((CORRECT, CORRECT), (6, MINIMAL)),
    "alternative": ((CORRECT, CORRECT), (0, MINIMAL)),
    "overreach": ((CORRECT, CORRECT), (0, MINIMAL - 2.5)),
    # A sound edit (a harmless change) may disable a feature that a fix must keep.
    "sound": ((MASKED, CORRECT), (0, MINIMAL)),
    "masking": ((0, 4), (0, 0)),
    "wrong": ((0, MASKED), (0, 0)),
    "half": ((CORRECT / 2, CORRECT / 2), (0, 0)),
}


def _points_for(fix: KnownFix) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the range of points for the items `correct` and `minimal`. A half fix leaves one of several causes."""
    correct, minimal = EXPECTED[fix.verdict]
    if fix.verdict == "half":
        points = CORRECT * (1 - 1 / len(fix.recipe.causes))
        correct = (points, points)
    return correct, minimal


def problem_of(fix: KnownFix, checks: Sequence[RubricItem]) -> str:
    """Return a sentence if a known fix got other points than `EXPECTED` allows, otherwise ""."""
    for check, (low, high) in zip(checks, _points_for(fix), strict=True):
        # The grader may ask the instructor to decide about a different network or a different repair.
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
    """Return {fix: sentence if its points or the result of `make verify` are wrong, otherwise ""}.

    For correct variants, for both ends of a range and for sound edits (harmless changes), the checks are run as well.
    The comparison of behaviours accepts such fixes in any case, because `variants.toml` declares them correct.
    """
    found = {}
    for fix, replays in replay_fixes(fixes, runs, prove=True):
        checks = judge_known(fix, replays)
        found[fix] = problem_of(fix, checks) or verify_problem(fix, replays, checks[0])
    return found


def judge_fixes(fixes: Sequence[KnownFix], runs: Runs) -> Iterator[tuple[KnownFix, Sequence[RubricItem]]]:
    """Replay the fixes, and yield (fix, its rubric items `correct` and `minimal`)."""
    for fix, replays in replay_fixes(fixes, runs):
        yield fix, judge_known(fix, replays)


def replay_fixes(
    fixes: Sequence[KnownFix], runs: Runs, *, prove: bool = False
) -> Iterator[tuple[KnownFix, Mapping[Role, Replay]]]:
    """Replay the fixes with the settings of their recipes. Yield (fix, the replays that are needed to judge it).

    prove: whether to run the checks on correct fixes and on sound edits even if the behaviour already decides.
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
    """Return the rubric items `correct` and `minimal` of a fix."""
    evidence = own_evidence(fix.recipe, fix.source, replays["broken"], replays["reference"], replays["fixed"])
    comparison = comparison_of(replays)
    evidence = replace(evidence, comparison=comparison)
    # The checks know only common losses, so they say nothing about an unusual loss in `variants.toml`.
    is_another_loss = comparison is not None and comparison.is_right and comparison.other_loss
    if "fixed checks" in replays and not is_another_loss:
        evidence = replace(evidence, checks=(replays["fixed checks"], replays["reference checks"]))
    return judge_fix(evidence)


class _Replayed:
    """The measurements of a fix that `make verify` would make, taken from the replays of the fix."""

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
        # After a wrong fix of a hidden exercise, `judge` asks for checks that were not replayed.
        replay = self._replays.get("fixed checks")
        made = {one.check: one.outcome for one in replay.checks if not one.problem} if replay else {}
        return {name: made[name] for name in names if name in made}


def verify_problem(fix: KnownFix, replays: Mapping[Role, Replay], correct: RubricItem) -> str:
    """Return a sentence if `make verify` and the grader disagree about a fix, otherwise "".

    A fix about which the instructor must decide is not compared.
    """
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
    return (
        f"{fix.recipe.id} {fix.id} ({fix.verdict}): {said}, but the grader gives {correct.points:g}: {correct.reason}"
    )


def _all(requests: Mapping[KnownFix, Mapping[Role, Request]]) -> list[Request]:
    return [request for wanted in requests.values() for request in wanted.values()]
