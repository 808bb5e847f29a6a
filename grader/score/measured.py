"""The figures that decide about a fix: symptoms in the log, checks, and what the trusted evaluator finds."""

from grader.replay.replay import Replay
from grader.score.bands import load_band
from grader.score.belief import ACCURACY_APART
from grader.score.evidence import Evidence
from grader.score.exhibits import Measurement
from grader.score.solutions import mechanisms_of
from harness.checks import Limit, load_check
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
    recipe = evidence.recipe.on(evidence.settings.dataset)
    records, reference = (replay or evidence.fixed).records(), evidence.reference.records()
    for symptom in recipe.symptoms:
        result = judge_symptom(records, symptom)
        # With other epochs or batches than the recipe's the reference fix may show it too.
        excused = judge_symptom(reference, symptom).present
        bounds = [f"above {symptom.above:g}"] if symptom.above is not None else []
        bounds += [f"below {symptom.below:g}"] if symptom.below is not None else []
        value = None if result.value is None else to_strict(float(result.value))
        found.append(
            Measurement(
                name=f"symptom: {symptom.says}",
                value=value,
                wanted=f"not {' and '.join(bounds)}",
                good=not result.present or excused,
            )
        )
    return found


def checks(evidence: Evidence, replay: Replay | None = None) -> list[Measurement]:
    """Demand that every mechanism check that the break trips is sound in the fixed run, or in another."""
    replay = replay or evidence.fixed
    outcomes = {result.check: result.outcome for result in replay.checks}
    found = []
    for name, tripped in mechanisms_of(evidence.recipe.id).items():
        check = load_check(name)
        outcome = outcomes.get(name)
        sound = [one.id for one in check.outcomes if one.sound]
        found.append(
            Measurement(
                name=f"check {name.replace('_', '-')}",
                value=outcome,
                wanted=" or ".join(sound),
                good=outcome in sound,
            )
        )
        limit = check.outcome(tripped).in_log
        if limit is not None:
            found += _in_the_log(limit, replay)
    return found


def _in_the_log(limit: Limit, replay: Replay) -> list[Measurement]:
    """Compare a signal with its bound over the whole run; the check sees only the first steps."""
    values = [value for _, value in signal_values(replay.records(), limit.signal)]
    if not values:
        return []
    largest = reduce_values(values, "max")
    return [
        Measurement(
            name=f"the largest {limit.signal} in the log",
            value=to_strict(largest),
            wanted=f"below {limit.below:g}",
            good=largest < limit.below,
        )
    ]


def evaluations(evidence: Evidence) -> list[Measurement]:
    """Compare the evaluator's held-out figure with the band, and its validation figure with the log's.

    Call it only if `has_reference`.
    """
    band = load_band(evidence.recipe.experiment, evidence.settings.dataset)
    fixed, reference = evidence.fixed.evaluation, evidence.reference.evaluation
    what = "accuracy" if band.accuracy_below is not None else "loss"
    own = fixed is not None and fixed.own_network
    name = f"held-out {what} {'of your own network ' if own else ''}by the trusted evaluator"
    assert reference is not None
    assert reference.heldout is not None
    wanted = band.wanted(reference.heldout)
    if fixed is None or fixed.heldout is None:
        problem = fixed.problem if fixed is not None else "no weights"
        name = f"the weights do not fit the recipe's own network ({problem}); {name}"
        return [Measurement(name=name, value=None, wanted=wanted, good=False)]
    healthy = band.holds(fixed.heldout, reference.heldout)
    found = [Measurement(name=name, value=band.figure(fixed.heldout), wanted=wanted, good=healthy)]
    return [*found, *_claimed(evidence)]


def _claimed(evidence: Evidence) -> list[Measurement]:
    """Compare the log's last validation with the evaluator's figure on the same images."""
    epochs, evaluation = epoch_records(evidence.fixed.records()), evidence.fixed.evaluation
    if not epochs or evaluation is None or evaluation.validation is None:
        return []
    own = evaluation.validation
    claimed: object = epochs[-1].get("val_loss" if own.accuracy is None else "val_accuracy")
    found = own.loss if own.accuracy is None else own.accuracy
    good = False
    if isinstance(claimed, int | float) and isinstance(found, int | float):
        apart = _LOSS_APART * abs(found) if own.accuracy is None else ACCURACY_APART
        good = abs(claimed - found) <= apart
    return [
        Measurement(
            name="the log's last validation",
            value=to_strict(claimed),
            wanted=f"the evaluator's {found:.4g} on the same images"
            if isinstance(found, float)
            else "a number",
            good=good,
        )
    ]
