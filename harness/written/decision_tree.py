"""A decision tree as a student writes it in YAML: how to read it, and how to walk it.

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

`start` names the first node. A node makes one check (a name of `harness.checks`) and lists every outcome of it. An
outcome has `means`, in the student's words, and either `go`, the name of another node, or `conclude`: the name of an
exercise, `healthy`, or `unknown`. Several outcomes may go to one node. A walk must never return to a node.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Annotated

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from harness.checks import check_names, load_check
from harness.errors import UserError
from harness.plain_yaml import Location, PlainYaml, read_plain_yaml, shown
from harness.recipe import recipe_ids, suggestion
from harness.toml_file import StrictModel

HEALTHY = "healthy"
UNKNOWN = "unknown"
# A message names at most this many problems: the others often have the same cause.
MOST_PROBLEMS = 5
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")


class Step(StrictModel):
    """What an outcome means, and what follows: another node (`go`) or a conclusion."""

    means: Annotated[str, Field(min_length=3, max_length=200)]
    go: str | None = None
    conclude: str | None = None


class Node(StrictModel):
    """One check, and a step for each of its outcomes."""

    check: str
    outcomes: Mapping[str, Step]


class Tree(StrictModel):
    """A tree whose names all exist; `flaw` says whether it also ends and depends on outcomes."""

    start: str
    nodes: Mapping[str, Node]

    def following(self, name: str) -> list[str]:
        """Return the nodes that the outcomes of a node go to."""
        return [step.go for step in self.nodes[name].outcomes.values() if step.go is not None]

    def reachable(self) -> set[str]:
        """Return the nodes that a walk can reach."""
        found: set[str] = set()
        new = [self.start]
        while new:
            name = new.pop()
            if name not in found:
                found.add(name)
                new += self.following(name)
        return found

    def unreachable(self) -> list[str]:
        """Return the nodes that no walk can reach, in the order of the file."""
        found = self.reachable()
        return [name for name in self.nodes if name not in found]

    def flaw(self) -> str:
        """Return why the tree earns nothing whatever it concludes, as a sentence, or ""."""
        try:
            TopologicalSorter({name: self.following(name) for name in self.nodes}).prepare()
        except CycleError as error:
            path = " -> ".join(reversed(error.args[1]))
            return f"The tree loops: {path}. A check gives the same outcome again, so it never ends."
        steps = [step for name in self.reachable() for step in self.nodes[name].outcomes.values()]
        ends = {step.conclude for step in steps if step.conclude is not None}
        if len(ends) == 1:
            return f"Every path ends in `{ends.pop()}`, whatever the checks find: that is no evidence."
        return ""


def conclusions() -> list[str]:
    """Return everything that a tree may conclude."""
    return [*recipe_ids(), HEALTHY, UNKNOWN]


def parse_tree(text: str, source: str = "tree.yaml") -> Tree:
    """Return the tree in a text, which may be anything; its readers limit it to 64 KiB.

    Raises `UserError` with the line of each problem, up to five: not plain YAML, an unknown key, a wrong type, an
    unknown check or conclusion, a missing outcome, a missing node.
    """
    found = read_plain_yaml(text.removeprefix("\ufeff"), source, "the tree")
    try:
        tree = Tree.model_validate(found.values)
    except ValidationError as error:
        raise _refusal(((item["loc"], _message(item)) for item in error.errors()), found, source) from None
    problems = list(_wrong_names(tree))
    if problems:
        raise _refusal(iter(problems), found, source)
    return tree


def _refusal(problems: Iterator[tuple[Location, str]], found: PlainYaml, source: str) -> UserError:
    # One line may have several problems, and a misspelt key is also missing under its right name.
    by_line = sorted((found.line(location), message) for location, message in problems)
    lines = [f"{source}, line {line}: {message}" for line, message in dict.fromkeys(by_line)]
    more = [f"and {len(lines) - MOST_PROBLEMS} more"] if len(lines) > MOST_PROBLEMS else []
    return UserError("\n".join(lines[:MOST_PROBLEMS] + more))


_KEYS = {1: [*Tree.model_fields], 3: [*Node.model_fields], 5: [*Step.model_fields]}
_FORMS: Mapping[str, str] = {
    "start": "the name of a node",
    "nodes": "nodes, each under its name",
    "outcomes": "the outcomes of the check, each with a step",
    "check": "the name of one check",
    "go": "the name of one node",
    "conclude": "the name of one exercise, healthy or unknown: several names are no conclusion",
    "means": "what the outcome tells you, in 3 to 200 characters",
}


def _message(problem: ErrorDetails) -> str:
    location = problem["loc"]
    key = shown(location[-1]) if location else ""
    if problem["type"] == "extra_forbidden":
        return f"there is no key `{key}` here: {suggestion(key, _KEYS[len(location)])}"
    if problem["type"] == "missing":
        return f"`{key}` is missing: write {_FORMS[key]}."
    if key in _FORMS:
        return f"`{key}` must be {_FORMS[key]}."
    wanted = "check and outcomes" if len(location) == 2 else "means, and go or conclude"
    return f"`{key}` must hold {wanted}, each with a value."


def _wrong_names(tree: Tree) -> Iterator[tuple[Location, str]]:
    """Yield each name that does not exist or is missing, with its place."""
    nodes, checks = list(tree.nodes), check_outcomes()
    if tree.start not in tree.nodes:
        yield ("start",), _no_node(tree.start, nodes)
    for name, node in tree.nodes.items():
        at: Location = ("nodes", name)
        if not _NAME.fullmatch(name):
            yield at, f"{shown(name)!r} cannot name a node: use up to 40 small letters, digits, _ and -."
        if node.check not in checks:
            known = suggestion(node.check, list(checks))
            yield (*at, "check"), f"there is no check {shown(node.check)!r}: {known}"
        else:
            outcomes = checks[node.check]
            for outcome in node.outcomes:
                if outcome not in outcomes:
                    known = suggestion(outcome, list(outcomes))
                    yield (
                        (*at, "outcomes", outcome),
                        f"{node.check} has no outcome {shown(outcome)!r}: {known}",
                    )
            if missing := ", ".join(outcome for outcome in outcomes if outcome not in node.outcomes):
                message = f"there is no step for {missing} of {node.check}: every outcome needs one."
                yield (*at, "outcomes"), message
        for outcome, step in node.outcomes.items():
            place: Location = (*at, "outcomes", outcome)
            if (step.go is None) == (step.conclude is None):
                yield place, f"`{shown(outcome)}` needs either go or conclude, and not both."
            elif step.go is not None and step.go not in tree.nodes:
                yield (*place, "go"), _no_node(step.go, nodes)
            elif step.conclude is not None and step.conclude not in conclusions():
                known = suggestion(step.conclude, conclusions())
                yield (*place, "conclude"), f"{shown(step.conclude)!r} is not a conclusion: {known}"


def _no_node(name: str, nodes: list[str]) -> str:
    if name in conclusions():
        return f"`{name}` is not a node: name a node, which makes a check before it concludes."
    return f"there is no node {shown(name)!r}: {suggestion(name, nodes)}"


def check_outcomes() -> Mapping[str, tuple[str, ...]]:
    """Return the outcomes of every check, by the name of the check."""
    return {name: tuple(outcome.id for outcome in load_check(name).outcomes) for name in check_names()}


@dataclass(frozen=True)
class Taken:
    """One step of a walk: the node, its check and the outcome."""

    node: str
    check: str
    outcome: str


@dataclass(frozen=True)
class Walked:
    """The path of one experiment. minutes: what its checks cost a person, each counted once."""

    steps: tuple[Taken, ...]
    conclusion: str
    minutes: float

    @property
    def path(self) -> str:
        """The path in one line."""
        return " → ".join(f"{step.check}: {step.outcome}" for step in self.steps)


def walk(tree: Tree, outcome_of: Callable[[str], str]) -> Walked:
    """Walk a tree without a loop; `outcome_of` makes a check, and is called at most once for each."""
    known: dict[str, str] = {}
    steps = []
    name, conclusion = tree.start, None
    while conclusion is None:
        node = tree.nodes[name]
        if node.check not in known:
            known[node.check] = outcome_of(node.check)
        step = node.outcomes[known[node.check]]
        steps.append(Taken(name, node.check, known[node.check]))
        name, conclusion = step.go or name, step.conclude
    return Walked(tuple(steps), conclusion, sum(load_check(check).minutes for check in known))
