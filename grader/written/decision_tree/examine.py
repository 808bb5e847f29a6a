"""Examines a decision tree: read, walked with what was recorded, judged. It is data from end to end: no code runs."""

from collections.abc import Sequence

from grader.replay.replayer import Replayer
from grader.score.verdict import Check, Criterion, full, lost
from grader.written.answers.examination import Examination
from grader.written.answers.known import reference as reference_text
from grader.written.decision_tree.arrivals import Arrival, arrivals, mean_minutes, share_right
from grader.written.decision_tree.formula import Formula, load_formula
from grader.written.decision_tree.paths import paths_table
from grader.written.decision_tree.recorded import load_recording
from harness.errors import UserError
from harness.written.decision_tree.shape import no_tree, unreachable
from harness.written.decision_tree.tree import HEALTHY, Tree, parse_tree
from harness.written.exercise import FileExercise

_TITLES = {
    "tree": "A tree that ends, and concludes by what checks find",
    "reachable": "Every node can be come to",
    "breaks": "Broken experiments are named rightly, by evidence",
    "healthy": "Sound experiments are concluded healthy, by evidence",
    "minutes": "The minutes of the checks, for what is concluded rightly",
}
_CRITERIA: dict[Criterion, tuple[str, ...]] = {
    "form": ("tree", "reachable"),
    "conclusions": ("breaks", "healthy"),
    "cost": ("minutes",),
}


def examine_tree(exercise: FileExercise, text: str, replayer: Replayer) -> Examination:
    """Examine the text of a tree (`grader.written.answers.examination.Kind`); nothing is replayed."""
    try:
        tree = parse_tree(text, exercise.file)
    except UserError as error:
        return _nothing(str(error), "make check reads the tree as the grader does, and names the line.")
    if reason := no_tree(tree):
        return _nothing(reason, "Let the conclusion depend on what a check finds.")
    recording, formula = load_recording(exercise.id), load_formula(exercise.id)
    reference = arrivals(parse_tree(reference_text(exercise)), recording, formula)
    found = arrivals(tree, recording, formula)
    breaks = [truth for truth in recording.truths if truth != HEALTHY]
    table = paths_table(found, reference)
    if share_right(found, breaks) == 0:
        reason = "None of its conclusions names a broken experiment rightly and by evidence."
        remedy = "Make checks whose outcomes differ between the exercises; the table shows who came where."
        return _nothing(reason, remedy).model_copy(update={"findings": (table,)})
    checks: dict[Criterion, tuple[Check, ...]] = {
        "form": (
            full("tree", _TITLES["tree"], 1, "It has no loop, and what it concludes depends on outcomes."),
            _reachable(tree),
        ),
        "conclusions": (_share("breaks", found, breaks), _share("healthy", found, [HEALTHY])),
        "cost": (_cost(found, reference, recording.truths, formula),),
    }
    return Examination(checks=checks, findings=(table,))


def _nothing(reason: str, remedy: str) -> Examination:
    return Examination(
        checks={
            name: tuple(lost(id, _TITLES[id], 1, reason, remedy) for id in ids)
            for name, ids in _CRITERIA.items()
        }
    )


def _reachable(tree: Tree) -> Check:
    names = unreachable(tree)
    if not names:
        return full("reachable", _TITLES["reachable"], 1, f"All {len(tree.nodes)} nodes can be come to.")
    reason = f"No outcome leads to {', '.join(names[:10])}."
    return lost("reachable", _TITLES["reachable"], 1, reason, "Go there from some outcome, or remove it.")


def _share(id: str, found: Sequence[Arrival], truths: Sequence[str]) -> Check:
    share = share_right(found, truths)
    own = [one for one in found if one.experiment.truth in truths]
    right = sum(one.verdict == "right" for one in own)
    reason = f"Rightly concluded: {right} of {len(own)}."
    if right == len(own):
        return full(id, _TITLES[id], 1, reason)
    for verdict, words in (("wrong", "Wrongly"), ("a guess", "Guessed"), ("not concluded", "Not concluded")):
        missed = dict.fromkeys(one.experiment.truth for one in own if one.verdict == verdict)
        if missed:
            reason += f" {words}: {', '.join(missed)}."
    remedy = "The table below shows the way of each, and who else came to its end."
    return lost(id, _TITLES[id], 1, reason, remedy, points=share)


def _cost(
    found: Sequence[Arrival], reference: Sequence[Arrival], truths: Sequence[str], formula: Formula
) -> Check:
    minutes, others = mean_minutes(found, reference)
    share = formula.pace(minutes, others) * share_right(found, truths)
    reason = f"What it concludes rightly takes {minutes:.3g} minutes on average; the reference tree takes {others:.3g}."
    if share == 1:
        return full("minutes", _TITLES["minutes"], 1, reason)
    remedy = (
        "Make first the check that tells most apart for its minutes, and none that does not change where you go;"
        " only right conclusions earn points here."
    )
    return lost("minutes", _TITLES["minutes"], 1, reason, remedy, points=share)
