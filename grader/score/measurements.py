"""The figures that decide about a fix: symptoms in the log, checks, and what the trusted evaluator finds.

Functions that take the evidence expect `Evidence.judged`. The healthy band says how far from the reference fix a sound
fix may end on held-out data (`bands.toml`, measured).
"""

import math
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from grader.replay.replay import Evaluation, JsonNumber, Replay, SplitFigures
from grader.score.evidence import Evidence
from grader.score.verdict import Measurement
from harness.behaviour.compare import Difference
from harness.checks import load_check
from harness.checks.core.outcomes import mechanisms_of
from harness.data import CLASS_NAMES
from harness.formats.toml_file import StrictModel, read_record
from harness.recipes.recipe import Recipe
from harness.run.metrics_log import epoch_records, to_strict
from harness.run.symptoms import judge_symptom, reduce_values, signal_values

# The log's last validation and the evaluator's, on the same examples, differ by rounding. A fix that standardizes by
# other examples than the reference fix changes the answer to one of the 144 visits, which is 0.007.
_ACCURACY_APART, _LOSS_APART = 0.01, 0.01
# Of what lies between a guess and certainty, one that has learnt is right in at least a ninth: twice the chance of ten
# classes.
_ABOVE_CHANCE = 1 / 9
BANDS = Path(__file__).with_name("bands.toml")


def measurements(evidence: Evidence) -> tuple[Measurement, ...]:
    """Return every figure that decides about the fix: evaluator, symptoms, checks. Empty without a replay."""
    evidence = evidence.judged
    if evidence.fixed.status != "OK" or not has_reference(evidence):
        return ()
    shown = symptoms(evidence.recipe, evidence.settings.dataset, evidence.fixed, evidence.reference)
    return (*evaluations(evidence), *shown, *compare_behaviour(evidence), *checks(evidence))


def has_reference(evidence: Evidence) -> bool:
    """Return whether the reference fix was run and evaluated under the student's settings."""
    evaluation = evidence.reference.evaluation
    return evaluation is not None and evaluation.heldout is not None


def has_learnt(replay: Replay, dataset: str) -> bool:
    """Return whether the trusted evaluator finds the weights clearly better than a guess."""
    if replay.evaluation is None or replay.evaluation.heldout is None:
        return False
    accuracy, loss = replay.evaluation.heldout.accuracy, replay.evaluation.heldout.loss
    if accuracy is None:  # the targets are no classes
        return isinstance(loss, int | float)
    chance = 1 / len(CLASS_NAMES[dataset])
    return isinstance(accuracy, int | float) and accuracy >= chance + _ABOVE_CHANCE * (1 - chance)


def symptoms(recipe: Recipe, dataset: str, run: Replay, reference: Replay) -> list[Measurement]:
    """Judge the symptoms in the log of a run."""
    found = []
    for symptom in recipe.on(dataset).symptoms:
        result = judge_symptom(run.records(), symptom)
        # With other epochs or batches than the recipe's the reference fix may show it too.
        good = not result.present or judge_symptom(reference.records(), symptom).present
        bounds = {"above": symptom.above, "below": symptom.below}
        wanted = " and ".join(f"{side} {bound:g}" for side, bound in bounds.items() if bound is not None)
        found.append(_make_measurement(f"symptom: {symptom.says}", result.value, f"not {wanted}", good))
    return found


def compare_behaviour(evidence: Evidence) -> list[Measurement]:
    """Say whether the program does what a right one does where each break acts, and in which figures it differs."""
    comparison, found = evidence.comparison, []
    for cause in comparison.causes if comparison else ():
        if cause.left is None:
            found.append(
                _make_measurement("behaviour where the fault was", "as in a right program", "that of a right one", True)
            )
        else:
            found.append(_differs(cause.left, "behaviour where the fault was", good=False))
    for other in comparison.other if comparison else ():
        found.append(_differs(other, "behaviour elsewhere", good=True))
    for feature in comparison.lost if comparison else ():
        found.append(_make_measurement(f"feature: {feature}", "does not act", "acts", False))
    return found


def _differs(difference: Difference, where: str, *, good: bool) -> Measurement:
    name = f"{where}: {difference.aspect} ({difference.figure})"
    wanted = f"{difference.other:.4g}" if isinstance(difference.other, float) else str(difference.other)
    return _make_measurement(name, difference.own if difference.own is not None else "nothing", wanted, good)


def checks(evidence: Evidence) -> list[Measurement]:
    """Demand that every check is sound that is sound for the reference fix; those that the break trips come first.

    For them an outcome will not do that judges nothing, unless the reference fix has it, too: without mixed precision,
    nothing underflows.
    Empty if the bytes decided and no checks were made; a check that the experiment did not let us make is left out
    (`unmade`).
    """
    if evidence.checks is None:
        return []
    own, reference = ({result.check: result for result in replay.checks} for replay in evidence.checks)
    tripped, found = mechanisms_of(evidence.recipe), []
    for name in sorted(own, key=lambda name: name not in tripped):
        check, outcome = load_check(name), own[name].outcome
        sound = [one for one in check.outcomes if one.sound]
        if own[name].problem or not check.outcome(reference[name].outcome).sound:
            continue
        judged = [one.id for one in sound if one.judged or one.id == reference[name].outcome]
        wanted = judged if name in tripped else [one.id for one in sound]
        found.append(
            _make_measurement(f"check {name.replace('_', '-')}", outcome, " or ".join(wanted), outcome in wanted)
        )
        if name in tripped and (limit := check.outcome(tripped[name]).in_log) is not None:
            # The check sees only the first steps.
            values = [item for _, item in signal_values(evidence.fixed.records(), limit.signal)]
            if values:
                largest = reduce_values(values, "max")
                what, bound = f"the largest {limit.signal} in the log", f"below {limit.below:g}"
                found.append(_make_measurement(what, largest, bound, largest < limit.below))
    return found


