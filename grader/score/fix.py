"""Judge the fix: whether it removes the cause and not only the symptom, and whether the edit is small.

A fix is correct if it passes three tests. First, every function that the break affects behaves as in the reference fix
or in another correct fix (`grader.score.behaviour`). Second, the log of the fixed run shows no symptom. Third, the
weights of the fixed run do well enough on held-out data, according to the trusted evaluator. If the edit also changes
code that was not broken, the fix must pass two more tests: every check that passes for the reference fix passes for
this fix as well, and every feature of the healthy program still works. If a function that the break affects behaves
differently than in all known correct fixes, the fix only masks the fault, or the instructor decides. A healthy accuracy
proves nothing: with gradient clipping or a smaller learning rate, several broken programs reach a healthy accuracy.

A correct fix is minimal if it changes few nodes of the syntax tree, and only in functions that the reference fix
changes. If the reference fix changes `r` nodes, an edit of up to `max(r + 16, 2 r)` nodes gets all points. For a larger
edit, the points are multiplied by this limit and divided by the number of changed nodes. We measured 90 correct fixes
in different styles. The reference fixes change 1 to 13 nodes. Nine in ten of the other fixes change at most 12 nodes
more than the reference fix. A fix that adds a helper function to clear the gradients changes 16 nodes more, and a fix
that writes the loss with `gather` changes 18 nodes more. If the edit changes one function or constant that the
reference fix leaves as it is, the points are halved. If it changes several of them, a quarter of the points remains.
New helper functions and new constants cost nothing here.
"""

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest

from grader.replay.replay import Replay
from grader.replay.request import OWN, Request, Role, check_request, own_settings
from grader.score.attachments import Measurement
from grader.score.behaviour import OWN_BEHAVIOUR, behaviour_requests, comparison_of, sound_requests
from grader.score.evidence import Evidence, reason_to_doubt, removes_a_cause, same_as_reference, same_bytes
from grader.score.measurements import checks, evaluations, has_learnt, has_reference, symptoms, unmade
from grader.score.verdict import RubricItem, full, lost, open_item
from grader.syntax.edit_size import changed_areas, edit_sizes, functions_changed, names_defined
from grader.syntax.program import Unparsable, parse_experiment, program_digest, tree_digest
from harness.behaviour.sound import BreakState, Comparison
from harness.checks.core.outcomes import mechanisms_of
from harness.recipes.recipe import Recipe, Symptom

CORRECT, MINIMAL = 12.0, 8.0
MASKED = 4.0
_CORRECT = ("correct", "The cause is gone, not only the symptom", CORRECT)
_MINIMAL = ("minimal", "The edit is small and changes only the faulty code", MINIMAL)
_MORE_NODES, _MORE_TIMES = 16, 2
_ONE_PLACE, _MORE_PLACES = 0.5, 0.25
_STEP = 0.5
_OF_LOSS = frozenset({"loss", "val_loss"})
_REMEDY = (
    "Fix the cause and change nothing else. The command make verify shows the broken and the fixed run side by side."
)


def judge_fix(evidence: Evidence) -> tuple[RubricItem, ...]:
    """Return the two rubric items of this criterion. Only a correct fix can get points for a small edit."""
    correct = _judge_correct(evidence.judged)
    if correct.outcome == "could not judge":
        reason = "Only a correct fix gets these points. The instructor has to decide first whether your fix is correct."
        return correct, open_item(*_MINIMAL, reason)
    if correct.outcome == "failed":
        return correct, lost(*_MINIMAL, "Only a correct fix gets these points.", "Fix the cause first.")
    recipe = evidence.recipe
    if recipe.is_healthy:
        return correct, _judge_untouched(evidence)
    return correct, judge_minimality(recipe.broken_source(), evidence.source, recipe.healthy_source())


def _judge_untouched(evidence: Evidence) -> RubricItem:
    """Judge the size of the edit if nothing was broken in the experiment: all points only for no change."""
    try:
        sizes = edit_sizes(evidence.recipe.broken_source(), evidence.source)
    except Unparsable as error:
        return open_item(*_MINIMAL, f"We could not compare your experiment with the original experiment: {error}.")
    if not sizes:
        return full(*_MINIMAL, "Nothing was broken, and you changed nothing that affects the training.")
    reason = f"Nothing was broken, but you changed {_describe_sizes(sizes, ' of the syntax tree')}."
    return lost(*_MINIMAL, reason, "If nothing is broken, hand in the experiment without any change.")


