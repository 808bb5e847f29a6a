"""Walks a tree with every recorded experiment, and says which of its conclusions stand on evidence."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from grader.written.decision_tree.formula import Formula
from grader.written.decision_tree.recorded import Recorded, Recording
from harness.written.decision_tree.tree import UNKNOWN, Tree
from harness.written.decision_tree.walk import Taken, Walked, walk

Verdict = Literal["right", "wrong", "a guess", "not concluded"]


@dataclass(frozen=True)
class Arrival:
    """An experiment at the end of its way through a tree. others: what else comes to this very end."""

    experiment: Recorded
    walked: Walked
    verdict: Verdict
    others: tuple[str, ...]


def arrivals(tree: Tree, recording: Recording, formula: Formula) -> tuple[Arrival, ...]:
    """Walk a tree that is one (`harness.written.decision_tree.shape`) with every experiment, in their order.

    Two experiments that gave the same outcomes all the way cannot be told apart by the tree. What it concludes there
    counts for neither unless it holds of most of what comes there, each recipe, and all sound experiments together,
    weighing as much as any other: of two kinds that come in full, neither is more than half.
    """
    walks = [walk(tree, one.outcomes.__getitem__) for one in recording.experiments]
    weight = {
        truth: 1 / count for truth, count in Counter(one.truth for one in recording.experiments).items()
    }
    ends: dict[tuple[Taken, ...], Counter[str]] = {}
    for one, walked in zip(recording.experiments, walks, strict=True):
        ends.setdefault(walked.steps, Counter())[one.truth] += 1
    found = []
    for one, walked in zip(recording.experiments, walks, strict=True):
        come = {truth: count * weight[truth] for truth, count in ends[walked.steps].items()}
        share = come.get(walked.conclusion, 0.0) / sum(come.values())
        others = tuple(truth for truth in come if truth != one.truth)
        verdict = _verdict(one, walked, counts=share > formula.evidence)
        found.append(Arrival(one, walked, verdict, others))
    return tuple(found)


def _verdict(one: Recorded, walked: Walked, *, counts: bool) -> Verdict:
    if walked.conclusion == UNKNOWN:
        return "not concluded"
    if walked.conclusion != one.truth:
        return "wrong"
    return "right" if counts else "a guess"


def share_right(found: Sequence[Arrival], truths: Sequence[str]) -> float:
    """Return the share of these kinds of experiments that was concluded rightly, each kind weighing the same."""
    return sum(_right(found, truth) for truth in truths) / len(truths)


def _right(found: Sequence[Arrival], truth: str) -> float:
    own = [one.verdict == "right" for one in found if one.experiment.truth == truth]
    return sum(own) / len(own)


def mean_minutes(found: Sequence[Arrival], reference: Sequence[Arrival]) -> tuple[float, float]:
    """Return the minutes of a tree and of the reference for what the tree concluded rightly, (0, 0) for nothing.

    Of each kind of experiment the mean, and of these the mean.
    """
    by_truth: dict[str, list[tuple[float, float]]] = {}
    for own, other in zip(found, reference, strict=True):
        if own.verdict == "right":
            pair = (own.walked.minutes, other.walked.minutes)
            by_truth.setdefault(own.experiment.truth, []).append(pair)
    if not by_truth:
        return 0.0, 0.0
    means = [
        tuple(sum(part) / len(pairs) for part in zip(*pairs, strict=True)) for pairs in by_truth.values()
    ]
    mine, theirs = (sum(part) / len(means) for part in zip(*means, strict=True))
    return mine, theirs
