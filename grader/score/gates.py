"""Apply the gates: remove the points that a submission can earn without understanding the fault.

A script that reads both logs and guesses a cause can fill in every field of a report and hand in two reproducible runs.
The gates keep the total of such a submission low. `rubric.toml` switches the gates on and off, and the class `Gates`
describes each gate.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from grader.score.reproducibility import FIX_FIRST
from grader.score.rubric import Criterion, Gates
from grader.score.verdict import Gate, RubricItem
from harness.recipes.recipe import HEALTHY, Recipe

JudgedItems = Mapping[Criterion, tuple[RubricItem, ...]]

# These items earn nothing if the edit fixes nothing.
_FIXED_RUN = ("reproducibility.fixed_log", "reproducibility.fixed_checkpoint", "diagnostics.fixed_complete")
# These items earn nothing if the diagnosis names the wrong cause.
_OF_THE_CAUSE = ("explanation.where", "explanation.first_wrong", "explanation.ruled_out")
_CAUSE, _FIX, _RULED_OUT = "explanation.cause", "fix.correct", "explanation.ruled_out"
# Half of the points are enough for the gate. If there are several causes, so are the points for one of them.
_HALF = 0.5


def with_gates(judged: JudgedItems, gates: Gates) -> JudgedItems:
    """Return the rubric items without the points that the gates remove."""
    checks = {f"{name}.{check.id}": check for name, found in judged.items() for check in found}
    closed: dict[str, tuple[str, str]] = {}
    if gates.fixed_run and checks[_FIX].points == 0:
        reason = "Your edit does not fix the fault, so the fixed run earns no points."
        closed |= dict.fromkeys(_FIXED_RUN, (reason, FIX_FIRST))
    if gates.wrong_cause and checks[_CAUSE].points == 0:
        reason = "This item earns points only if the diagnosis names the cause, and your diagnosis does not name it."
        closed |= dict.fromkeys(_OF_THE_CAUSE, (reason, "Find the cause first."))
    return {
        name: tuple(_close_check(check, *closed.get(f"{name}.{check.id}", ("", ""))) for check in found)
        for name, found in judged.items()
    }


def _close_check(check: RubricItem, reason: str, remedy: str) -> RubricItem:
    """Return the item with 0 points and this reason. An item that already has 0 points keeps its reason."""
    if not reason or check.points == 0:
        return check
    return replace(check, outcome="failed", points=0.0, reason=reason, remedy=remedy)


def limits_of(recipe: Recipe, gates: Gates) -> Iterator[Gate]:
    """Yield the gates that limit the total of a submission of this recipe."""
    if not recipe.is_healthy:
        why = "Neither the cause nor the fix is correct."
        yield from _limit("no_insight", gates.no_insight, {_CAUSE: min(_HALF, 1 / len(recipe.causes)), _FIX: 1.0}, why)
        return
    why = f"Nothing is broken, but the diagnosis does not say that the cause is {HEALTHY}."
    yield from _limit("healthy_blamed", gates.healthy_blamed, {_CAUSE: 1.0}, why)
    why = f"The diagnosis says {HEALTHY}, but the report does not rule out causes from four areas with facts."
    yield from _limit("healthy_unproved", gates.healthy_unproved, {_RULED_OUT: 1.0}, why)


def _limit(id: str, most: float | bool, opens: dict[str, float], why: str) -> Iterator[Gate]:
    if most is not False:
        yield Gate(id=id, most=float(most), opens=opens, why=why)
