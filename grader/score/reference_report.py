"""Write the report that earns all points, from a recipe, what its break trips, and the logs of both runs."""

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from grader.score.solutions import SOLUTIONS, outcomes_of, trips_of
from grader.syntax.edit_size import functions_changed
from harness.errors import UserError
from harness.recipe import Recipe, load_recipe
from harness.submission.log_values import (
    LogValues,
    first_departure,
    load_causes,
    log_values,
    place_of,
)
from harness.submission.report import HEALTHY

_RIVALS = 2
Place = tuple[str, int]  # a signal, and a step or an epoch
_PREFERRED = ("val_accuracy", "val_loss", "loss")


def reference_report(recipe_id: str, broken_log: str, fixed_log: str, solutions: Path = SOLUTIONS) -> str:
    """Return a whole `report.md` about these two logs.

    It earns full marks if the fixed run is the reference fix's. With another fixed run it is as true, but may not tell
    the first sign of the fault from what this fix changes.
    """
    recipe = load_recipe(recipe_id)
    broken, fixed = log_values(broken_log), log_values(fixed_log)
    changed = sorted(functions_changed(recipe.healthy_source(), recipe.broken_source()))
    where = next((name for name in changed if f"def {name}(" in recipe.broken_source()), changed[0])
    first = first_departure(broken, fixed)
    sign = first or ("loss", 0)
    cited = _value(broken, *sign)
    first_wrong = cited
    if first is None:
        check, outcome = next(iter((trips_of(recipe_id, solutions) or {"loss_form": "agrees"}).items()))
        first_wrong = f"check: {check}, outcome: {outcome}"
    lines = islice(_ruled_out(recipe_id, solutions), _RIVALS)
    rivals = "".join(f"  - {{{line}}}\n" for line in lines) or "  []\n"
    recovered = _recovered(broken, fixed) or ("loss", 0)
    matter = (
        f"---\ndiagnosis:\n  - cause: {recipe_id}\n    where: {where}\n    first_wrong: {{{first_wrong}}}\n"
        f"ruled_out:\n{rivals}"
        f"evidence:\n  - {{run: broken, {cited}}}\n  - {{run: fixed, {_value(fixed, *recovered)}}}\n---\n"
    )
    return matter + _text(recipe, where, broken, sign, fixed, recovered)


def _text(
    recipe: Recipe, where: str, broken: LogValues, sign: Place, fixed: LogValues, recovered: Place
) -> str:
    known, place = sign
    kind = place_of(known)
    signal, at = recovered
    record = json.dumps({kind: place, known: broken.series[known][place]})
    return f"""
# Symptom

The broken run departs from a healthy one: `{known}` is {broken.series[known][place]:.6g} at {kind} {place}.

```
{record}
```

# Root cause

In `{where}`: {recipe.cause}.

# Fix

I put the line of `{where}` right, and changed nothing else.

# Verification

In the fixed run `{signal}` is {fixed.series[signal][at]:.6g} at {place_of(signal)} {at}.
"""


def _value(log: LogValues, signal: str, place: int) -> str:
    return f"signal: {signal}, {place_of(signal)}: {place}, value: {log.series[signal][place]:.6g}"


def _ruled_out(recipe_id: str, solutions: Path) -> Iterator[str]:
    """Yield one line for each other cause that the outcome of a check contradicts."""
    found = outcomes_of(recipe_id, solutions)
    for name in sorted(load_causes().keys() - {recipe_id, HEALTHY}):
        with suppress(UserError):  # a recipe that was never measured
            for check, outcome in trips_of(name, solutions).items():
                if found.get(check, outcome) != outcome:
                    yield f"cause: {name}, check: {check}, outcome: {found[check]}"
                    break


def _recovered(broken: LogValues, fixed: LogValues) -> Place | None:
    """Return a signal and the last place at which the fixed run departs from the broken one."""
    for signal in (*_PREFERRED, *fixed.series):
        if places := list(fixed.departures(signal, broken)):
            return signal, places[-1]
    return None
