"""The measurements that decide about a fix: symptoms in the log, checks, and the metrics of the trusted evaluator.

Functions with a parameter `evidence` expect `Evidence.judged`. A fix counts as healthy if it is not much worse than the
reference fix on held-out data. `bands.toml` has the allowed difference (the band) for each experiment.
"""

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from grader.replay.replay import CheckResult, Evaluation, JsonNumber, Replay, SplitFigures
from grader.score.attachments import Measurement
from grader.score.evidence import Evidence
from harness.behaviour.compare import Difference
from harness.checks import load_check
from harness.checks.core.outcomes import mechanisms_of
from harness.data import CLASS_NAMES
from harness.formats.toml_file import StrictModel, read_record
from harness.recipes.recipe import Recipe
from harness.run.metrics_log import epoch_records, to_strict
from harness.run.symptoms import judge_symptom, reduce_values, signal_values

# The log and the evaluator validate on the same examples, so their results differ only by rounding. The largest known
# difference is 0.007: a fix that standardizes with other examples changes the prediction for 1 of the 144 visits.
_ACCURACY_APART, _LOSS_APART = 0.01, 0.01
# A network has learnt if its accuracy is at least `g + (1 - g) / 9`, where `g` is the accuracy of guessing. With ten
# classes, guessing has the accuracy 0.1, so the network needs 0.2.
_ABOVE_CHANCE = 1 / 9
# A check that reads a property from code or files, and the check that proves the property by running the program. A
# script may derive the position of its schedule from the epoch: then its checkpoint needs no state of a schedule.
_PROOFS = {"saving": "resume"}
BANDS = Path(__file__).with_name("bands.toml")


def measurements(evidence: Evidence) -> tuple[Measurement, ...]:
    """Return all measurements of a fix: evaluator, symptoms, behaviour and checks; () if a replay is missing."""
    evidence = evidence.judged
    if evidence.fixed.status != "OK" or not has_reference(evidence):
        return ()
    shown = symptoms(evidence.recipe, evidence.settings.dataset, evidence.fixed, evidence.reference)
    return (*evaluations(evidence), *shown, *compare_behaviour(evidence), *checks(evidence))


def has_reference(evidence: Evidence) -> bool:
    """Return whether the reference fix was run and evaluated with the student's settings."""
    evaluation = evidence.reference.evaluation
    return evaluation is not None and evaluation.heldout is not None


def has_learnt(replay: Replay, dataset: str) -> bool:
    """Return whether the weights are clearly better than guessing, according to the trusted evaluator."""
    if replay.evaluation is None or replay.evaluation.heldout is None:
        return False
    accuracy, loss = replay.evaluation.heldout.accuracy, replay.evaluation.heldout.loss
    if accuracy is None:  # a regression
        return isinstance(loss, int | float)
    names = CLASS_NAMES[dataset]
    chance = 1 / len(names) if names else 0.0  # the files of a script do not say how many classes there are
    return isinstance(accuracy, int | float) and accuracy >= chance + _ABOVE_CHANCE * (1 - chance)


def symptoms(recipe: Recipe, dataset: str, run: Replay, reference: Replay) -> list[Measurement]:
    """Look for each symptom of the recipe in the log of a run, and return the measurements."""
    found = []
    for symptom in recipe.on(dataset).symptoms:
        result = judge_symptom(run.records(), symptom)
        # If the student chose other epochs or another batch size, the reference fix may show the symptom, too.
        good = not result.present or judge_symptom(reference.records(), symptom).present
        bounds = {"above": symptom.above, "below": symptom.below}
        wanted = " and ".join(f"{side} {bound:g}" for side, bound in bounds.items() if bound is not None)
        found.append(_make_measurement(f"symptom: {symptom.says}", result.value, f"not {wanted}", good))
    return found


def compare_behaviour(evidence: Evidence) -> list[Measurement]:
    """Return measurements of the program's behaviour: first in the functions of each break, then in others."""
    comparison, found = evidence.comparison, []
    for cause in comparison.causes if comparison else ():
        if cause.difference is None:
            found.append(_make_measurement("behaviour where the fault was", "correct", "as in a correct program", True))
        else:
            found.append(_differs(cause.difference, "behaviour where the fault was", good=False))
    for other in comparison.other if comparison else ():
        found.append(_differs(other, "behaviour elsewhere", good=True))
    for feature in comparison.lost if comparison else ():
        found.append(_make_measurement(f"feature: {feature}", "has no effect", "has an effect", False))
    return found


