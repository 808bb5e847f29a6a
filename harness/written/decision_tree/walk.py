"""Walks a tree: makes the checks that it asks for, follows their outcomes, and says what it concludes and its cost."""

from collections.abc import Callable
from dataclasses import dataclass

from harness.checks import load_check
from harness.written.decision_tree.tree import Tree


@dataclass(frozen=True)
class Taken:
    """One step of a walk: the node, its check and outcome, and what the tree says that this means."""

    node: str
    check: str
    outcome: str
    means: str


@dataclass(frozen=True)
class Walked:
    """The way through a tree for one experiment. minutes: what its checks cost a person, each counted once."""

    steps: tuple[Taken, ...]
    conclusion: str
    minutes: float

    @property
    def evidence(self) -> frozenset[tuple[str, str]]:
        """All that is known at the end: the outcome of each check that was made."""
        return frozenset((step.check, step.outcome) for step in self.steps)

    @property
    def path(self) -> str:
        """The way in one line."""
        return " → ".join(f"{step.check}: {step.outcome}" for step in self.steps)


def walk(tree: Tree, outcome_of: Callable[[str], str]) -> Walked:
    """Walk a tree that does not loop; `outcome_of` makes a check, and is asked for each at most once."""
    known: dict[str, str] = {}
    steps = []
    name: str | None = tree.start
    conclusion = None
    while name is not None:
        node = tree.nodes[name]
        if node.check not in known:
            known[node.check] = outcome_of(node.check)
        outcome = known[node.check]
        step = node.outcomes[outcome]
        steps.append(Taken(name, node.check, outcome, step.means))
        name, conclusion = step.go, step.conclude
    assert conclusion is not None
    return Walked(tuple(steps), conclusion, sum(load_check(check).minutes for check in known))
