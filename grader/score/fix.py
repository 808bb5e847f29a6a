"""Judge the fix: is the cause gone or only the symptom, and is the edit small.

A fix is correct if its run equals the reference fix's to the byte. Otherwise the trusted evaluator must find its
weights healthy, its log must show no symptom, and the checks that the break trips must be sound. Accuracy alone proves
nothing: clipping or a smaller learning rate brings several broken runs to healthy accuracy.
"""

from collections.abc import Sequence
from functools import lru_cache

from grader.replay.request import recipe_of
from grader.score.belief import code_doubt, log_doubt, same_as_reference, same_bytes
from grader.score.evidence import Evidence
from grader.score.exhibits import Measurement
from grader.score.known_edits import load_variants
from grader.score.measured import checks, evaluations, has_reference, symptoms
from grader.score.minimality import judge_minimality
from grader.score.verdict import Check, full, lost, open_check
from grader.syntax.edit_size import changed_areas
from grader.syntax.parse import ProgramText, Unparsable

CORRECT, MINIMAL = 12.0, 8.0
MASKED = 4.0
_CORRECT = ("correct", "The cause is gone, not only the symptom", CORRECT)
_MINIMAL = ("minimal", "No more was changed than the cause takes", MINIMAL)
_REMEDY = "Find what causes the symptom, and fix that; make verify shows both runs side by side."


def judge_fix(evidence: Evidence) -> tuple[Check, ...]:
    """Return the two checks of the criterion; only a correct fix can be minimal."""
    correct = _judge_correct(evidence)
    if correct.outcome == "could not judge":
        return correct, open_check(
            *_MINIMAL, "Only a correct fix gets these points, and that is not decided yet."
        )
    if correct.outcome == "failed":
        reason = "Only a correct fix gets these points."
        return correct, lost(*_MINIMAL, reason, "Fix the cause first.")
    return correct, _judge_minimal(evidence.recipe.id, ProgramText.of(evidence.source))


@lru_cache(maxsize=256)
def _judge_minimal(recipe_id: str, program: ProgramText) -> Check:
    """Judge the size of an edit, once for all students with the same program."""
    recipe = recipe_of(recipe_id)
    broken, healthy = recipe.broken_source(), recipe.healthy_source()
    around = [
        variant.source(broken) for variant in load_variants(recipe_id) if variant.verdict == "alternative"
    ]
    return judge_minimality(recipe, broken, program.source, healthy, maximum=MINIMAL, ways_around=around)


def _judge_correct(evidence: Evidence) -> Check:
    fixed = evidence.fixed
    if fixed.status == "XX":
        reason = f"Your experiment could not be replayed, through no fault of yours: {fixed.message}"
        return open_check(*_CORRECT, reason)
    if not has_reference(evidence):
        reason = f"The reference fix could not be run under your settings: {evidence.reference.message}"
        return open_check(*_CORRECT, reason)
    if fixed.status != "OK":
        reason = f"Your experiment did not come to its end ({fixed.status}): {fixed.message}"
        return lost(*_CORRECT, reason, _REMEDY)
    if same_as_reference(evidence):
        return _judge_same(evidence)
    if same_bytes(fixed, evidence.broken):
        return lost(*_CORRECT, "Your run is the broken run, byte for byte: nothing was fixed.", _REMEDY)
    bad_symptoms = [item for item in symptoms(evidence) if not item.good]
    bad_checks = [item for item in checks(evidence) if not item.good]
    bad_evaluations = [item for item in evaluations(evidence) if not item.good]
    if bad_symptoms:
        reason = f"The symptom is still there. {_figure(bad_symptoms[0])}."
        return lost(*_CORRECT, reason, _REMEDY)
    if (verdict := _nothing_to_mask(evidence, bad_checks)) is not None:
        return verdict
    if bad_checks and bad_evaluations:
        reason = (
            f"The symptom is gone, the cause is not ({_figure(bad_checks[0])}), and the network is not healthy"
            f" ({_figure(bad_evaluations[0])})."
        )
        return lost(*_CORRECT, reason, _REMEDY)
    if bad_checks:
        reason = f"The symptom is masked: it is gone, but the cause is not: {_figure(bad_checks[0])}."
        return _masked(evidence, reason)
    if bad_evaluations and _other_network(evidence) and not _put_out_answers(evidence):
        reason = (
            "The symptom is gone and the mechanism is sound, but build_model makes another network than the recipe's"
            f" own, which gave no answers that the trusted evaluator could judge ({_figure(bad_evaluations[0])}). The"
            " instructor decides."
        )
        return open_check(*_CORRECT, reason)
    if bad_evaluations:
        reason = f"The symptom is gone, but the network is not healthy: {_figure(bad_evaluations[0])}."
        return _masked(evidence, reason)
    if evidence.suspicions:
        reason = (
            "The figures are those of a correct fix, but the experiment's own process measured some of them, and"
            f" {evidence.suspicions[0].message}. The instructor decides."
        )
        return open_check(*_CORRECT, reason)
    return full(
        *_CORRECT, "The trusted evaluator finds it healthy, no symptom is left, and the mechanism is sound."
    )


def _judge_same(evidence: Evidence) -> Check:
    """Judge a run with the same bytes as the reference fix's."""
    if same_bytes(evidence.fixed, evidence.broken):
        reason = (
            "Under the settings of these runs the broken experiment and the reference fix give the same bytes, so"
            " yours prove nothing. The instructor decides."
        )
        return open_check(*_CORRECT, reason)
    if doubt := code_doubt(evidence):
        reason = f"Log and checkpoint are those of the reference fix, but {doubt}. The instructor decides."
        return open_check(*_CORRECT, reason)
    return full(*_CORRECT, "Log and checkpoint are those of the reference fix, byte for byte.")


def _nothing_to_mask(evidence: Evidence, bad_checks: Sequence[Measurement]) -> Check | None:
    """Judge a run without a symptom if our own broken run has none either; return None if it has one.

    Settings that the student chose, such as a batch of one, can hide the failure.
    """
    broken = evidence.broken
    if broken.status != "OK" or not all(item.good for item in symptoms(evidence, broken)):
        return None
    nothing = "Under the settings of these runs the broken experiment shows no symptom"
    if bad_checks:
        reason = f"{nothing} either, and the cause is still there: {_figure(bad_checks[0])}."
        return lost(*_CORRECT, reason, _REMEDY)
    if all(item.good for item in checks(evidence, broken)):
        reason = f"{nothing} and trips no check, so yours proves nothing. The instructor decides."
        return open_check(*_CORRECT, reason)
    return None


def _masked(evidence: Evidence, reason: str) -> Check:
    """Give the points of a masked cause, unless the code could have made up its log."""
    doubt = log_doubt(evidence)
    if not doubt:
        return lost(*_CORRECT, reason, _REMEDY, points=MASKED)
    reason = f"{reason} But its own process wrote that log, and {doubt}. The instructor decides."
    return open_check(*_CORRECT, reason)


def _figure(item: Measurement) -> str:
    value = f"{item.value:.4g}" if isinstance(item.value, float) else item.value
    return f"{item.name}: {value}, wanted {item.wanted}"


def _put_out_answers(evidence: Evidence) -> bool:
    evaluation = evidence.fixed.evaluation
    return evaluation is not None and evaluation.own_network and not evaluation.problem


def _other_network(evidence: Evidence) -> bool:
    """Return whether the experiment builds another network than the broken and the healthy experiment."""
    try:
        return all(
            "model" in changed_areas(source, evidence.source)
            for source in (evidence.recipe.broken_source(), evidence.recipe.healthy_source())
        )
    except Unparsable:
        return False
