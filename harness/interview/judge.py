"""Judge an interview: which faults are fixed, what else changed, and which faults the candidate's tests catch.

The text decides first. If the script contains the healthy lines of a fault, the fault is fixed; if it contains the
broken ones, it is not. A fault whose lines are written otherwise is decided by behaviour: the script is compared with
the programs that have some of these faults, and the nearest one tells which are left. Further differences from that
program are changes that nobody asked for.
"""

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import Literal

from harness.behaviour.compare import Behaviour, differences, independent_aspects
from harness.errors import UserError
from harness.interview.draw import Interview
from harness.recipes.recipe import Edit, Recipe

FIXED, NAMED, CAUGHT = 12.0, 3.0, 5.0
FOLLOW_UP = 20.0
WRONG, MOST_WRONG = 5.0, 20.0
Measure = Callable[[str], Behaviour]
TextState = Literal["healthy", "broken", "other"]


@dataclass(frozen=True)
class FaultVerdict:
    """The verdict on one fault. how: "text" or "behaviour". caught_by: the tests that fail only because of it."""

    id: str
    fixed: bool
    how: str
    named: bool = False
    caught_by: tuple[str, ...] = ()

    @property
    def points(self) -> float:
        """The points for this fault, of 20."""
        return self.fixed * FIXED + (self.fixed and self.named) * NAMED + bool(self.caught_by) * CAUGHT


@dataclass(frozen=True)
class Verdict:
    """The verdict on an interview.

    introduced: aspects in which the script differs from the program with the faults that are left, as sentences.
    bad_tests: why tests do not count. follow_up: for each property of the follow-up, its points, their maximum, and
    whether it holds or why not.
    """

    faults: tuple[FaultVerdict, ...]
    introduced: tuple[str, ...] = ()
    bad_tests: tuple[str, ...] = ()
    follow_up: Mapping[str, tuple[float, float, str]] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """All points, of 100."""
        gained = sum(one.points for one in self.faults) + sum(points for points, _, _ in self.follow_up.values())
        return max(gained - min(WRONG * len(self.introduced), MOST_WRONG), 0.0)


def text_state(edits: Iterable[Edit], source: str) -> TextState:
    """Return whether a source contains the healthy or the broken lines of all edits of a fault."""
    states = {_state_of(edit, source) for edit in edits}
    return states.pop() if len(states) == 1 else "other"


def _state_of(edit: Edit, source: str) -> TextState:
    # The longer text first: it may contain the other one.
    texts: list[tuple[str, TextState]] = [(edit.find, "healthy"), (edit.replace, "broken")]
    for text, state in sorted(texts, key=lambda one: -len(one[0])):
        if text.strip() and text in source:
            return state
    return "other"


def judge_source(interview: Interview, source: str, measure: Measure) -> tuple[dict[str, tuple[bool, str]], list[str]]:
    """Return {fault: (whether it is fixed, how this was decided)}, and the changes that nobody asked for.

    measure: returns the behaviour of a source. Raises `UserError` if the script does not run.
    """
    states = {one.id: text_state(one.breaks, source) for one in interview.recipes()}
    left = [id for id, state in states.items() if state == "broken"]
    unknown = [id for id, state in states.items() if state == "other"]
    found = {id: (state == "healthy", "text") for id, state in states.items()}
    if not unknown and _equal(source, interview.source_with(left)):
        return found, []
    own = measure(source)
    best: tuple[int, tuple[str, ...], list[str]] | None = None
    for some in chain.from_iterable(combinations(unknown, count) for count in range(len(unknown) + 1)):
        apart = differences(own, measure(interview.source_with([*left, *some])))
        aspects = independent_aspects(apart)
        if best is None or len(aspects) < best[0]:
            best = len(aspects), some, [str(apart[aspect]) for aspect in aspects]
        if not aspects:
            break
    assert best is not None
    _, remaining, introduced = best
    return found | {id: (id not in remaining, "behaviour") for id in unknown}, introduced


def _equal(one: str, two: str) -> bool:
    """Return whether two sources are the same program, apart from comments and layout."""
    try:
        return ast.dump(ast.parse(one)) == ast.dump(ast.parse(two))
    except SyntaxError as error:
        raise UserError(f"train.py is not valid Python: line {error.lineno}: {error.msg}.") from None


def places_of(recipe: Recipe, healthy: str) -> set[str]:
    """Return the names of the functions, methods and classes of the healthy script that a fault changes."""
    found = set[str]()
    spans = [(healthy.find(edit.find), healthy.find(edit.find) + len(edit.find)) for edit in recipe.breaks]
    lines = {number for start, end in spans for number in _lines_between(healthy, start, end)}
    for node in ast.walk(ast.parse(healthy)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and lines & set(range(node.lineno, node.end_lineno + 1)):  # type: ignore[operator]
            found.add(node.name)
    return found


def _lines_between(text: str, start: int, end: int) -> range:
    return range(text.count("\n", 0, start) + 1, text.count("\n", 0, max(end - 1, start)) + 2)


def named_places(notes: str) -> list[set[str]]:
    """Return the words of each line of the notes that starts with a dash and has a sentence after a colon."""
    found = []
    for line in notes.splitlines():
        place, _, sentence = line.strip().removeprefix("-").partition(":")
        if line.strip().startswith("-") and len(sentence.split()) > 2:
            found.append(set(place.replace("`", " ").replace(".", " ").replace("()", " ").split()))
    return found


def is_named(recipe: Recipe, healthy: str, notes: str) -> bool:
    """Return whether a line of the notes names a function, method or class that the fault changes."""
    places = places_of(recipe, healthy)
    return any(places & words for words in named_places(notes))


Tests = Mapping[str, bool]  # {test: whether it passes}


def judge_tests(
    healthy: Tests, sound: Mapping[str, Tests], broken: Mapping[str, Tests]
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return {fault: the tests that catch it}, and sentences about tests that do not count.

    A test counts if it passes on the healthy script and on every sound variant of it. It catches a fault if it fails on
    the healthy script with this fault alone. healthy, sound, broken: {test: whether it passes} on each program.
    """
    problems, counted = [], []
    for test, passes in healthy.items():
        variants = [name for name, found in sound.items() if not found.get(test, False)]
        if not passes:
            problems.append(f"{test} fails on the healthy script.")
        elif variants:
            problems.append(f"{test} fails on a sound variant of the healthy script ({variants[0]}).")
        else:
            counted.append(test)
    return {
        fault: tuple(test for test in counted if not found.get(test, False)) for fault, found in broken.items()
    }, problems


def verdict_of(
    interview: Interview,
    states: Mapping[str, tuple[bool, str]],
    introduced: Sequence[str],
    notes: str,
    caught: Mapping[str, tuple[str, ...]],
    bad_tests: Sequence[str],
    follow_up: Mapping[str, tuple[float, float, str]],
) -> Verdict:
    """Join the parts of a verdict."""
    healthy = interview.healthy_source()
    faults = tuple(
        FaultVerdict(one.id, *states[one.id], is_named(one, healthy, notes), caught.get(one.id, ()))
        for one in interview.recipes()
    )
    return Verdict(faults, tuple(introduced), tuple(bad_tests), follow_up)
