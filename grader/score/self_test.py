"""Test a recipe before scoring its submissions: the reference fix must get 100, and the broken program 0 for `fix`.

If this test fails, the grader cannot grade the recipe correctly on this machine, and does not judge its submissions.
`reference_report` writes a report that earns all points.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from grader.intake.submission import Claim
from grader.replay.replay import Replay
from grader.replay.request import Request, check_request, trusted_requests
from grader.score.behaviour import break_requests
from grader.score.evidence import Evidence
from grader.score.explanation import places_of_causes
from grader.score.measurements import load_band, measurements
from grader.score.rubric import Weights
from grader.score.scoring import score_evidence
from grader.score.verdict import total_of
from grader.syntax.plain_edit import plain_edit
from harness.behaviour.compare import Behaviour
from harness.behaviour.sound import aspects_of_break
from harness.checks import load_check
from harness.checks.core.outcomes import mechanisms_of, outcomes_of, rival_outcome, suggests, trips_of
from harness.errors import UserError
from harness.recipes.recipe import HEALTHY, SOLUTIONS, Recipe
from harness.run.settings import RunSettings
from harness.run.signals import place_of
from harness.submission.log_values import LogValues, first_departure, load_causes, log_values
from harness.submission.report import AREAS, RIVALS

SignalPlace = tuple[str, int]  # a signal, and a step or an epoch
_PREFERRED = ("val_accuracy", "val_loss", "loss")
_RUNS_OF_SELF_TEST = ("The broken run", "The reference run", "The repeated reference run", "The checks")


def self_test_requests(recipe: Recipe) -> tuple[Request, ...]:
    """Return the replays that a self-test needs, in the order of this list.

    They are the broken run, the reference fix, the reference fix again (this time run like a student's experiment), the
    checks on the reference fix, and the behaviour of the reference fix and of each program with only one break.
    """
    broken, reference = trusted_requests(recipe)
    repeated = replace(reference, trusted=False, repetition=1)
    return broken, reference, repeated, check_request(reference), *break_requests(reference).values()


def self_test_problem(recipe: Recipe, replays: Sequence[Replay], weights: Weights) -> str:
    """Return a sentence with the first problem in the self-test of a recipe, or "".

    replays: the replays in the order of `self_test_requests`. The third replay repeats the reference fix like a
    student's experiment, so that the test compares two different runs.
    """
    broken, reference, repeated, made, *behaviours = replays
    names = [*_RUNS_OF_SELF_TEST, *("A behaviour" for _ in behaviours)]
    for what, replay in zip(names, replays, strict=True):
        if replay.status != "OK":
            return f"{what} of {recipe.id} failed on this machine ({replay.message}). Run grader doctor to see why."
    solution = f"The reference solution of {recipe.id}"
    report = reference_report(recipe, broken.log, reference.log)
    perfect = own_evidence(recipe, recipe.healthy_source(), broken, reference, repeated, report)
    perfect = replace(perfect, claims={**perfect.claims, "fixed": _claim(reference)}, checks=(made, made))
    criteria = score_evidence(perfect, weights)
    if (total := total_of(criteria)) != 100:
        checks = ((name, check) for name, score in criteria.items() for check in score.checks)
        lost = next(f"{name}.{check.id}: {check.reason}" for name, check in checks if check.points != check.max)
        return f"{solution} got {total}, not 100 ({lost})."
    outcomes = {result.check: result.outcome for result in made.checks}
    for name in mechanisms_of(recipe):
        shown = name.replace("_", "-")
        if not (outcome := outcomes.get(name)):
            return f"The check {shown} could not run on {recipe.id} on this machine."
        if not load_check(name).outcome(outcome).sound:
            return f"{solution} fails the check {shown} on this machine."
    # A fix with equal bytes gets all points without any measurement. So look at the measurements separately.
    for item in measurements(perfect):
        if not item.good:
            return f"{solution} fails on this machine: {item.name} is {item.value}, but should be {item.wanted}."
    heldout = None if reference.evaluation is None else reference.evaluation.heldout
    band = load_band(recipe.experiment, recipe.dataset)
    if heldout is None or not band.is_plausible(heldout):
        found = None if heldout is None else band.figure(heldout)
        low, high = band.reference
        metric = "accuracy" if band.accuracy_below is not None else "loss"
        measured = f"On our machine the {metric} was {low:g} to {high:g}, depending on the seed"
        return f"{solution} has the held-out {metric} {found} on this machine. {measured}."
    if problem := _behaviour_problem(recipe, [one.behaviour or {} for one in behaviours]):
        return problem
    if recipe.is_healthy:
        return ""
    untouched = own_evidence(recipe, recipe.broken_source(), broken, reference, broken, report)
    fix = score_evidence(untouched, weights)["fix"].points
    return "" if fix == 0 else f"The untouched experiment of {recipe.id} got {fix} points for its fix, not 0."


def _behaviour_problem(recipe: Recipe, behaviours: Sequence[Behaviour]) -> str:
    """Return a sentence with the first problem in the behaviour of a reference fix and of each single break, or "".

    A break without symptoms, such as graphs that stay in memory, may change nothing that a function returns, if a check
    finds it: this check then decides about a fix.
    """
    reference, *broken = behaviours
    if failed := next((aspect for aspect, figures in reference.items() if "raises" in figures), ""):
        return f"On this machine, the {failed} cannot be measured in the reference solution of {recipe.id}."
    is_shown = not recipe.symptoms and trips_of(recipe)
    if not is_shown and not all(aspects_of_break(one, reference) for one in broken):
        return f"The break of {recipe.id} does not change the behaviour of any function on this machine."
    return ""


def own_evidence(
    recipe: Recipe, source: str, broken: Replay, reference: Replay, fixed: Replay, report: str | None = None
) -> Evidence:
    """Return the evidence of an honest submission with this experiment, under the recipe's own settings."""
    return Evidence(
        recipe=recipe,
        settings=RunSettings(seed=recipe.seed, dataset=recipe.dataset),
        claims={"broken": _claim(broken), "fixed": _claim(fixed)},
        source=source,
        report=report,
        broken=broken,
        fixed=fixed,
        reference=reference,
        suspicions=plain_edit(recipe.broken_source(), source),
    )


def _claim(replay: Replay) -> Claim:
    return Claim(replay.log.encode(), replay.checkpoint_sha256)


def reference_report(recipe: Recipe, broken_log: str, fixed_log: str, solutions: Path = SOLUTIONS) -> str:
    """Return a complete `report.md` about these two logs.

    The report earns all points if `fixed_log` is the log of the reference fix. With the log of another fix, the report
    is still true. But the value that it gives as the first sign of the fault may be a side effect of that fix.
    """
    broken, fixed = log_values(broken_log), log_values(fixed_log)
    sign = first_departure(broken, fixed) or ("loss", 0)
    cited = _value(broken, *sign)
    diagnosis, where = _diagnosis(recipe, cited if first_departure(broken, fixed) else "", solutions)
    lines = islice(_list_rivals(recipe, solutions), AREAS if recipe.is_healthy else RIVALS)
    rivals = "".join(f"  - {{{line}}}\n" for line in lines) or "  []\n"
    recovered = _find_recovery(broken, fixed) or ("loss", 0)
    matter = (
        f"---\ndiagnosis:\n{diagnosis}"
        f"ruled_out:\n{rivals}"
        f"evidence:\n  - {{run: broken, {cited}}}\n  - {{run: fixed, {_value(fixed, *recovered)}}}\n---\n"
    )
    return matter + _text(recipe, where, broken, sign, fixed, recovered)


def _diagnosis(recipe: Recipe, first_wrong: str, solutions: Path) -> tuple[str, str]:
    """Return the entries of the diagnosis, and the function that the first entry names.

    first_wrong: the first wrong value of the log, as an entry of the report; "" if no value is wrong.
    """
    if recipe.is_healthy:
        return f"  - cause: {HEALTHY}\n", "no function"
    if not first_wrong:
        check, outcome = next(iter((trips_of(recipe, solutions) or {"loss_form": "agrees"}).items()))
        first_wrong = f"check: {check}, outcome: {outcome}"
    source, lines, places = recipe.broken_source(), [], []
    for cause, names in places_of_causes(recipe).items():
        places.append(next((name for name in sorted(names) if f"def {name}(" in source), min(names)))
        lines.append(f"  - cause: {cause}\n    where: {places[-1]}\n    first_wrong: {{{first_wrong}}}\n")
    return "".join(lines), places[0]


def _text(
    recipe: Recipe, where: str, broken: LogValues, sign: SignalPlace, fixed: LogValues, recovered: SignalPlace
) -> str:
    known, place = sign
    kind = place_of(known)
    signal, at = recovered
    record = json.dumps({kind: place, known: broken.of(known)[place]})
    return f"""
# Symptom

The broken run differs from a healthy run: `{known}` is {broken.of(known)[place]:.6g} at {kind} {place}.

```
{record}
```

# Root cause

In `{where}`: {recipe.cause}.

# Fix

I corrected the line in `{where}`, and changed nothing else.

# Verification

In the fixed run `{signal}` is {fixed.of(signal)[at]:.6g} at {place_of(signal)} {at}.
"""


def _value(log: LogValues, signal: str, place: int) -> str:
    return f"signal: {signal}, {place_of(signal)}: {place}, value: {log.of(signal)[place]:.6g}"


def _list_rivals(recipe: Recipe, solutions: Path) -> Iterator[str]:
    """Yield a line for each wrong cause that the symptoms suggest, but that the outcome of a check contradicts.

    If nothing is broken, yield one line for each area.
    """
    found, areas = outcomes_of(recipe, solutions), set[str]()
    for name, cause in sorted(load_causes().items()):
        if name in (*recipe.causes, HEALTHY) or (recipe.is_healthy and cause.area in areas):
            continue
        with suppress(UserError):  # a recipe that was never measured
            # Only a check that finds the fault `name` or the fault of this recipe can show the difference.
            for check in {**trips_of(name, solutions), **trips_of(recipe, solutions)}:
                if check in found and rival_outcome(name, check, found[check]) and suggests(recipe, name):
                    areas.add(cause.area)
                    yield f"cause: {name}, check: {check}, outcome: {found[check]}"
                    break


def _find_recovery(broken: LogValues, fixed: LogValues) -> SignalPlace | None:
    """Return a signal, and the last step or epoch at which this signal differs between the two runs, or None."""
    for signal in (*_PREFERRED, *fixed.names()):
        if places := list(fixed.departures(signal, broken)):
            return signal, places[-1]
    return None
