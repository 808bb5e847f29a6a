"""Judge the fix: is the cause gone or only the symptom, and is the edit small.

A fix is correct if its run equals the reference fix's to the byte. Otherwise the trusted evaluator must find its
weights healthy, its log must show no symptom, the checks that the break trips must be sound, and the edit must be
plain. Accuracy alone proves nothing: clipping or a smaller learning rate brings several broken runs to healthy
accuracy.
"""

from collections.abc import Sequence
from functools import lru_cache

from grader.replay.request import recipe_of
from grader.score.belief import doubt, same_as_reference, same_bytes
from grader.score.evidence import Evidence
from grader.score.exhibits import Measurement
from grader.score.known_edits import load_variants
from grader.score.measured import checks, evaluations, has_reference, symptoms
from grader.score.minimality import judge_minimality
from grader.score.verdict import Check, full, lost, open_check
from grader.syntax.edit_size import changed_areas
from grader.syntax.program import Unparsable
from harness.data import CLASS_NAMES

CORRECT, MINIMAL = 12.0, 8.0
MASKED = 4.0
_CORRECT = ("correct", "The cause is gone, not only the symptom", CORRECT)
_MINIMAL = ("minimal", "No more was changed than the cause takes", MINIMAL)
_REMEDY = "Find what causes the symptom, and fix that; make verify shows both runs side by side."
# A network that guesses is right in one of so many classes; one that has learnt is right at least twice as often.
_TIMES_CHANCE = 2


def judge_fix(evidence: Evidence) -> tuple[Check, ...]:
    """Return the two checks of the criterion; only a correct fix can be minimal."""
    correct = _judge_correct(evidence)
    if correct.outcome == "could not judge":
        return correct, open_check(
            *_MINIMAL, "Only a correct fix gets these points, and that is not decided yet."
        )
    if correct.outcome == "failed":
        return correct, lost(*_MINIMAL, "Only a correct fix gets these points.", "Fix the cause first.")
    return correct, _judge_minimal(evidence.recipe.id, evidence.source)


@lru_cache(maxsize=256)
def _judge_minimal(recipe_id: str, source: str) -> Check:
    recipe = recipe_of(recipe_id)
    broken = recipe.broken_source()
    workarounds = [item.source(broken) for item in load_variants(recipe_id) if item.verdict == "alternative"]
    return judge_minimality(broken, source, recipe.healthy_source(), maximum=MINIMAL, workarounds=workarounds)


def _judge_correct(evidence: Evidence) -> Check:
    fixed, broken = evidence.fixed, evidence.broken
    if fixed.status == "XX":
        return _open(f"Your experiment could not be replayed, through no fault of yours: {fixed.message}")
    if not has_reference(evidence):
        return _open(f"The reference fix could not be run under your settings: {evidence.reference.message}")
    if fixed.status != "OK":
        return _lost(f"Your experiment did not come to its end ({fixed.status}): {fixed.message}")
    if same_as_reference(evidence):
        if not same_bytes(fixed, broken):
            return full(*_CORRECT, "Log and checkpoint are those of the reference fix, byte for byte.")
        return _open(
            "Under the settings of these runs the broken experiment and the reference fix give the same bytes, so"
            " yours prove nothing. The instructor decides."
        )
    if same_bytes(fixed, broken):
        return _lost("Your run is the broken run, byte for byte: nothing was fixed.")
    if bad_symptoms := _bad(symptoms(evidence)):
        return _lost(f"The symptom is still there. {_figure(bad_symptoms[0])}.")
    return _judge_without_symptom(evidence, _bad(checks(evidence)), _bad(evaluations(evidence)))


