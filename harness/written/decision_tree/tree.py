"""A decision tree as a student writes it, in YAML:

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

`start` names the first node. A node makes one check (an id of `harness/checks/`) and has every outcome
of it, each with what it means, in the student's words, and either `go`, the name of another node, or `conclude`: the
name of an exercise, `healthy`, or `unknown` where nothing can be concluded. Two outcomes may go to the same node; no
node may be come to again.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from harness.checks import Check, check_names, load_check
from harness.errors import UserError
from harness.plain_yaml import LIMIT, Location, Place, PlainYaml, read_plain_yaml, shown
from harness.recipe import recipe_ids, suggestion

HEALTHY = "healthy"
UNKNOWN = "unknown"
# A message names so many problems; the others are often of the same cause.
MOST_PROBLEMS = 5
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Step(_Strict):
    """What an outcome means, and what follows: another node (`go`), or a conclusion."""

    means: Annotated[str, Field(min_length=3, max_length=200)]
    go: str | None = None
    conclude: str | None = None


class Node(_Strict):
    """One check, and a step for each of its outcomes."""

    check: str
    outcomes: Mapping[str, Step]


class Tree(_Strict):
    """A tree in which every name means something; whether it loops is for `harness.written.decision_tree.shape`."""

    start: str
    nodes: Mapping[str, Node]


def conclusions() -> list[str]:
    """Return all that may be concluded."""
    return [*recipe_ids(), HEALTHY, UNKNOWN]


def parse_tree(text: str, source: str = "tree.yaml") -> Tree:
    """Return the tree in a text, which may be anything.

    Raises `UserError` with the line of every problem, up to five of them: no plain YAML, an unknown key, a value of
    another type, an unknown check or conclusion, an outcome that is missing, a node that is not there.
    """
    if len(text) > LIMIT:
        raise UserError(
            f"{source}: the tree has {len(text)} characters, and may have {LIMIT}: let outcomes share nodes."
        )
    place = Place(source, 1, "the tree", "start and nodes", "check or outcomes")
    found = read_plain_yaml(text.removeprefix("\ufeff"), place)
    try:
        tree = Tree.model_validate(found.values)
    except ValidationError as error:
        raise _refusal(((item["loc"], _told(item)) for item in error.errors()), found, source) from None
    problems = list(_wrong_names(tree))
    if problems:
        raise _refusal(iter(problems), found, source)
    return tree


def _refusal(problems: Iterator[tuple[Location, str]], found: PlainYaml, source: str) -> UserError:
    # One line may have several, and a misspelt key is also missing under its right name.
    by_line = sorted((found.line(location), message) for location, message in problems)
    told = [f"{source}, line {line}: {message}" for line, message in dict.fromkeys(by_line)]
    more = [f"and {len(told) - MOST_PROBLEMS} more"] if len(told) > MOST_PROBLEMS else []
    return UserError("\n".join(told[:MOST_PROBLEMS] + more))


_KEYS = {1: [*Tree.model_fields], 3: [*Node.model_fields], 5: [*Step.model_fields]}
_FORMS: Mapping[str, str] = {
    "start": "the name of a node",
    "nodes": "nodes, each under its name",
    "outcomes": "the outcomes of the check, each with a step",
    "check": "the id of one check",
    "go": "the name of one node",
    "conclude": "the name of one exercise, healthy or unknown: what names several has found none",
    "means": "what the outcome tells you, in 3 to 200 characters",
}


def _told(problem: ErrorDetails) -> str:
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
    """Yield what names nothing, and what has no name that it should have, with its place."""
    nodes = list(tree.nodes)
    if tree.start not in tree.nodes:
        yield ("start",), _no_node(tree.start, nodes)
    for name, node in tree.nodes.items():
        at: Location = ("nodes", name)
        if not _NAME.fullmatch(name):
            yield at, f"{shown(name)!r} is no name for a node: use up to 40 small letters, digits, _ and -."
        check = _checks().get(node.check)
        if check is None:
            known = suggestion(node.check, list(_checks()))
            yield (*at, "check"), f"there is no check {shown(node.check)!r}: {known}"
        else:
            yield from _wrong_outcomes(node, check, at)
        for outcome, step in node.outcomes.items():
            place: Location = (*at, "outcomes", outcome)
            if (step.go is None) == (step.conclude is None):
                yield place, f"`{shown(outcome)}` needs either go or conclude, and not both."
            elif step.go is not None and step.go not in tree.nodes:
                yield (*place, "go"), _no_node(step.go, nodes)
            elif step.conclude is not None and step.conclude not in conclusions():
                known = suggestion(step.conclude, conclusions())
                yield (*place, "conclude"), f"{shown(step.conclude)!r} cannot be concluded: {known}"


def _wrong_outcomes(node: Node, check: Check, at: Location) -> Iterator[tuple[Location, str]]:
    outcomes = [outcome.id for outcome in check.outcomes]
    for name in node.outcomes:
        if name not in outcomes:
            known = suggestion(name, outcomes)
            yield (*at, "outcomes", name), f"{check.name} has no outcome {shown(name)!r}: {known}"
    missing = [name for name in outcomes if name not in node.outcomes]
    if missing:
        words = f"{', '.join(missing)} of {check.name}"
        yield (*at, "outcomes"), f"there is no step for {words}: every outcome needs one."


def _no_node(name: str, nodes: list[str]) -> str:
    if name in conclusions():
        return f"`{name}` is no node, and a conclusion takes a check before it: name a node."
    return f"there is no node {shown(name)!r}: {suggestion(name, nodes)}"


@cache
def _checks() -> Mapping[str, Check]:
    return {name: load_check(name) for name in check_names()}