def further_requests(requests: Mapping[Role, Request], replays: Mapping[Role, Replay]) -> dict[Role, Request]:
    """Return the replays that are still needed to judge the fix; {} if the replays in `replays` are enough.

    A student may choose other settings than the recipe's. If the broken run and the reference fix do not differ clearly
    with these settings, the fix is judged with the recipe's settings. The behaviour of the fix is compared first with
    the reference fix, then with other correct programs. If this comparison does not decide whether the fix is correct,
    the checks are run.
    """
    recipe, dataset = requests["fixed"].recipe, requests["fixed"].settings.dataset
    broken, reference, fixed = (replays[role] for role in ("broken", "reference", "fixed"))
    if any(replay.status == "XX" for replay in (broken, reference, fixed)):
        return {}
    if not _differ_clearly(recipe, dataset, broken, reference):
        settings = own_settings(recipe, dataset)
        if requests["fixed"].settings != settings and OWN[0] not in replays:
            roles: tuple[Role, ...] = ("broken", "reference", "fixed")
            return {own: replace(requests[role], settings=settings) for own, role in zip(OWN, roles, strict=True)}
        if OWN[0] in replays:
            broken, reference, fixed = (replays[role] for role in OWN)
    if fixed.status != "OK" or reference.status != "OK" or _is_ours(requests["fixed"]):
        return {}
    bad = _bad_symptoms(recipe, dataset, fixed, reference)
    if len(recipe.causes) < 2 and any(symptom.signal not in _OF_LOSS for symptom in bad):
        return {}
    if OWN_BEHAVIOUR not in replays:
        return behaviour_requests(requests)
    comparison = comparison_of(replays)
    if comparison is None or comparison.is_right:
        return {}
    if wanted := {role: one for role, one in sound_requests(requests["reference"]).items() if role not in replays}:
        return wanted
    if _symptom_left(bad, comparison) or "fixed checks" in replays:
        return {}
    return checks_requests(requests)


def checks_requests(requests: Mapping[Role, Request]) -> dict[Role, Request]:
    """Return the requests to run the checks on the fix and on the reference fix."""
    return {"fixed checks": check_request(requests["fixed"]), "reference checks": check_request(requests["reference"])}


def _is_ours(request: Request) -> bool:
    """Return whether a student's program equals the broken program or the reference fix."""
    ours = (request.recipe.broken_source(), request.recipe.healthy_source())
    return any(request.tree == tree_digest(source) for source in ours)


def _bad_symptoms(recipe: Recipe, dataset: str, run: Replay, reference: Replay) -> list[Symptom]:
    """Return the symptoms that a run shows, but the reference fix does not show."""
    listed = recipe.on(dataset).symptoms
    shown = symptoms(recipe, dataset, run, reference)
    return [symptom for symptom, found in zip(listed, shown, strict=True) if not found.good]


def _symptom_left(bad: Sequence[Symptom], comparison: Comparison | None) -> Symptom | None:
    """Return the first symptom that counts against the fix, or None.

    If the fix uses another correct loss function, symptoms in the loss do not count, because the lowest possible loss
    may differ.
    """
    is_another = comparison is not None and comparison.other_loss and not comparison.open_causes
    return next((symptom for symptom in bad if not (is_another and symptom.signal in _OF_LOSS)), None)


def _differ_clearly(recipe: Recipe, dataset: str, broken: Replay, reference: Replay) -> bool:
    """Return whether the reference fix learns, and the broken run shows a symptom that it does not show."""
    if broken.status != "OK" or reference.status != "OK" or same_bytes(broken, reference):
        return False
    return has_learnt(reference, dataset) and bool(_bad(symptoms(recipe, dataset, broken, reference)))


