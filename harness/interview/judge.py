"""Judge an interview: which faults are fixed, what else changed, and which faults the candidate's tests catch.

The candidate's script is compared with the healthy one, line by line. The changes at the lines of a fault are judged
alone, on the healthy script: if they leave it as it is, the fault is fixed; if they make the broken script, it is not.
Otherwise the behaviour decides: it must agree with the healthy script, or with a known right fix. All other changes are
judged together: what they change of the behaviour is something that nobody asked for.
"""

import ast
import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Literal

from harness.behaviour.compare import Behaviour, differences, independent_aspects
from harness.errors import UserError
from harness.interview.draw import Interview, lines_of
from harness.recipes.known_edits import load_variants
from harness.recipes.recipe import SOLUTIONS, Edit, Recipe

FIXED, NAMED, CAUGHT = 12.0, 3.0, 5.0
FOLLOW_UP = 20.0
WRONG, MOST_WRONG = 5.0, 20.0
Measure = Callable[[str], Behaviour]
TextState = Literal["healthy", "broken", "other"]


@dataclass(frozen=True)
class FaultVerdict:
    """The verdict on one fault.

    how: "text", "behaviour", or "a person", who has to decide about lines that agree neither with a known fix nor with
    a known mask. caught_by: the tests that fail only because of this fault.
    """

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
class InterviewVerdict:
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

    measure: returns the behaviour of a source. Raises `UserError` if the script is not valid Python.
    """
    healthy = interview.healthy_source()
    _parse(source)
    reference = cache(lambda: measure(healthy))
    left = {one.id for one in interview.recipes() if text_state(one.breaks, source) == "broken"}
    found, alone = {}, {}
    for one in interview.recipes():
        # The other faults that are left are taken as given, so that their lines are no changes of the candidate.
        changes = _Changes(interview.source_with(left - {one.id}), healthy, source)
        places = changes.within(one)
        alone[one.id] = changes.apply(places)
        found[one.id] = _judge_fault(interview, one.id, alone[one.id], measure, reference)
    changes = _Changes(interview.source_with(left), healthy, source)
    own = {one.id: changes.within(one) for one in interview.recipes() if one.id not in left}
    rest = [place for place in changes.places if not any(place in places for places in own.values())]
    introduced = _apart(changes.apply(rest), healthy, measure, reference)
    for id in [id for id, (fixed, _) in found.items() if not fixed]:
        # A fault may also be fixed in other lines: then it and all changes that are not wrong are together as healthy.
        whole = _Changes(interview.source_with(left), interview.source_with({id} & left), source)
        places = [*rest, *chain.from_iterable(own[other] for other in own if other == id or found[other][0])]
        program = whole.apply(list(dict.fromkeys(places)))
        if _parse(program) == _parse(alone[id]):
            continue
        if not _apart(program, healthy, measure, reference):
            found[id], introduced = (True, "behaviour"), []
    return found, introduced


def _judge_fault(
    interview: Interview, id: str, source: str, measure: Measure, reference: Callable[[], Behaviour]
) -> tuple[bool, str]:
    """Judge the healthy script with only those changes of the candidate that touch the lines of one fault."""
    healthy, broken = interview.healthy_source(), interview.source_with([id])
    for program, fixed in ((healthy, True), (broken, False)):
        if _parse(source) == _parse(program):
            return fixed, "text"
    try:
        own = measure(source)
    except UserError:  # the lines need other changes of the candidate, or do not run
        return False, "behaviour"
    if not differences(own, reference()):
        return True, "behaviour"
    edits = load_variants(id) if SOLUTIONS.is_dir() else ()
    right = [edit.source(broken) for edit in edits if edit.verdict in ("full", "alternative")]
    if any(not differences(own, measure(program)) for program in right):
        return True, "behaviour"
    wrong = [broken, *(edit.source(broken) for edit in edits if edit.verdict == "masking")]
    known = any(not differences(own, measure(program)) for program in wrong)
    return False, "behaviour" if known else "a person"


def _apart(source: str, healthy: str, measure: Measure, reference: Callable[[], Behaviour]) -> list[str]:
    """Return in which aspects a program differs from the healthy one, as sentences."""
    if _parse(source) == _parse(healthy):
        return []
    try:
        found = differences(measure(source), reference())
    except UserError as error:
        return [f"the script fails: {str(error).splitlines()[0]}"]
    return [str(found[aspect]) for aspect in independent_aspects(found)]


@dataclass(frozen=True)
class _Place:
    """Lines of a script (from, to), and the lines that another script has in their place."""

    start: int
    end: int
    lines: tuple[str, ...]

    def touches(self, lines: set[int]) -> bool:
        """Return whether the place has one of these lines, or the gap beside one."""
        is_new = self.start == self.end
        return bool(lines & set(range(self.start - is_new, self.end + is_new)))


class _Changes:
    """The changes that make a base the candidate's script. They can be applied one by one, to the healthy script.

    The base is the healthy script with some faults.
    """

    def __init__(self, base: str, healthy: str, source: str) -> None:
        self._base = base
        self.places = _places_between(base, source)
        self._cures = _places_between(base, healthy)

    def within(self, recipe: Recipe) -> list[_Place]:
        """Return the changes at the lines that a fault changes, or in the gap beside them."""
        lines = lines_of(recipe, self._base)
        return [one for one in self.places if one.touches(lines)]

    def apply(self, places: Sequence[_Place]) -> str:
        """Return the healthy script with some of the changes."""
        lines = self._base.splitlines(keepends=True)
        taken = {number for one in places for number in range(one.start, one.end + 1)}
        cures = [one for one in self._cures if not taken & set(range(one.start, one.end + 1))]
        for one in sorted((*places, *cures), key=lambda place: -place.start):
            lines[one.start : one.end] = one.lines
        return "".join(lines)


def _places_between(one: str, two: str) -> list[_Place]:
    """Return the places at which two scripts differ."""
    lines, others = one.splitlines(keepends=True), two.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, lines, others, autojunk=False)
    return [
        _Place(start, end, tuple(others[first:last]))
        for tag, start, end, first, last in matcher.get_opcodes()
        if tag != "equal"
    ]


def require_python(source: str) -> None:
    """Raise `UserError` if the script is not valid Python."""
    _parse(source)


def _parse(source: str) -> str:
    """Return a text that is the same for equal programs, whatever their comments and layout."""
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError as error:
        raise UserError(f"train.py is not valid Python: line {error.lineno}: {error.msg}.") from None


def places_of(recipe: Recipe, healthy: str) -> set[str]:
    """Return the names of the functions and classes of the healthy script that a fault changes, or uses otherwise."""
    lines = {number + 1 for number in lines_of(recipe, healthy)}
    tree = ast.parse(healthy)
    defined = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    names = {node.name for node in defined}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.lineno in lines}
    return names & used | {
        node.name for node in defined if lines & set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    }


def named_places(notes: str) -> list[set[str]]:
    """Return the words of each line of the notes that starts with a dash and has a sentence after a colon."""
    found = []
    for line in notes.splitlines():
        place, _, sentence = line.strip().removeprefix("-").partition(":")
        if line.strip().startswith("-") and len(sentence.split()) > 2:
            found.append(set(re.findall(r"\w+", place)))
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
            problems.append(f"{test} fails on the healthy script, so it tests no fault.")
        elif variants:
            problems.append(f"{test} fails on a sound variant of the healthy script ({variants[0]}).")
        else:
            counted.append(test)
    return {
        # A program on which the tests did not end says nothing.
        fault: tuple(test for test in counted if found.get(test) is False)
        for fault, found in broken.items()
    }, problems


def verdict_of(
    interview: Interview,
    states: Mapping[str, tuple[bool, str]],
    introduced: Sequence[str],
    notes: str,
    caught: Mapping[str, tuple[str, ...]],
    bad_tests: Sequence[str],
    follow_up: Mapping[str, tuple[float, float, str]],
) -> InterviewVerdict:
    """Join the parts of a verdict."""
    healthy = interview.healthy_source()
    faults = tuple(
        FaultVerdict(one.id, *states[one.id], is_named(one, healthy, notes), caught.get(one.id, ()))
        for one in interview.recipes()
    )
    return InterviewVerdict(faults, tuple(introduced), tuple(bad_tests), follow_up)