def _differs(difference: Difference, where: str, *, good: bool) -> Measurement:
    name = f"{where}: {difference.aspect} ({difference.figure})"
    wanted = f"{difference.other:.4g}" if isinstance(difference.other, float) else str(difference.other)
    return _make_measurement(name, difference.own if difference.own is not None else "nothing", wanted, good)


def checks(evidence: Evidence) -> list[Measurement]:
    """Return a measurement of every check that passes for the reference fix. The student's fix must pass it, too.

    Checks that find the break come first. Such a check may find nothing to judge: without mixed precision, for example,
    nothing can underflow. Then its measurement is bad, unless the check finds nothing to judge in the reference fix
    either. If no checks were run, because the bytes decided, return an empty list. A check that could not run is left
    out, and `unmade` reports it.
    """
    if evidence.checks is None:
        return []
    own, reference = ({result.check: result for result in replay.checks} for replay in evidence.checks)
    tripped, found = mechanisms_of(evidence.recipe), []
    for name in sorted(own, key=lambda name: name not in tripped):
        check, outcome = load_check(name), own[name].outcome
        sound = [one for one in check.every_outcome if one.sound]
        if own[name].problem or not check.outcome(reference[name].outcome).sound or _is_proved(name, own):
            continue
        judged = [one.id for one in sound if one.judged or one.id == reference[name].outcome]
        wanted = judged if name in tripped else [one.id for one in sound]
        found.append(
            _make_measurement(f"check {name.replace('_', '-')}", outcome, " or ".join(wanted), outcome in wanted)
        )
        if name in tripped and (limit := check.outcome(tripped[name]).in_log) is not None:
            # The check sees only the first steps, so look at the whole log.
            values = [item for _, item in signal_values(evidence.fixed.records(), limit.signal)]
            if values:
                largest = reduce_values(values, "max")
                what, bound = f"the largest {limit.signal} in the log", f"below {limit.below:g}"
                found.append(_make_measurement(what, largest, bound, largest < limit.below))
    return found


def _is_proved(name: str, own: Mapping[str, CheckResult]) -> bool:
    """Return whether another check proves on a program the property that a check only reads from its code or files."""
    proof = own.get(_PROOFS.get(name, ""))
    if proof is None or proof.problem:
        return False
    found = load_check(proof.check).outcome(proof.outcome)
    return found.sound and found.judged


def unmade(evidence: Evidence) -> str:
    """Return a clause that says which check could not run on the experiment and why, or ""."""
    for result in evidence.checks[0].checks if evidence.checks else ():
        if result.problem:
            return f"the check {result.check.replace('_', '-')} could not run: {result.problem}"
    return ""


def evaluations(evidence: Evidence) -> list[Measurement]:
    """Evaluate the weights of the run: return the held-out metric and the validation metric, with the wanted values.

    Call this function only if `has_reference` returns True.
    """
    band = load_band(evidence.recipe.experiment, evidence.settings.dataset)
    fixed, reference = evidence.fixed.evaluation, evidence.reference.evaluation
    assert reference is not None
    assert reference.heldout is not None
    what = "loss" if band.accuracy_below is None else "accuracy"
    name, wanted = f"held-out {what} by the trusted evaluator", band.describe(reference.heldout)
    if fixed is None or fixed.heldout is None:
        problem = fixed.problem if fixed is not None else "no weights"
        name = f"{name}: the weights do not fit the recipe's network ({problem})"
        return [_make_measurement(name, None, wanted, False)]
    healthy = band.holds(fixed.heldout, reference.heldout)
    figures = [_make_measurement(name, band.figure(fixed.heldout), wanted, healthy), *_compare_claims(evidence, fixed)]
    return [*figures, *_compare_served_models(evidence, band)]