def _judge_correct(evidence: Evidence) -> RubricItem:
    fixed, broken = evidence.fixed, evidence.broken
    if fixed.status == "XX":
        return _open(f"The grader could not replay your experiment, which is not your fault: {fixed.message}")
    if not has_reference(evidence):
        return _open(f"Our reference fix did not run with the settings that you chose: {evidence.reference.message}")
    if fixed.status != "OK":
        return _lost(f"Your experiment did not finish ({fixed.status}): {fixed.message}")
    comparison = evidence.comparison
    is_half = comparison is not None and 0 < len(comparison.open_causes) < len(comparison.causes)
    if program_digest(evidence.source) == program_digest(evidence.recipe.healthy_source()):
        return full(*_CORRECT, "Your program is the same as the reference fix.")
    if same_bytes(fixed, broken) and not evidence.recipe.is_healthy and not removes_a_cause(evidence):
        return _lost("Your fixed run equals the broken run byte for byte, so your edit fixes nothing.")
    if comparison is not None and is_half:
        return _judge_half(evidence, comparison)
    bad = _bad_symptoms(evidence.recipe, evidence.settings.dataset, fixed, evidence.reference)
    if symptom := _symptom_left(bad, comparison):
        return _lost(f"The symptom is still there: {symptom.says}.")
    if comparison is None:
        return _open("We could not measure what the functions of your program do. The instructor decides.")
    if comparison.is_right and same_as_reference(evidence) and not comparison.not_executed:
        return full(*_CORRECT, "Your log, your checkpoint and the behaviour of each function equal the reference fix.")
    for made in evidence.checks or ():
        if made.status != "OK":
            return _open(
                f"The checks on your experiment did not finish ({made.status}:"
                f" {made.message.rstrip('.')}). The instructor decides."
            )
    return _judge_without_symptom(evidence, _bad(checks(evidence)), _bad(evaluations(evidence)))


def _judge_without_symptom(
    evidence: Evidence, bad_checks: Sequence[Measurement], bad_evaluations: Sequence[Measurement]
) -> RubricItem:
    """Judge a fix whose log shows no symptom: use the checks, the behaviour of its functions, and its weights."""
    comparison = evidence.comparison
    assert comparison is not None
    if bad_checks:
        return _judge_unsound(evidence, comparison, bad_checks, bad_evaluations)
    for cause in comparison.open_causes:
        if why := _reason_for_masking(evidence, cause):
            return _masked_check(evidence, f"{why}: {cause.difference}.")
    if comparison.lost:
        lost_ones = ", ".join(comparison.lost)
        return _masked_check(evidence, f"The fix disables features of the experiment: {lost_ones}.")
    if comparison.newly_wrong:
        return _masked_check(
            evidence, f"The fix breaks something that was correct before: {comparison.newly_wrong[0]}."
        )
    if bad_evaluations:
        return _judge_unhealthy(evidence, comparison, bad_evaluations[0])
    if comparison.open_causes:
        return _open(
            "The log shows no symptom and every check passes. But in the code that was broken, your program differs"
            f" from a healthy program: {comparison.open_causes[0].difference}. The instructor decides."
        )
    if comparison.conditional is not None:
        return _open(
            "The log shows no symptom and every check passes. But in some states of the training, a training step gives"
            f" another result than in a healthy program: {comparison.conditional}. The instructor decides."
        )
    if why := reason_to_doubt(evidence) or unmade(evidence) or _not_measured(comparison):
        return _open(f"Your metrics look like a correct fix, but the instructor has to look at the code: {why}.")
    if comparison.is_right:
        return full(*_CORRECT, "Each function behaves as in a correct program, and the log shows no symptom.")
    return full(*_CORRECT, "The code that was broken behaves as in a healthy program, and every check passes.")


def _judge_unsound(
    evidence: Evidence,
    comparison: Comparison,
    bad_checks: Sequence[Measurement],
    bad_evaluations: Sequence[Measurement],
) -> RubricItem:
    """Judge a fix whose log shows no symptom, although a check finds a fault in the program."""
    figure = _figure(bad_checks[0])
    if bad_evaluations:
        return _lost(
            f"The symptom is gone, but the cause is still there ({figure}), and the network is not healthy"
            f" ({_figure(bad_evaluations[0])})."
        )
    silent = not evidence.recipe.on(evidence.settings.dataset).symptoms
    if silent and any(cause.as_before for cause in comparison.open_causes):
        # The log never showed this fault, so there was no symptom that the fix could hide.
        return _lost(f"The check for this fault still finds the fault: {figure}.")
    if _has_a_loss_of_its_own(evidence, comparison, bad_checks):
        return _open(
            "The symptom is gone. Your loss function differs from the loss of the reference fix, and a check that knows"
            f" only common loss functions rejects yours: {figure}. The instructor decides."
        )
    return _masked_check(evidence, f"The symptom is gone, but something is still wrong: {figure}.")


