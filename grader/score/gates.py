"""Points need insight: take from a submission what it can earn without having understood anything.

A script that reads both logs and guesses a cause can fill in every field of a report and hand in two runs that repeat.
The gates see to it that this stays far from a pass: `rubric.toml` holds them, `Gates` says what each one does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from grader.score.reproducibility import FIX_FIRST
from grader.score.verdict import Criterion, Gate, Gates, RubricItem
from harness.recipes.recipe import HEALTHY, Recipe

JudgedItems = Mapping[Criterion, tuple[RubricItem, ...]]

# What a run of an edit earns that fixes nothing, and what a diagnosis earns whose cause is wrong: nothing.
_FIXED_RUN = ("reproducibility.fixed_log", "reproducibility.fixed_checkpoint", "diagnostics.fixed_complete")
_OF_THE_CAUSE = ("explanation.where", "explanation.first_wrong", "explanation.ruled_out")
_CAUSE, _FIX, _RULED_OUT = "explanation.cause", "fix.correct", "explanation.ruled_out"
# One of two causes opens a gate.
_HALF = 0.5


def with_gates(judged: JudgedItems, gates: Gates) -> JudgedItems:
    """Return the checks, without the points that the gates take from them."""
    checks = {f"{name}.{check.id}": check for name, found in judged.items() for check in found}
    closed: dict[str, tuple[str, str]] = {}
    if gates.fixed_run and checks[_FIX].points == 0:
        reason = "The edit fixes nothing, so the run with it earns nothing."
        closed |= dict.fromkeys(_FIXED_RUN, (reason, FIX_FIRST))
    if gates.wrong_cause and checks[_CAUSE].points == 0:
        reason = "The diagnosis does not name the cause, so this says nothing about it."
        closed |= dict.fromkeys(_OF_THE_CAUSE, (reason, "Find the cause first."))
    return {
        name: tuple(_close_check(check, *closed.get(f"{name}.{check.id}", ("", ""))) for check in found)
        for name, found in judged.items()
    }


def _close_check(check: RubricItem, reason: str, remedy: str) -> RubricItem:
    """Return a check without its points; one that earns nothing by itself keeps its reason."""
    if not reason or check.points == 0:
        return check
    return replace(check, outcome="failed", points=0.0, reason=reason, remedy=remedy)


def limits_of(recipe: Recipe, gates: Gates) -> Iterator[Gate]:
    """Yield what bounds the total of a submission of this recipe."""
    if not recipe.is_healthy:
        why = "Neither the cause nor the fix is right."
        yield from _limit("no_insight", gates.no_insight, {_CAUSE: _HALF, _FIX: 1.0}, why)
        return
    why = f"Nothing is broken, and the diagnosis does not say {HEALTHY}."
    yield from _limit("healthy_blamed", gates.healthy_blamed, {_CAUSE: 1.0}, why)
    why = "The diagnosis says healthy, and does not rule out causes of four areas by facts."
    yield from _limit("healthy_unproved", gates.healthy_unproved, {_RULED_OUT: 1.0}, why)


def _limit(id: str, most: float | bool, opens: dict[str, float], why: str) -> Iterator[Gate]:
    if most is not False:
        yield Gate(id=id, most=float(most), opens=opens, why=why)
