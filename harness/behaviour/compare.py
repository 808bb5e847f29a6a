"""Compare the measured behaviour of two programs, aspect by aspect; numbers are equal up to a rounding tolerance.

An aspect is one part of a program, such as its loss. Measurements on all recipes show that each break changes at least
one aspect. The function `independent_aspects` returns the changed aspects that do not depend on another changed aspect.
These aspects correspond to the functions that the break edits.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

BehaviourNumber = float | str
Behaviour = Mapping[str, Mapping[str, Sequence[BehaviourNumber]]]
"""For each aspect, named lists of numbers, as `harness.behaviour.probes.measure_behaviour` returns them.

The comments and docstrings of this package call such a named list a figure.
"""


@dataclass(frozen=True)
class Aspect:
    """One part of a program's behaviour, such as its loss or its evaluation.

    `rests_on` names other aspects: a change in them may also change this aspect. Two lists of numbers agree if each
    pair of numbers differs by at most `rounding` times the largest number in the two lists, or by at most `least`. With
    `by_entry`, `rounding` is multiplied by the larger number of each pair instead.
    """

    name: str
    rests_on: tuple[str, ...] = ()
    rounding: float = 1e-4
    by_entry: bool = False
    least: float = 1e-12


# Two programs differ clearly if their difference is more than this number times the rounding tolerance. Then no third
# program can agree with both.
_CLEARLY = 3.0
# Two differences from the healthy program have the same direction if their cosine is above this number. The cosine
# of unrelated differences is about 0.
_PARALLEL = 0.8
# Figures whose name starts with this text exist only if the measurement finds the program's gradient scaler.
_OF_SCALERS = "another factor"
# Figures that are numbers of rows, steps and so on. A correct program may have the same ones as the broken program.
_COUNTS = frozenset({"rows", "shape", "steps", "parameters"})
_MADE_OF = ("training data", "network", "loss")
_OF_BATCHES = ("training data", "batches", "augmentation")
ASPECTS: Mapping[str, Aspect] = {
    aspect.name: aspect
    for aspect in (
        Aspect("training data", rounding=3e-4),
        Aspect("validation data", rounding=3e-4),
        # A network is built 40 times. The mean norm of a tensor with ten numbers still varies by 4 %.
        Aspect("first weights", rounding=0.15, by_entry=True),
        Aspect("batches", ("training data",)),
        # The statistics come from 60 batches of 48 examples. They exist only if the program prepares batches at random,
        # so this aspect does not depend on "batches".
        Aspect("augmentation", ("training data",), rounding=0.06),
        Aspect("network", ("training data",)),
        # In float32, logsumexp of outputs around 20 has a rounding error of about 1e-6.
        Aspect("loss", ("training data",), least=1e-6),
        Aspect("update rule", ("training data",), rounding=1e-3),
        # The relative rounding error of float16 is 5e-4.
        Aspect("step", _MADE_OF, rounding=3e-3),
        Aspect("step at the start", (*_MADE_OF, "batches", "augmentation", "first weights", "step"), rounding=3e-3),
        # Different random initial weights change the losses and the weight updates by up to a third.
        Aspect("first steps", ("step at the start", "gradients", "update rule"), rounding=0.4, by_entry=True),
        Aspect("evaluation", ("validation data", "loss")),
        Aspect("evaluation of the network", ("evaluation", "network")),
        Aspect("serving", ("network", "step at the start", "first steps")),
        # The following aspects are those of scripts, with the data, the first weights and the update rule.
        Aspect("resuming", ("first steps",)),
        Aspect("modes"),
        Aspect("precision"),
        Aspect("outputs", _OF_BATCHES),
        Aspect("losses", ("outputs", *_OF_BATCHES), least=1e-6),
        Aspect("gradients", ("losses",), rounding=3e-3),
        # A rounding error can change the class of an example near a boundary.
        Aspect("validation", ("validation data", "outputs", *_OF_BATCHES), rounding=3e-3),
        Aspect("evaluated weights", ("update rule", "first weights"), rounding=1e-3),
        Aspect("saved weights", ("evaluated weights", "outputs", *_OF_BATCHES), rounding=1e-3),
        Aspect("evaluation of the checkpoint", ("validation", "saved weights"), rounding=3e-3),
        Aspect("end of the run", ("evaluation of the checkpoint",), rounding=3e-3),
    )
}
# If the loss is small, the gradient is a small difference of large numbers, so rounding errors are larger. The
# gradients of native and portable kernels then differ by up to 1 %. In float16, gradients at two scales of a gradient
# scaler differ by 3 %.
_OF_SMALL_LOSS, _MORE_ROUNDING = "small loss", 15
FEATURES = "features"
"""A key of a behaviour next to the aspects: for each feature of the program, whether it is active (1 or 0)."""
RAISES = "raises"
"""If the measurement of an aspect fails, a figure with this name contains the name of the exception."""
NOT_EXECUTED = "not executed"
"""A key of a behaviour next to the aspects: for each function, the statements that the measurement never executes."""
NEVER_CALLED = "(never called)"
"""The first entry for a function in `NOT_EXECUTED` if the measurement never calls the function."""


# Readable names for the optimizer steps at which the update rule is measured: the first three and some later ones.
_STEPS = {"0": "first step", "1": "second step", "2": "third step"}


def _in_words(figure: str) -> str:
    """Return the name of a figure (a named list of numbers) in words that students understand."""
    return re.sub(r"point (\d+)$", lambda found: _STEPS.get(found[1], "a later step"), figure)


@dataclass(frozen=True)
class Difference:
    """A difference between two programs: the aspect, the figure, and the two numbers in it that differ most."""

    aspect: str
    figure: str
    own: BehaviourNumber | None
    other: BehaviourNumber | None

    def __str__(self) -> str:
        own, other = (f"{one:.4g}" if isinstance(one, float) else one for one in (self.own, self.other))
        return f"{self.aspect} ({_in_words(self.figure)}): {own}; in the healthy program {other}"


@cache
def _aspect_of(aspect: str, figure: str) -> Aspect:
    """Return an aspect with the rounding tolerance for one of its figures, which is larger at a small loss."""
    found = ASPECTS[aspect]
    more = _MORE_ROUNDING if figure.startswith(_OF_SMALL_LOSS) else 1
    return replace(found, rounding=more * found.rounding)


def difference(aspect: str, own: Behaviour, other: Behaviour) -> Difference | None:
    """Return the largest difference between two programs in one aspect, or None if they are equal up to rounding."""
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
    """Return {aspect: largest difference} for the aspects in which two programs differ."""
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
    """Return whether each number of one aspect lies between the same numbers of two other programs, up to rounding."""
    mine, *ends = (one.get(aspect, {}) for one in (own, low, high))
    if not mine.keys() == ends[0].keys() == ends[1].keys():
        return False
    return all(_between(mine[figure], ends[0][figure], ends[1][figure], _aspect_of(aspect, figure)) for figure in mine)


def agrees_with_broken(aspect: str, own: Behaviour, broken: Behaviour, *healthy: Behaviour) -> bool:
    """Return whether some figure of an aspect agrees with the broken program but with no healthy one.

    Empty figures do not count, because a network without statistics has none in any program.
    """
    mine, theirs = own.get(aspect, {}), broken.get(aspect, {})
    right = [one[aspect] for one in healthy if aspect in one]
    return any(
        _distance(mine[figure], numbers, _aspect_of(aspect, figure))[0] <= 1
        and all(_distance(mine[figure], one.get(figure, ()), _aspect_of(aspect, figure))[0] > _CLEARLY for one in right)
        for figure, numbers in theirs.items()
        if figure in mine and figure not in _COUNTS and (len(mine[figure]) or len(numbers))
    )


def goes_towards(aspect: str, own: Behaviour, broken: Behaviour, reference: Behaviour) -> bool:
    """Return whether a program lies in the direction from the healthy to the broken program, and at most as far."""
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
    """Return a difference in a training step that occurs only at a small loss or at one gradient scale, else None.

    On usual inputs, a program with such a difference makes the same steps as the healthy program. So its steps depend
    on the state of the training.
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
    """Return whether two programs have figures with the same names and the same lengths in an aspect."""
    mine, theirs = ({figure: len(numbers) for figure, numbers in one.get(aspect, {}).items()} for one in (own, other))
    return mine == theirs