def _judge_unhealthy(evidence: Evidence, comparison: Comparison, bad: Measurement) -> RubricItem:
    """Judge a fix that passes all checks, although the trusted evaluator finds bad metrics for its weights."""
    if comparison.is_right and (comparison.other_data or comparison.other_network) and not reason_to_doubt(evidence):
        # The evaluator knows only the network and the data of the reference fix.
        return full(*_CORRECT, "Each function behaves as in a correct program. Another network or other data are fine.")
    learnt = has_learnt(evidence.fixed, evidence.settings.dataset)
    if comparison.is_right and comparison.other_loss and learnt and not reason_to_doubt(evidence):
        return full(*_CORRECT, "Each function behaves as in a correct program. Another loss function is fine.")
    if _is_unknown_network(evidence):
        return _open(
            "The symptom is gone and every check passes. But your build_model makes another network than the original"
            f" one, so the trusted evaluator cannot judge your weights ({_figure(bad)}). The instructor decides."
        )
    if comparison.other_data and not _changes_a_number(evidence):
        return _open(
            "The symptom is gone and every check passes. But your load_data prepares the data in another way than the"
            f" reference fix, so the trusted evaluator cannot judge your weights ({_figure(bad)}). The instructor"
            " decides."
        )
    return _masked_check(evidence, f"The symptom is gone, but the network is not healthy: {_figure(bad)}.")


def _has_a_loss_of_its_own(evidence: Evidence, comparison: Comparison, bad_checks: Sequence[Measurement]) -> bool:
    """Return whether a fix replaces a broken loss function with a loss function that the grader does not know.

    Return False if a check finds the same fault as before, or if a measurement shows that the fault is only masked.
    """
    tripped = {f"check {name.replace('_', '-')}": found for name, found in mechanisms_of(evidence.recipe).items()}
    replaced = [
        cause for cause in comparison.open_causes if cause.difference is not None and cause.difference.aspect == "loss"
    ]
    return (
        bool(replaced)
        and len(replaced) == len(comparison.open_causes)
        and not any(_reason_for_masking(evidence, cause) for cause in replaced)
        and not any(tripped.get(item.name) == item.value for item in bad_checks)
    )


def _reason_for_masking(evidence: Evidence, cause: BreakState) -> str:
    """Return the start of a sentence that says why the cause is still there although all checks pass, or ""."""
    if cause.doubtful:
        return ""
    if cause.is_exact:
        return "The code that was broken is still wrong"
    if cause.as_before:
        return "The fault still has the same effect"
    if cause.weaker:
        return "The fault is only masked: it has a weaker effect, but it is still there"
    return "Your edit changes only one number, and the new number is wrong, too" if _changes_a_number(evidence) else ""


def _not_measured(comparison: Comparison) -> str:
    """Return a clause about the first aspect that was not measured or the first statement that never ran, or ""."""
    if comparison.unmeasured:
        return f"{comparison.unmeasured[0]} could not be measured"
    return f"our measurements never ran `{comparison.not_executed[0][:80]}`" if comparison.not_executed else ""


def _judge_half(evidence: Evidence, comparison: Comparison) -> RubricItem:
    """Return part of the points for a fix that leaves some of the causes; an open item if its code is suspicious."""
    left = comparison.open_causes[0]
    if why := reason_to_doubt(evidence):
        return _open(f"One cause seems to be fixed, but the instructor has to look at the code: {why}.")
    every = len(comparison.causes)
    fixed = every - len(comparison.open_causes)
    which = "The other cause" if every == 2 else "Another cause"
    reason = (
        f"{fixed} of {every} causes {'is' if fixed == 1 else 'are'} fixed. {which} is not fixed: {left.difference}."
    )
    return lost(*_CORRECT, reason, _REMEDY, points=CORRECT * fixed / every)


def _changes_a_number(evidence: Evidence) -> bool:
    """Return whether the edit changes one constant of the broken experiment and nothing else."""
    try:
        ours, theirs = map(parse_experiment, (evidence.recipe.broken_source(), evidence.source))
    except Unparsable:
        return False
    pairs = list(zip_longest(ast.walk(ours), ast.walk(theirs)))
    if any(type(one) is not type(two) for one, two in pairs):
        return False
    constants = [
        (one, two)
        for one, two in pairs
        if isinstance(one, ast.Constant) and isinstance(two, ast.Constant) and one.value != two.value
    ]
    if len(constants) != 1:
        return False
    one, two = constants[0]
    two.value, two.kind = one.value, one.kind
    return ast.dump(ours) == ast.dump(theirs)


