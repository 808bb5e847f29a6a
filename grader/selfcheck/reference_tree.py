"""Build the reference tree of the exercise `decision_tree` from the measured outcomes."""

import math
from collections.abc import Mapping, Sequence

import yaml

from grader.written.decision_tree import TripsOfOne, experiments
from harness.checks import check_names, load_check
from harness.written.decision_tree import HEALTHY, UNKNOWN, Tree
from harness.written.exercise import DecisionTree


def reference_tree(known: Mapping[str, TripsOfOne]) -> Tree:
    """Return a tree that separates all experiments that checks can separate.

    Each node uses the check that gives the most information per minute. This is the greedy choice of the algorithm ID3
    (Quinlan, "Induction of Decision Trees", 1986), with the information gain divided by the minutes of the check.
    """
    nodes: dict[str, object] = {}
    unknown = {"conclude": UNKNOWN}

    def build(group: Sequence[str]) -> dict[str, str]:
        """Add the nodes for these experiments, and return the step that leads to them."""
        if all(known[truth] == known[group[0]] for truth in group):
            return {"conclude": HEALTHY if HEALTHY in group else group[0]}
        check = max(check_names(), key=lambda name: _gain(group, known, name) / load_check(name).minutes)
        name = f"node_{len(nodes) + 1}_{check}"[:40]
        nodes[name] = {}
        parts = _parts(group, known, check)
        steps = {outcome: build(part) for outcome, part in parts.items()}
        outcomes = {
            outcome.id: {"means": outcome.reading[:200], **steps.get(None if outcome.sound else outcome.id, unknown)}
            for outcome in load_check(check).outcomes
        }
        nodes[name] = {"check": check, "outcomes": outcomes}
        return {"go": name}

    start = build(list(known)).get("go", "")
    return Tree.model_validate({"start": start, "nodes": nodes})


def reference_text(exercise: DecisionTree) -> str:
    """Return the reference tree as YAML."""
    tree = reference_tree(experiments(exercise)).model_dump(exclude_none=True)
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=110)


def _parts(group: Sequence[str], known: Mapping[str, TripsOfOne], check: str) -> dict[str | None, list[str]]:
    """Return the experiments, grouped by the outcome of a check. The key None stands for all sound outcomes."""
    parts: dict[str | None, list[str]] = {}
    for truth in group:
        parts.setdefault(known[truth].get(check), []).append(truth)
    return parts


def _gain(group: Sequence[str], known: Mapping[str, TripsOfOne], check: str) -> float:
    """Return the information gain of a check, in bits: the entropy of the parts into which it splits the group."""
    shares = [len(part) / len(group) for part in _parts(group, known, check).values()]
    return -sum(share * math.log2(share) for share in shares)
