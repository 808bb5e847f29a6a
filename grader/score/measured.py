"""The figures that decide about a fix: symptoms in the log, probes, and what the trusted evaluator finds."""

from grader.replay.replay import Replay
from grader.score.bands import load_band
from grader.score.belief import ACCURACY_APART
from grader.score.evidence import Evidence
from grader.score.exhibits import Measurement
from harness.recipe import Probe
from harness.run.metrics_log import epoch_records, to_strict
from harness.symptoms import judge_symptom, reduce_values, signal_values

# What a log says of the last validation, and what the evaluator finds on the same images, differ by rounding.
_LOSS_APART = 0.01
# What a probe measures in the first steps, and a log holds of every step.
_LOGGED = {"learning_rate": ("lr", "learning rate"), "stale_gradient": ("stale_grad_ratio", "stale gradient")}


def measurements(evidence: Evidence) -> tuple[Measurement, ...]:
    """Return every figure that decides about the fix: evaluator, symptoms, probes. Empty without a replay."""
    if evidence.fixed.status != "OK" or not has_reference(evidence):
        return ()
    return (*evaluations(evidence), *symptoms(evidence), *probes(evidence))


def has_reference(evidence: Evidence) -> bool:
    """Say whether the reference fix was run and evaluated under the student's settings."""
    evaluation = evidence.reference.evaluation
    return evaluation is not None and evaluation.heldout is not None


def symptoms(evidence: Evidence, replay: Replay | None = None) -> list[Measurement]:
    """Look for the symptoms in the log of the fixed run, or of another."""
    found = []
    recipe = evidence.recipe.on(evidence.settings.dataset)
    records, reference = (replay or evidence.fixed).records(), evidence.reference.records()
    for symptom in recipe.symptoms:
        result = judge_symptom(records, symptom)
        # With other epochs or batches than the thresholds are for, the reference fix may show it, too.
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


def probes(evidence: Evidence, replay: Replay | None = None) -> list[Measurement]:
    """Hold what the probes measured of the fixed run, or of another, against their bounds."""
    replay = replay or evidence.fixed
    measured = {figure.kind: figure.value for figure in replay.probes}
    found = []
    for probe in evidence.recipe.probes:
        value = measured.get(probe.kind)
        good = isinstance(value, int | float) and value < probe.below
        found.append(
            Measurement(
                name=f"probe: {probe.kind.replace('_', ' ')}",
                value=value,
                wanted=f"below {probe.below:g}",
                good=good,
            )
        )
        found += _in_the_log(probe, replay)
    return found


def _in_the_log(probe: Probe, replay: Replay) -> list[Measurement]:
    """Hold the same quantity against the same bound over the whole run, of which a probe sees the first steps."""
    if probe.kind not in _LOGGED:
        return []
    signal, name = _LOGGED[probe.kind]
    values = [value for _, value in signal_values(replay.records(), signal)]
    if not values:
        return []
    largest = reduce_values(values, "max")
    return [
        Measurement(
            name=f"the largest {name} in the log",
            value=to_strict(largest),
            wanted=f"below {probe.below:g}",
            good=largest < probe.below,
        )
    ]


def evaluations(evidence: Evidence) -> list[Measurement]:
    """Hold what the trusted evaluator finds about the weights against the band, and the log's last validation.

    Only where `has_reference`.
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
    """Hold what the log says of the last validation against the evaluator's figure on the same images."""
    epochs, evaluation = epoch_records(evidence.fixed.records()), evidence.fixed.evaluation
    if not epochs or evaluation is None or evaluation.validation is None:
        return []
    own = evaluation.validation
    told: object = epochs[-1].get("val_loss" if own.accuracy is None else "val_accuracy")
    found = own.loss if own.accuracy is None else own.accuracy
    good = False
    if isinstance(told, int | float) and isinstance(found, int | float):
        apart = _LOSS_APART * abs(found) if own.accuracy is None else ACCURACY_APART
        good = abs(told - found) <= apart
    return [
        Measurement(
            name="the log's last validation",
            value=to_strict(told),
            wanted=f"the evaluator's {found:.4g} on the same images"
            if isinstance(found, float)
            else "a number",
            good=good,
        )
    ]