def _masked_check(evidence: Evidence, reason: str) -> RubricItem:
    """Return the verdict on a fix that masks the cause: some points if the network has learnt, else no points."""
    if not has_learnt(evidence.fixed, evidence.settings.dataset) and not _is_unknown_network(evidence):
        return _lost(f"{reason} Your trained network is not clearly better than guessing.")
    return lost(*_CORRECT, reason, _REMEDY, points=MASKED)


def _is_unknown_network(evidence: Evidence) -> bool:
    """Return whether the student changed the network: the evaluator cannot load the weights of a changed network."""
    try:
        ours = (evidence.recipe.broken_source(), evidence.recipe.healthy_source())
        return all("model" in changed_areas(source, evidence.source) for source in ours)
    except Unparsable:
        return False


def _bad(found: Sequence[Measurement]) -> list[Measurement]:
    return [item for item in found if not item.good]


def _lost(reason: str) -> RubricItem:
    return lost(*_CORRECT, reason, _REMEDY)


def _open(reason: str) -> RubricItem:
    return open_item(*_CORRECT, reason)


def _figure(item: Measurement) -> str:
    value = f"{item.value:.4g}" if isinstance(item.value, float) else item.value
    return f"{item.name}: {value}, wanted {item.wanted}"


@lru_cache(maxsize=256)
def judge_minimality(broken: str, student: str, reference: str) -> RubricItem:
    """Judge the size of a correct fix by its source. Raises `Unparsable` if `broken` or `reference` does not parse."""
    # A fix that only moves statements or arguments changes 0 nodes, but we still need the functions that it changes.
    needed = edit_sizes(broken, reference) or dict.fromkeys(functions_changed(broken, reference), 0)
    # The reference fix may delete a helper function. A student who repairs that function loses no points.
    ours = names_defined(broken) & names_defined(reference)
    try:
        sizes = edit_sizes(broken, student)
    except Unparsable as error:
        return open_item(*_MINIMAL, f"We could not compare your experiment with the broken experiment: {error}.")
    reason = (
        f"Your edit changes {_describe_sizes(sizes, ' of the syntax tree')}. The reference fix changes"
        f" {_describe_sizes(needed)}."
    )
    size, limit = sum(sizes.values()), sum(needed.values())
    limit = max(limit + _MORE_NODES, limit * _MORE_TIMES)
    share, remedies = 1.0, []
    if size > limit:
        share = limit / size
        remedies.append(f"An edit of at most {limit} nodes earns all points.")
    foreign = [_short(name) for name in sizes if name not in needed and (name in ours or not name)]
    if foreign:
        share *= _ONE_PLACE if len(foreign) == 1 else _MORE_PLACES
        places = _list_items(foreign)
        reason += f" Your edit also changes {places}, which {'was' if len(foreign) == 1 else 'were'} not broken."
        remedies.append(f"Fix {_list_items([_short(name) for name in needed])} and do not change {places}.")
    if share == 1.0:
        return full(*_MINIMAL, reason)
    points = math.floor(MINIMAL * share / _STEP) * _STEP
    return lost(*_MINIMAL, reason, " ".join(remedies), points=points)


def _describe_sizes(sizes: Mapping[str, int], of: str = "") -> str:
    """Return a text such as "4 nodes of the syntax tree (3 in build_optimizer, 1 in AMP)", largest first."""
    if not sizes:
        return "nothing"
    parts = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    total = sum(sizes.values())
    if not total:
        return f"only the order of code in {_list_items([_short(name) for name in sizes])}"
    nodes = f"{total} node{'s' if total > 1 else ''}{of}"
    if len(parts) == 1:
        return f"{nodes} in {_short(parts[0][0])}"
    largest = ", ".join(f"{size} in {_short(name)}" for name, size in parts[:4])
    return f"{nodes} ({largest}{', ...' if len(parts) > 4 else ''})"


def _short(name: str) -> str:
    """Return the name of a function or constant, cut to 40 characters, because students may choose long names."""
    return (name if len(name) <= 40 else name[:37] + "...") or "statements outside functions"


def _list_items(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)