def _compare_served_models(evidence: Evidence, band: "Band") -> list[Measurement]:
    """Return a measurement of the served model, compared with the served model of the reference fix."""
    logs = (evidence.fixed.records(), evidence.reference.records())
    own, reference = (epoch_records(log)[-1].get("val_accuracy_served") for log in logs)
    if reference is None or band.accuracy_below is None:
        return []
    least = reference - band.accuracy_below
    good = isinstance(own, int | float) and own >= least
    return [_make_measurement("accuracy of the served model at the end of the run", own, f"at least {least:.4g}", good)]


def _compare_claims(evidence: Evidence, evaluation: Evaluation) -> list[Measurement]:
    """Compare the last validation metric in the log with the metric that the evaluator finds on the same examples."""
    epochs, own = epoch_records(evidence.fixed.records()), evaluation.validation
    if not epochs or own is None:
        return []
    by_loss = own.accuracy is None
    claimed, found = (epochs[-1].get("val_loss" if by_loss else "val_accuracy"), own.loss if by_loss else own.accuracy)
    wanted, good = "a number", False
    if isinstance(found, int | float):
        wanted = f"{found:.4g}, as the evaluator finds on the same examples"
        apart = _LOSS_APART * abs(found) if by_loss else _ACCURACY_APART
        good = isinstance(claimed, int | float) and abs(claimed - found) <= apart
    return [_make_measurement("the last validation metric in the log", claimed, wanted, good)]


def _make_measurement(name: str, value: Any, wanted: str, good: bool) -> Measurement:
    return Measurement(name=name, value=to_strict(value), wanted=wanted, good=good)


class Band(StrictModel):
    """How much worse than the reference fix a healthy fix may be, for one experiment on one data set.

    The accuracy may be lower by `accuracy_below`, or the loss may be higher by the factor `loss_times`. A loss that can
    be negative, such as the negative log-likelihood of a density, may be higher by the difference `loss_above`.
    `reference` has the lowest and the highest metric of the reference fix, measured with several seeds.
    """

    experiment: str
    dataset: str
    accuracy_below: float | None = None
    loss_times: float | None = None
    loss_above: float | None = None
    reference: Annotated[tuple[float, float], Field(strict=False)]

    def holds(self, figures: SplitFigures, reference: SplitFigures) -> bool:
        """Return whether a fix is good enough compared with the reference fix; False for a non-finite metric."""
        return self._reaches(self.figure(figures), self.limit(self.figure(reference)))

    def is_plausible(self, reference: SplitFigures) -> bool:
        """Return whether the metric of the reference fix is in the range that we measured with several seeds."""
        worst = self.reference[0 if self.accuracy_below is not None else 1]
        return self._reaches(self.figure(reference), self.limit(worst))

    def describe(self, reference: SplitFigures) -> str:
        """Return the wanted metric in words, such as "at least 0.85"."""
        side = "at most" if self.accuracy_below is None else "at least"
        return f"{side} {self.limit(self.figure(reference)):.4g}"

    def figure(self, figures: SplitFigures) -> JsonNumber:
        """Return the metric that the band limits: the accuracy or the loss."""
        return figures.accuracy if self.accuracy_below is not None else figures.loss

    def limit(self, reference: JsonNumber) -> float:
        """Return the worst metric that a healthy fix may have if the reference fix has this one; NaN for no number."""
        value = float(reference) if isinstance(reference, int | float) else math.nan
        if self.accuracy_below is not None:
            return value - self.accuracy_below
        return value * (self.loss_times or 1.0) + (self.loss_above or 0.0)

    def _reaches(self, value: JsonNumber, limit: float) -> bool:
        if not isinstance(value, int | float):
            return False
        return value >= limit if self.accuracy_below is not None else value <= limit


class _Bands(StrictModel):
    format_version: Literal[1]
    bands: Annotated[tuple[Band, ...], Field(alias="band", strict=False)]


@cache
def load_bands(path: Path = BANDS) -> tuple[Band, ...]:
    """Return all bands from `bands.toml`."""
    return read_record(path, _Bands).bands


def load_band(experiment: str, dataset: str) -> Band:
    """Return the band of an experiment on a data set. Raises `LookupError` if no band was measured."""
    for band in load_bands():
        if (band.experiment, band.dataset) == (experiment, dataset):
            return band
    raise LookupError(f"no healthy band was measured for {experiment} on {dataset}: run grader selfcheck --write")