def unmade(evidence: Evidence) -> str:
    """Return the check that the experiment did not let us make, with the reason, as a clause, or ""."""
    for result in evidence.checks[0].checks if evidence.checks else ():
        if result.problem:
            return f"the check {result.check.replace('_', '-')} could not be made: {result.problem}"
    return ""


def evaluations(evidence: Evidence) -> list[Measurement]:
    """Compare the evaluator's held-out figure with the band, and its validation figure with the log's.

    Call it only if `has_reference`.
    """
    band = load_band(evidence.recipe.experiment, evidence.settings.dataset)
    fixed, reference = evidence.fixed.evaluation, evidence.reference.evaluation
    assert reference is not None
    assert reference.heldout is not None
    what = "loss" if band.accuracy_below is None else "accuracy"
    name, wanted = f"held-out {what} by the trusted evaluator", band.describe(reference.heldout)
    if fixed is None or fixed.heldout is None:
        problem = fixed.problem if fixed is not None else "no weights"
        name = f"the weights do not fit the recipe's own network ({problem}); {name}"
        return [_make_measurement(name, None, wanted, False)]
    healthy = band.holds(fixed.heldout, reference.heldout)
    figures = [_make_measurement(name, band.figure(fixed.heldout), wanted, healthy), *_compare_claims(evidence, fixed)]
    return [*figures, *_compare_served(evidence, band)]


def _compare_served(evidence: Evidence, band: "Band") -> list[Measurement]:
    """Compare what is served at the end of the run with what the reference fix serves, on the validation examples."""
    logs = (evidence.fixed.records(), evidence.reference.records())
    own, reference = (epoch_records(log)[-1].get("val_accuracy_served") for log in logs)
    if reference is None or band.accuracy_below is None:
        return []
    least = reference - band.accuracy_below
    good = isinstance(own, int | float) and own >= least
    return [_make_measurement("accuracy of what is served at the end", own, f"at least {least:.4g}", good)]


def _compare_claims(evidence: Evidence, evaluation: Evaluation) -> list[Measurement]:
    """Compare the log's last validation with the evaluator's figure on the same examples."""
    epochs, own = epoch_records(evidence.fixed.records()), evaluation.validation
    if not epochs or own is None:
        return []
    by_loss = own.accuracy is None
    claimed, found = (epochs[-1].get("val_loss" if by_loss else "val_accuracy"), own.loss if by_loss else own.accuracy)
    wanted, good = "a number", False
    if isinstance(found, int | float):
        wanted = f"the evaluator's {found:.4g} on the same examples"
        apart = _LOSS_APART * abs(found) if by_loss else _ACCURACY_APART
        good = isinstance(claimed, int | float) and abs(claimed - found) <= apart
    return [_make_measurement("the log's last validation", claimed, wanted, good)]


def _make_measurement(name: str, value: Any, wanted: str, good: bool) -> Measurement:
    return Measurement(name=name, value=to_strict(value), wanted=wanted, good=good)


class Band(StrictModel):
    """One healthy experiment on one data set: accuracy at most `accuracy_below`, or loss at most `loss_times`.

    `reference` is the lowest and the highest figure of the reference fix over seeds.
    """

    experiment: str
    dataset: str
    accuracy_below: float | None = None
    loss_times: float | None = None
    reference: Annotated[tuple[float, float], Field(strict=False)]

    def holds(self, figures: SplitFigures, reference: SplitFigures) -> bool:
        """Say whether figures lie within the band around the reference's; a non-finite one never does."""
        return self._reaches(self.figure(figures), self._limit(self.figure(reference)))

    def is_plausible(self, reference: SplitFigures) -> bool:
        """Say whether the reference fix itself ended where it does, whatever its seed."""
        worst = self.reference[0 if self.accuracy_below is not None else 1]
        return self._reaches(self.figure(reference), self._limit(worst))

    def describe(self, reference: SplitFigures) -> str:
        """Return the band in words."""
        side = "at most" if self.accuracy_below is None else "at least"
        return f"{side} {self._limit(self.figure(reference)):.4g}"

    def figure(self, figures: SplitFigures) -> JsonNumber:
        """Return the figure that the band is about."""
        return figures.accuracy if self.accuracy_below is not None else figures.loss

    def _limit(self, reference: JsonNumber) -> float:
        value = float(reference) if isinstance(reference, int | float) else math.nan
        if self.accuracy_below is not None:
            return value - self.accuracy_below
        return value * (self.loss_times or 1.0)

    def _reaches(self, value: JsonNumber, limit: float) -> bool:
        if not isinstance(value, int | float):
            return False
        return value >= limit if self.accuracy_below is not None else value <= limit


class _Bands(StrictModel):
    format_version: Literal[1]
    bands: Annotated[tuple[Band, ...], Field(alias="band", strict=False)]


@cache
def load_bands(path: Path = BANDS) -> tuple[Band, ...]:
    """Return all bands that were measured."""
    return read_record(path, _Bands).bands


def load_band(experiment: str, dataset: str) -> Band:
    """Return the band of an experiment on a data set. Raises `LookupError` if none was measured."""
    for band in load_bands():
        if (band.experiment, band.dataset) == (experiment, dataset):
            return band
    raise LookupError(f"no healthy band for {experiment} on {dataset}: grader selfcheck --write measures it")
