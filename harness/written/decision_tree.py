"""Read a decision tree that a student wrote in YAML, and follow its path for an experiment.

    start: can_it_learn
    nodes:
      can_it_learn:
        check: overfit
        outcomes:
          reaches:  {means: "network, loss and optimizer can learn", go: the_loss}
          stalls:   {means: "something keeps the loss up", go: the_loss}
          diverges: {means: "the updates make it worse", conclude: huge_lr}
      the_loss:
        check: loss_form
        ...

`start` names the first node. A node runs one check (a name of `harness.checks`) and lists all outcomes of the check. In
the name of a check, `-` and `_` are the same. Each outcome has `means`, an explanation in the student's words, and
either `go` or `conclude`. `go` is the name of another node. `conclude` is the name of an exercise, `healthy`, or
`unknown`. Several outcomes may go to the same node. No path may reach the same node twice.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError

from harness.checks import check_names, load_check
from harness.errors import UserError, printable, suggestion
from harness.formats.plain_yaml import Location, read_plain_yaml
from harness.formats.toml_file import StrictModel

HEALTHY = "healthy"
UNKNOWN = "unknown"
# A message names at most this many problems, because further problems often have the same cause.
MOST_PROBLEMS = 5
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")


class Step(StrictModel):
    """The meaning of a check's outcome, and what follows: another node (`go`) or a conclusion (`conclude`)."""

    means: Annotated[str, Field(min_length=3, max_length=200)]
    go: str | None = None
    conclude: str | None = None


class Node(StrictModel):
    """A node of a tree: one check, and a step for each outcome of the check."""

    check: Annotated[str, AfterValidator(lambda name: name.replace("-", "_"))]
    outcomes: Mapping[str, Step]


class Tree(StrictModel):
    """A decision tree in which all names are known. `flaw` reports a loop, and a tree that ignores the outcomes."""

    start: str
    nodes: Mapping[str, Node]

    def flaw(self) -> str:
        """Return a sentence that says why the whole tree earns no points, or "" if it can earn points."""
        steps = {name: node.outcomes.values() for name, node in self.nodes.items()}
        following = {name: [step.go for step in of if step.go is not None] for name, of in steps.items()}
        try:
            TopologicalSorter(following).prepare()
        except CycleError as error:
            path = " -> ".join(reversed(error.args[1]))
            return f"The tree has a loop: {path}. A check always gives the same outcome, so this path never ends."
        ends = {step.conclude for of in steps.values() for step in of} - {None}
        if len(ends) == 1:
            return f"Every path ends in `{ends.pop()}`, so the tree ignores the outcomes of its checks."
        return ""


def parse_tree(text: str, experiments: Sequence[str], source: str = "tree.yaml") -> Tree:
    """Parse a tree from untrusted text and return it. The caller must limit the text to 128 KiB.

    A tree may conclude the names of `experiments`, `healthy` and `unknown`.

    Raises `UserError` with up to five problems and their lines. Problems are invalid or special YAML, an unknown key,
    a value of the wrong type, an unknown check or conclusion, a missing outcome, and a missing node.
    """
    found = read_plain_yaml(text.removeprefix("\ufeff"), source, "the tree")
    problems: Iterable[tuple[Location, str]]
    try:
        tree = Tree.model_validate(found.values)
        problems = _wrong_names(tree, [*experiments, HEALTHY, UNKNOWN])
    except ValidationError as error:
        problems = [(item["loc"], f"{_path(item['loc'])}: {item['msg']}.") for item in error.errors()]
    # A misspelt key causes two problems: it is unknown, and its right name is missing, on the same line or later.
    by_line = sorted((found.line(location), message) for location, message in problems)
    lines = [f"{source}, line {line}: {message}" for line, message in by_line]
    if lines:
        more = [f"and {len(lines) - MOST_PROBLEMS} more"] if len(lines) > MOST_PROBLEMS else []
        raise UserError("\n".join(lines[:MOST_PROBLEMS] + more))
    return tree


def _path(location: Location) -> str:
    return ".".join(map(printable, location))


def _wrong_names(tree: Tree, ends: Sequence[str]) -> Iterator[tuple[Location, str]]:
    """Yield (location in the YAML file, message) for each name that is unknown or missing."""
    checks = check_outcomes()
    if tree.start not in tree.nodes:
        yield ("start",), _unknown("node", tree.start, tree.nodes)
    for name, node in tree.nodes.items():
        at: Location = ("nodes", name)
        if not _NAME.fullmatch(name):
            yield at, f"{printable(name)!r} cannot name a node: use up to 40 lower-case letters, digits, _ and -."
        if node.check not in checks:
            yield (*at, "check"), _unknown("check", node.check, checks)
        outcomes = checks.get(node.check, tuple(node.outcomes))
        if missing := ", ".join(outcome for outcome in outcomes if outcome not in node.outcomes):
            yield ((*at, "outcomes"), f"the outcome {missing} of {node.check} has no step: every outcome needs a step.")
        for outcome, step in node.outcomes.items():
            place: Location = (*at, "outcomes", outcome)
            if outcome not in outcomes:
                yield place, _unknown(f"outcome of {node.check}", outcome, outcomes)
            if (step.go is None) == (step.conclude is None):
                yield place, f"`{printable(outcome)}` must have exactly one of go and conclude."
            elif step.go is not None and step.go not in tree.nodes:
                yield (*place, "go"), _unknown("node", step.go, tree.nodes)
            elif step.conclude is not None and step.conclude not in ends:
                yield (*place, "conclude"), _unknown("conclusion", step.conclude, ends)


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    return f"there is no {what} {printable(name)!r}: {suggestion(name, [*known])}"


def check_outcomes() -> Mapping[str, tuple[str, ...]]:
    """Return {name of a check: its possible outcomes} for all checks."""
    return {name: tuple(outcome.id for outcome in load_check(name).outcomes) for name in check_names()}


@dataclass(frozen=True)
class Walk:
    """The path of one experiment through a tree.

    steps: a tuple (node, check, outcome) for each step.
    minutes: the time that a person needs for all checks on the path; a check that occurs twice is counted once.
    """

    steps: tuple[tuple[str, str, str], ...]
    conclusion: str
    minutes: float

    @property
    def path(self) -> str:
        """The checks and outcomes on the path, as one line of text."""
        return " → ".join(f"{check}: {outcome}" for _, check, outcome in self.steps)


def walk(tree: Tree, outcome_of: Callable[[str], str]) -> Walk:
    """Follow a tree without loops to its conclusion and return the path.

    `outcome_of` runs a check and returns its outcome; it is called at most once for each check.
    """
    known: dict[str, str] = {}
    steps = []
    name, conclusion = tree.start, None
    while conclusion is None:
        node = tree.nodes[name]
        if node.check not in known:
            known[node.check] = outcome_of(node.check)
        step = node.outcomes[known[node.check]]
        steps.append((name, node.check, known[node.check]))
        name, conclusion = step.go or name, step.conclude
    return Walk(tuple(steps), conclusion, sum(load_check(check).minutes for check in known))
