"""The figures that decide about a fix: symptoms in the log, checks, and what the trusted evaluator finds."""

from typing import Any

from grader.replay.replay import Evaluation, Replay
from grader.score.bands import load_band
from grader.score.belief import ACCURACY_APART
from grader.score.evidence import Evidence
from grader.score.exhibits import Measurement
from grader.score.solutions import mechanisms_of
from harness.checks import load_check
from harness.run.metrics_log import epoch_records, to_strict
from harness.symptoms import judge_symptom, reduce_values, signal_values

# The log's last validation loss and the evaluator's, on the same images, differ by rounding.
_LOSS_APART = 0.01


def measurements(evidence: Evidence) -> tuple[Measurement, ...]:
    """Return every figure that decides about the fix: evaluator, symptoms, checks. Empty without a replay."""
    if evidence.fixed.status != "OK" or not has_reference(evidence):
        return ()
    return (*evaluations(evidence), *symptoms(evidence), *checks(evidence))


def has_reference(evidence: Evidence) -> bool:
    """Return whether the reference fix was run and evaluated under the student's settings."""
    evaluation = evidence.reference.evaluation
    return evaluation is not None and evaluation.heldout is not None


def symptoms(evidence: Evidence, replay: Replay | None = None) -> list[Measurement]:
    """Judge the symptoms in the log of the fixed run, or of another replay."""
    found = []
    records, reference = (replay or evidence.fixed).records(), evidence.reference.records()
    for symptom in evidence.recipe.on(evidence.settings.dataset).symptoms:
        result = judge_symptom(records, symptom)
        # With other epochs or batches than the recipe's the reference fix may show it too.
        good = not result.present or judge_symptom(reference, symptom).present
        bounds = {"above": symptom.above, "below": symptom.below}
        wanted = " and ".join(f"{side} {bound:g}" for side, bound in bounds.items() if bound is not None)
        found.append(_measured(f"symptom: {symptom.says}", result.value, f"not {wanted}", good))
    return found


def checks(evidence: Evidence, replay: Replay | None = None) -> list[Measurement]:
    """Demand that every mechanism check that the break trips is sound in the fixed run, or in another."""
    replay = replay or evidence.fixed
    outcomes = {result.check: result.outcome for result in replay.checks}
    found = []
    for name, tripped in mechanisms_of(evidence.recipe.id).items():
        check, outcome = load_check(name), outcomes.get(name)
        sound = [one.id for one in check.outcomes if one.sound]
        found.append(
            _measured(f"check {name.replace('_', '-')}", outcome, " or ".join(sound), outcome in sound)
        )
        limit = check.outcome(tripped).in_log
        # The check sees only the first steps.
        if limit is not None and (
            values := [item for _, item in signal_values(replay.records(), limit.signal)]
        ):
            largest = reduce_values(values, "max")
            what, wanted = f"the largest {limit.signal} in the log", f"below {limit.below:g}"
            found.append(_measured(what, largest, wanted, largest < limit.below))
    return found


def evaluations(evidence: Evidence) -> list[Measurement]:
    """Compare the evaluator's held-out figure with the band, and its validation figure with the log's.

    Call it only if `has_reference`.
    """
    band = load_band(evidence.recipe.experiment, evidence.settings.dataset)
    fixed, reference = evidence.fixed.evaluation, evidence.reference.evaluation
    assert reference is not None
    assert reference.heldout is not None
    own = "of your own network " if fixed is not None and fixed.own_network else ""
    what = "loss" if band.accuracy_below is None else "accuracy"
    name, wanted = f"held-out {what} {own}by the trusted evaluator", band.wanted(reference.heldout)
    if fixed is None or fixed.heldout is None:
        problem = fixed.problem if fixed is not None else "no weights"
        name = f"the weights do not fit the recipe's own network ({problem}); {name}"
        return [_measured(name, None, wanted, False)]
    healthy = band.holds(fixed.heldout, reference.heldout)
    return [_measured(name, band.figure(fixed.heldout), wanted, healthy), *_claimed(evidence, fixed)]


def _claimed(evidence: Evidence, evaluation: Evaluation) -> list[Measurement]:
    """Compare the log's last validation with the evaluator's figure on the same images."""
    epochs, own = epoch_records(evidence.fixed.records()), evaluation.validation
    if not epochs or own is None:
        return []
    by_loss = own.accuracy is None
    claimed, found = (
        epochs[-1].get("val_loss" if by_loss else "val_accuracy"),
        own.loss if by_loss else own.accuracy,
    )
    wanted, good = "a number", False
    if isinstance(found, int | float):
        wanted = f"the evaluator's {found:.4g} on the same images"
        apart = _LOSS_APART * abs(found) if by_loss else ACCURACY_APART
        good = isinstance(claimed, int | float) and abs(claimed - found) <= apart
    return [_measured("the log's last validation", claimed, wanted, good)]


def _measured(name: str, value: Any, wanted: str, good: bool) -> Measurement:
    return Measurement(name=name, value=to_strict(value), wanted=wanted, good=good)