def _judge_without_symptom(
    evidence: Evidence, bad_checks: Sequence[Measurement], bad_evaluations: Sequence[Measurement]
) -> Check:
    """Judge a run whose log shows no symptom, by what is not sound in it."""
    if (verdict := _nothing_to_mask(evidence, bad_checks)) is not None:
        return verdict
    if bad_checks and bad_evaluations:
        return _lost(
            f"The symptom is gone, the cause is not ({_figure(bad_checks[0])}), and the network is not healthy"
            f" ({_figure(bad_evaluations[0])})."
        )
    if bad_checks:
        return _masked(
            evidence,
            f"The symptom is masked: it is gone, but the cause is not: {_figure(bad_checks[0])}.",
        )
    if bad_evaluations:
        if _is_unknown_network(evidence):
            return _open(
                "The symptom is gone and the mechanism is sound, but build_model makes another network than the"
                " recipe's own, which gave no answers that the trusted evaluator could judge"
                f" ({_figure(bad_evaluations[0])}). The instructor decides."
            )
        reason = f"The symptom is gone, but the network is not healthy: {_figure(bad_evaluations[0])}."
        return _masked(evidence, reason)
    if why := doubt(evidence):
        return _open(
            "The figures are those of a correct fix, but the experiment's own process measured some of them, and"
            f" {why}. The instructor decides."
        )
    return full(
        *_CORRECT, "The trusted evaluator finds it healthy, no symptom is left, and the mechanism is sound."
    )


def _nothing_to_mask(evidence: Evidence, bad_checks: Sequence[Measurement]) -> Check | None:
    """Judge a run without a symptom if our own broken run has none either; return None if it has one.

    Settings that the student chose, such as a batch of one, can hide the failure.
    """
    broken = evidence.broken
    if broken.status != "OK" or _bad(symptoms(evidence, broken)):
        return None
    nothing = "Under the settings of these runs the broken experiment shows no symptom"
    if bad_checks:
        return _lost(f"{nothing} either, and the cause is still there: {_figure(bad_checks[0])}.")
    if not _bad(checks(evidence, broken)):
        return _open(f"{nothing} and trips no check, so yours proves nothing. The instructor decides.")
    return None


def _masked(evidence: Evidence, reason: str) -> Check:
    """Give the points of a masked cause, if the network has learnt and the code could not make up its log."""
    if why := doubt(evidence):
        return _open(f"{reason} But its own process wrote that log, and {why}. The instructor decides.")
    if not _has_learnt(evidence):
        return _lost(f"{reason} It has learnt nothing that a guess does not know.")
    return lost(*_CORRECT, reason, _REMEDY, points=MASKED)


def _has_learnt(evidence: Evidence) -> bool:
    """Return whether the trusted evaluator finds the weights clearly better than a guess."""
    evaluation = evidence.fixed.evaluation
    if evaluation is None or evaluation.heldout is None:
        return False
    accuracy, loss = evaluation.heldout.accuracy, evaluation.heldout.loss
    if accuracy is None:  # the targets are no classes
        return isinstance(loss, int | float)
    chance = 1 / len(CLASS_NAMES[evidence.settings.dataset])
    return isinstance(accuracy, int | float) and accuracy >= _TIMES_CHANCE * chance


def _is_unknown_network(evidence: Evidence) -> bool:
    """Return whether the experiment builds a network of its own, and gave no answers to judge it by."""
    evaluation, recipe = evidence.fixed.evaluation, evidence.recipe
    if evaluation is not None and evaluation.own_network and not evaluation.problem:
        return False
    try:
        ours = (recipe.broken_source(), recipe.healthy_source())
        return all("model" in changed_areas(source, evidence.source) for source in ours)
    except Unparsable:
        return False


def _bad(found: Sequence[Measurement]) -> list[Measurement]:
    return [item for item in found if not item.good]


def _lost(reason: str) -> Check:
    return lost(*_CORRECT, reason, _REMEDY)


def _open(reason: str) -> Check:
    return open_check(*_CORRECT, reason)


def _figure(item: Measurement) -> str:
    value = f"{item.value:.4g}" if isinstance(item.value, float) else item.value
    return f"{item.name}: {value}, wanted {item.wanted}"
