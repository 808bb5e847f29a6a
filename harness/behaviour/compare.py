"""Compare the behaviour of two programs, aspect by aspect, within rounding.

Measurements on all recipes show that each break changes at least one aspect. The `independent_aspects` are the changed
aspects that do not depend on another changed aspect: they are the functions that the break edits.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

BehaviourNumber = float | str
Behaviour = Mapping[str, Mapping[str, Sequence[BehaviourNumber]]]
"""Lists of numbers by aspect and figure (a named value), from `harness.behaviour.probes.measure_behaviour`."""


@dataclass(frozen=True)
class Aspect:
    """One part of a program's behaviour, such as its loss or its evaluation.

    `rests_on` names the aspects that may change this one. Two lists of numbers agree if no pair differs by more than
    `rounding` times the largest number in the lists, or by more than `least`. With `by_entry`, the largest number of
    each pair counts instead.
    """

    name: str
    rests_on: tuple[str, ...] = ()
    rounding: float = 1e-4
    by_entry: bool = False
    least: float = 1e-12


# Two programs differ clearly if they are at least this many roundings apart: a third cannot agree with both.
_CLEARLY = 3.0
# The cosine between two differences from the healthy program. Unrelated differences have about 0.
_PARALLEL = 0.8
# These figures exist only if the measurement finds the gradient scaler of the program.
_OF_SCALERS = "another factor"
# Sizes: a correct program may share them with the broken program.
_COUNTS = frozenset({"rows", "shape", "steps", "parameters"})
_MADE_OF = ("training data", "network", "loss")
ASPECTS: Mapping[str, Aspect] = {
    aspect.name: aspect
    for aspect in (
        Aspect("training data", rounding=3e-4),
        Aspect("validation data", rounding=3e-4),
        # A network is built 40 times. The mean norm of a tensor with ten numbers then varies by 4 %.
        Aspect("first weights", rounding=0.15, by_entry=True),
        Aspect("batches", ("training data",)),
        # Statistics over 60 batches of 48 examples. Only a random program has any, so this does not rest on "batches".
        Aspect("augmentation", ("training data",), rounding=0.06),
        Aspect("network", ("training data",)),
        # In float32, logsumexp of outputs around 20 is exact to 1e-6.
        Aspect("loss", ("training data",), least=1e-6),
        Aspect("update rule", ("training data",), rounding=1e-3),
        # float16 rounds to 5e-4.
        Aspect("step", _MADE_OF, rounding=3e-3),
        Aspect("step at the start", (*_MADE_OF, "batches", "augmentation", "first weights", "step"), rounding=3e-3),
        # Other random initial weights change losses and moves by up to a third.
        Aspect("first steps", ("step at the start", "update rule"), rounding=0.4, by_entry=True),
        Aspect("evaluation", ("validation data", "loss")),
        Aspect("evaluation of the network", ("evaluation", "network")),
        Aspect("serving", ("network", "step at the start", "first steps")),
        Aspect("end of an epoch", ("network", "serving")),
        Aspect("resuming", ("network", "step at the start", "update rule", "first steps")),
    )
}
# At a small loss, a gradient is a small difference of large numbers, so rounding matters more: native and portable
# kernels differ by up to 1 % there, and two factors of a scaler by 3 % in float16.
_OF_SMALL_LOSS, _MORE_ROUNDING = "small loss", 15
FEATURES = "features"
"""A further key of a behaviour: for each feature of the program, whether it is active (1 or 0)."""
RAISES = "raises"
"""The figure of an aspect whose measurement fails: it holds the name of the error."""
NOT_EXECUTED = "not executed"
"""A further key of a behaviour: statements that no probe executes, by function; see `NEVER_CALLED`."""
NEVER_CALLED = "(never called)"
"""The first entry of a function in `NOT_EXECUTED` if no probe calls it."""


# The update rule is measured at the first steps and at some later steps.
_STEPS = {"0": "first step", "1": "second step", "2": "third step"}


def _in_words(figure: str) -> str:
    """Return the name of a figure in words for students."""
    return re.sub(r"point (\d+)$", lambda found: _STEPS.get(found[1], "a later step"), figure)


@dataclass(frozen=True)
class Difference:
    """A figure of an aspect in which two programs differ, with the pair of numbers that differs most."""

    aspect: str
    figure: str
    own: BehaviourNumber | None
    other: BehaviourNumber | None

    def __str__(self) -> str:
        own, other = (f"{one:.4g}" if isinstance(one, float) else one for one in (self.own, self.other))
        return f"{self.aspect} ({_in_words(self.figure)}): {own}; in the healthy program {other}"


@cache
def _aspect_of(aspect: str, figure: str) -> Aspect:
    """Return an aspect with the rounding that applies to one of its figures."""
    found = ASPECTS[aspect]
    more = _MORE_ROUNDING if figure.startswith(_OF_SMALL_LOSS) else 1
    return replace(found, rounding=more * found.rounding)


def difference(aspect: str, own: Behaviour, other: Behaviour) -> Difference | None:
    """Return the largest difference between two programs in an aspect, or None if they agree within rounding."""
    mine, theirs = own.get(aspect, {}), other.get(aspect, {})
    worst, found = 1.0, None
    for figure in {**theirs, **mine}:
        if figure.startswith(_OF_SCALERS) and not (figure in mine and figure in theirs):
            continue
        apart, pair = _distance(mine.get(figure, ()), theirs.get(figure, ()), _aspect_of(aspect, figure))
        if apart > worst:
            worst, found = apart, Difference(aspect, figure, *pair)
    return found


def differences(own: Behaviour, other: Behaviour) -> dict[str, Difference]:
    """Return the largest difference of each aspect in which two programs differ."""
    found = {aspect: difference(aspect, own, other) for aspect in ASPECTS}
    return {aspect: one for aspect, one in found.items() if one is not None}


def independent_aspects(aspects: Iterable[str]) -> tuple[str, ...]:
    """Return the given aspects that do not depend, even indirectly, on another given aspect."""
    found = set(aspects)
    return tuple(name for name in ASPECTS if name in found and not found & dependencies_of(name))


@cache
def dependencies_of(aspect: str) -> frozenset[str]:
    """Return all aspects that an aspect depends on, directly or indirectly."""
    direct = ASPECTS[aspect].rests_on
    return frozenset(direct).union(*map(dependencies_of, direct))


def lies_between(aspect: str, own: Behaviour, low: Behaviour, high: Behaviour) -> bool:
    """Return whether each number of an aspect is between the numbers of two other programs, within rounding."""
    mine, *ends = (one.get(aspect, {}) for one in (own, low, high))
    if not mine.keys() == ends[0].keys() == ends[1].keys():
        return False
    return all(_between(mine[figure], ends[0][figure], ends[1][figure], _aspect_of(aspect, figure)) for figure in mine)


def agrees_with_broken(aspect: str, own: Behaviour, broken: Behaviour, reference: Behaviour) -> bool:
    """Return whether a figure of an aspect agrees with the broken program and not with the healthy one."""
    mine, theirs, right = (one.get(aspect, {}) for one in (own, broken, reference))
    return any(
        _distance(mine[figure], numbers, _aspect_of(aspect, figure))[0] <= 1
        and _distance(mine[figure], right.get(figure, ()), _aspect_of(aspect, figure))[0] > _CLEARLY
        for figure, numbers in theirs.items()
        if figure in mine and figure not in _COUNTS
    )


def goes_towards(aspect: str, own: Behaviour, broken: Behaviour, reference: Behaviour) -> bool:
    """Return whether a program differs from the healthy one in the direction of the broken one, and not by more."""
    mine, theirs, right = (one.get(aspect, {}) for one in (own, broken, reference))
    product, own_square, their_square = 0.0, 0.0, 0.0
    for figure, numbers in right.items():
        triples = list(zip(mine.get(figure, ()), theirs.get(figure, ()), numbers, strict=False))
        if len(triples) < len(numbers) or any(isinstance(one, str) for triple in triples for one in triple):
            continue
        largest = max(_largest(numbers for triple in triples for numbers in triple), 1e-12)
        for one, two, three in triples:
            moved, wrong = (float(end) - float(three) for end in (one, two))
            product += moved * wrong / largest**2
            own_square, their_square = own_square + (moved / largest) ** 2, their_square + (wrong / largest) ** 2
    if not own_square or not their_square:
        return False
    return product / math.sqrt(own_square * their_square) > _PARALLEL and product <= 1.1 * their_square


def is_conditional(own: Behaviour, reference: Behaviour) -> Difference | None:
    """Return a difference in a step that occurs only at a small loss or at one factor of a gradient scaler, else None.

    On usual inputs, such a program makes the same steps as the healthy one, so it depends on the state of the training.
    """
    mine, theirs = own.get("step", {}), reference.get("step", {})
    pairs = {
        figure: _distance(mine[figure], theirs[figure], _aspect_of("step", figure))
        for figure in mine.keys() & theirs.keys()
    }
    apart = {figure: pair for figure, (roundings, pair) in pairs.items() if roundings > 1}
    if any(figure.startswith("usual inputs") for figure in apart):
        return None
    figure = next((one for one in sorted(apart) if one.startswith((_OF_SMALL_LOSS, _OF_SCALERS))), None)
    return None if figure is None else Difference("step", figure, *apart[figure])


def have_one_form(aspect: str, own: Behaviour, other: Behaviour) -> bool:
    """Return whether two programs have the same figures in an aspect, with lists of the same lengths."""
    mine, theirs = ({figure: len(numbers) for figure, numbers in one.get(aspect, {}).items()} for one in (own, other))
    return mine == theirs


def places_apart(aspect: str, own: Behaviour, other: Behaviour) -> dict[str, tuple[int, ...]]:
    """Return the places where the lists of an aspect differ, by figure; empty if the aspect has another form."""
    if not have_one_form(aspect, own, other):
        return {}
    found = {}
    for figure, mine in own.get(aspect, {}).items():
        theirs = other[aspect][figure]
        largest = _largest((*mine, *theirs))
        pairs = enumerate(zip(mine, theirs, strict=True))
        found[figure] = tuple(
            place for place, pair in pairs if _roundings(pair, largest, _aspect_of(aspect, figure)) > 1
        )
    return {figure: places for figure, places in found.items() if places}


def at_places(aspect: str, behaviour: Behaviour, places: Mapping[str, Sequence[int]]) -> Behaviour:
    """Return a behaviour in which the lists of one aspect are reduced to these places."""
    table = behaviour[aspect]
    return {**behaviour, aspect: {figure: [table[figure][place] for place in places[figure]] for figure in places}}


def lost_features(own: Behaviour, others: Sequence[Behaviour]) -> tuple[str, ...]:
    """Return the features that are less active in this program than in every one of the other programs."""
    tables = [one.get(FEATURES, {}) for one in others]
    mine = own.get(FEATURES, {})
    least = {name: min(_number(table.get(name)) for table in tables) for name in tables[0]}
    return tuple(name for name, wanted in least.items() if _number(mine.get(name)) < wanted)


def find_unmeasured(own: Behaviour, reference: Behaviour) -> dict[str, str]:
    """Return the aspects whose measurement fails for a program but not for the reference, with the error."""
    every = (*ASPECTS, FEATURES)
    raised = {aspect: str(own[aspect][RAISES][0]) for aspect in every if RAISES in own.get(aspect, {})}
    return {aspect: error for aspect, error in raised.items() if RAISES not in reference.get(aspect, {})}


def not_executed(own: Behaviour, others: Sequence[Behaviour]) -> tuple[str, ...]:
    """Return the statements that no probe executes, without those that no probe executes in another program, either.

    A function that is never called and that no other program contains has no effect, so it is left out.
    """
    tables = [one.get(NOT_EXECUTED, {}) for one in others]
    found: list[str] = []
    for name, texts in own.get(NOT_EXECUTED, {}).items():
        known = {text for table in tables for text in table.get(name, ())}
        if NEVER_CALLED in texts and not any(name in table for table in tables):
            continue
        found += [str(text) for text in texts if text not in known and text != NEVER_CALLED]
    return tuple(found)


def _number(values: Sequence[BehaviourNumber] | None) -> float:
    return float(values[0]) if values else 0.0


def _distance(
    own: Sequence[BehaviourNumber], other: Sequence[BehaviourNumber], aspect: Aspect
) -> tuple[float, tuple[BehaviourNumber | None, ...]]:
    """Return how many roundings two lists differ by, and the pair of numbers that differs most."""
    if len(own) != len(other):
        return math.inf, (own[0] if own else None, other[0] if other else None)
    largest = _largest((*own, *other))
    worst: tuple[float, tuple[BehaviourNumber | None, ...]] = 0.0, (None, None)
    for pair in zip(own, other, strict=True):
        worst = max(worst, (_roundings(pair, largest, aspect), pair), key=lambda one: one[0])
    return worst


def _roundings(pair: tuple[BehaviourNumber, BehaviourNumber], largest: float, aspect: Aspect) -> float:
    one, two = pair
    if isinstance(one, str) or isinstance(two, str):
        return 0.0 if one == two else math.inf
    scale = max(abs(one), abs(two)) if aspect.by_entry else largest
    return abs(one - two) / max(aspect.rounding * scale, aspect.least)


def _between(
    own: Sequence[BehaviourNumber], low: Sequence[BehaviourNumber], high: Sequence[BehaviourNumber], aspect: Aspect
) -> bool:
    if not len(own) == len(low) == len(high):
        return False
    # Round each end separately: the lower end may be far smaller than the higher one.
    slack = [max(aspect.rounding * _largest(end), aspect.least) for end in (low, high)]
    for one, *ends in zip(own, low, high, strict=True):
        if isinstance(one, str) or any(isinstance(end, str) for end in ends):
            if one not in ends:
                return False
            continue
        bounds = [(float(end) - least, float(end) + least) for end, least in zip(ends, slack, strict=True)]
        if not min(bounds)[0] <= one <= max(bound for _, bound in bounds):
            return False
    return True


def _largest(numbers: Iterable[BehaviourNumber]) -> float:
    return max((abs(one) for one in numbers if not isinstance(one, str)), default=0.0)
