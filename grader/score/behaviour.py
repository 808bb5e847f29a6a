"""Choose the programs whose behaviour we measure to judge a fix, and compare the fix with them.

The behaviour of each program is measured in a separate replay. First we measure the fix, the reference fix, and, for
each break, the program with only this break. If the fix does not behave like the reference fix, we also measure the
correct fixes in `variants.toml` and the sound edits, which change the healthy experiment without breaking it.
`harness.behaviour.sound` makes the comparison.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from grader.replay.replay import Replay
from grader.replay.request import Request, Role, check_request
from grader.syntax.program import tree_digest
from harness.behaviour.compare import Behaviour, differences, independent_aspects
from harness.behaviour.sound import Break, Comparison, Example, SoundPrograms, aspects_of_break, compare, places_of
from harness.recipes.cases import Case
from harness.recipes.catalogue import load_recipe
from harness.recipes.known_edits import load_ranges, load_shared_edits, load_variants
from harness.recipes.recipe import Recipe, experiment_source

OWN_BEHAVIOUR: Role = "fixed behaviour"
REFERENCE_BEHAVIOUR: Role = "reference behaviour"
_BROKEN, _RIGHT, _SOUND = "broken behaviour ", "right ", "sound "
# If every number in a range is a correct fix, four programs are measured: with a wrong number below the range, with the
# lowest and the highest correct number, and with a wrong number above the range.
_BELOW, _LOWEST, _HIGHEST, _ABOVE = "below ", "lowest ", "highest ", "above "
_MASKED = "masked "
_ROLES: Mapping[str, str] = {"full": _RIGHT, "alternative": _RIGHT, "masking": _MASKED}


def behaviour_requests(requests: Mapping[Role, Request]) -> dict[Role, Request]:
    """Return the first requests: the behaviour of the fix, of the reference fix, and of programs with one break."""
    reference = requests["reference"]
    return {OWN_BEHAVIOUR: check_request(requests["fixed"], "behaviour"), **break_requests(reference)}


def break_requests(reference: Request) -> dict[Role, Request]:
    """Return the requests to measure the behaviour of the reference fix, and of each program with only one break."""
    wanted = {REFERENCE_BEHAVIOUR: check_request(reference, "behaviour")}
    breaks = {} if reference.recipe.is_healthy else {part.id: part.broken_source() for part in _parts(reference.recipe)}
    return wanted | {_BROKEN + cause: _own_request(reference, source) for cause, source in breaks.items()}


def sound_requests(reference: Request) -> dict[Role, Request]:
    """Return the requests for the behaviours of the other programs that the fix is compared with."""
    return {role: _own_request(reference, source) for role, source in _sound_programs(reference.recipe).items()}


def _own_request(reference: Request, source: str) -> Request:
    return check_request(replace(reference, source=source, tree=tree_digest(source), trusted=True), "behaviour")


def _parts(recipe: Recipe) -> Sequence[Recipe]:
    """Return the recipes whose breaks a case combines; for a recipe that is no case, the recipe itself."""
    return [load_recipe(cause) for cause in recipe.causes] if isinstance(recipe, Case) else [recipe]


@lru_cache(maxsize=256)
def _sound_programs(recipe: Recipe) -> Mapping[Role, str]:
    """Return the programs to compare a fix with: correct fixes, fixes that only mask the cause, and sound edits."""
    found: dict[Role, str] = {}
    for part in () if recipe.is_healthy else _parts(recipe):
        broken = part.broken_source()
        for item in load_variants(part.id):
            if item.verdict in _ROLES:
                found[f"{_ROLES[item.verdict]}{part.id} {item.id}"] = item.source(broken)
        for name, span in load_ranges(part.id).items():
            below, above = span.outside
            sides = {_BELOW: below, _LOWEST: span.right[0], _HIGHEST: span.right[1], _ABOVE: above}
            for side, number in sides.items():
                if number:
                    found[f"{side}{part.id} {name}"] = span.source(broken, number)
    healthy = recipe.healthy_source()
    # A decoy is healthy, but differs from its experiment. So a sound edit of the experiment may break the decoy.
    shared = load_shared_edits(recipe.experiment) if healthy == experiment_source(recipe.experiment) else ()
    found |= {f"{_SOUND}{item.id}": item.source(healthy) for item in shared if item.verdict == "sound"}
    return found


def comparison_of(replays: Mapping[Role, Replay]) -> Comparison | None:
    """Compare a fix with the other programs in these replays. Return None if its behaviour was not measured."""
    own = replays[OWN_BEHAVIOUR].behaviour if OWN_BEHAVIOUR in replays else None
    programs = sound_programs(replays)
    return None if own is None or programs is None else _compare(_Same(own), _Same(programs))


class _Same:
    """Equals only a wrapper of the same object, so that an object without a hash can be an argument of a cache."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value