def places_apart(aspect: str, own: Behaviour, other: Behaviour) -> dict[str, tuple[int, ...]]:
    """Return {figure: indices of the numbers that differ} for an aspect; {} if figures or lengths do not match."""
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
    """Return a copy of a behaviour in which the lists of one aspect contain only the numbers at the given indices."""
    table = behaviour[aspect]
    return {**behaviour, aspect: {figure: [table[figure][place] for place in places[figure]] for figure in places}}


def lost_features(own: Behaviour, others: Sequence[Behaviour]) -> tuple[str, ...]:
    """Return the features, such as dropout, that are less active in a program than in each of the other programs."""
    tables, mine = [_features(one) for one in others], _features(own)
    least = {name: min(_number(table.get(name)) for table in tables) for name in tables[0]}
    return tuple(name for name, wanted in least.items() if _number(mine.get(name)) < wanted)


def _features(behaviour: Behaviour) -> Mapping[str, Sequence[BehaviourNumber]]:
    """Return the features of a program. A script shuffles if its epochs have different orders."""
    orders = behaviour.get("batches", {}).get("different orders")
    return {**behaviour.get(FEATURES, {}), **({"shuffling": orders} if orders else {})}


def find_unmeasured(own: Behaviour, reference: Behaviour) -> dict[str, str]:
    """Return {aspect: error} for the aspects whose measurement fails for a program but not for the reference fix."""
    every = (*ASPECTS, FEATURES)
    raised = {aspect: str(own[aspect][RAISES][0]) for aspect in every if RAISES in own.get(aspect, {})}
    return {aspect: error for aspect, error in raised.items() if RAISES not in reference.get(aspect, {})}


def not_executed(own: Behaviour, others: Sequence[Behaviour]) -> tuple[str, ...]:
    """Return the statements of a program that its measurement never executes.

    A statement is left out if it is in another program, too, and is never executed there. A function that is never
    called is left out if no other program contains it, because then it has no effect.
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
    """Return the difference of two lists as a multiple of the rounding tolerance, and the pair that differs most."""
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