@lru_cache(maxsize=8)  # the search for further replays and the score both compare
def _compare(own: _Same, programs: _Same) -> Comparison:
    return compare(own.value, programs.value)


def sound_programs(replays: Mapping[Role, Replay]) -> SoundPrograms | None:
    """Return the programs to compare a fix with, from their replays; None if the reference fix is missing.

    All submissions of an exercise share these replays, so the result for the same objects is kept.
    """
    found: dict[Role, Behaviour] = {
        role: one.behaviour for role, one in replays.items() if one.behaviour is not None and role != OWN_BEHAVIOUR
    }
    return _programs_of(tuple((role, _Same(one)) for role, one in found.items()))


@lru_cache(maxsize=64)
def _programs_of(behaviours: tuple[tuple[Role, _Same], ...]) -> SoundPrograms | None:
    found: dict[Role, Behaviour] = {role: one.value for role, one in behaviours}
    if (reference := found.get(REFERENCE_BEHAVIOUR)) is None:
        return None
    breaks = [
        _break(role.removeprefix(_BROKEN), one, reference, found)
        for role, one in found.items()
        if role.startswith(_BROKEN)
    ]
    sound = [one for role, one in found.items() if role.startswith(_SOUND)]
    return SoundPrograms(reference=reference, breaks=tuple(breaks), sound=tuple(sound))


def _break(id: str, broken: Behaviour, reference: Behaviour, found: Mapping[Role, Behaviour]) -> Break:
    changed = tuple(differences(broken, reference))
    edited = independent_aspects(changed)
    right: list[Example] = []
    doubtful: list[Example] = []
    masked: list[Example] = []
    for role, one in found.items():
        if role.startswith((f"{_RIGHT}{id} ", f"{_MASKED}{id} ")):
            # Also use the aspects in which a variant differs from the broken program, because a variant may keep the
            # broken function and change the code that calls it: it may fix a broken network in the training step.
            aspects = dict.fromkeys((*edited, *aspects_of_break(one, reference), *aspects_of_break(one, broken)))
            places = places_of(broken, [reference, one], [*aspects])
            example = Example(aspects=tuple(aspects), behaviour=one, places=places)
            (right if role.startswith(_RIGHT) else masked).append(example)
        elif role.startswith(f"{_LOWEST}{id} "):
            name = role.removeprefix(_LOWEST)
            high = found[_HIGHEST + name]
            places = places_of(broken, [reference, one, high], edited)
            right.append(Example(aspects=edited, behaviour=one, other_end=high, places=places))
            for end, wrong in ((one, found.get(_BELOW + name)), (high, found.get(_ABOVE + name))):
                if wrong is not None:
                    doubtful.append(Example(aspects=edited, behaviour=end, other_end=wrong))
    return Break(
        id=id,
        edited=edited,
        changed=changed,
        right=tuple(right),
        doubtful=tuple(doubtful),
        masked=tuple(masked),
        places=places_of(broken, [reference], edited),
        broken=broken,
    )
