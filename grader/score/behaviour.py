"""Is a fixed program the healthy one, wherever the break could act?

The behaviour of the fix (`harness.behaviour`) is compared with the behaviour of sound programs: the reference fix, the
right fixes in `variants.toml` and, where nothing was broken, the sound edits of the experiment. The break itself says
where it acts: in the aspects in which the broken program differs from the healthy one. Their roots are the functions
that the break edits. A cause is fixed if all roots are those of one right program, or if network and loss differ but
make the same steps and evaluations together.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from grader.intake.program import tree_digest
from grader.replay.replay import Replay
from grader.replay.request import Request, Role, check_request
from grader.score.solutions import load_ranges, load_shared_edits, load_variants
from harness.behaviour.compare import (
    Behaviour,
    Difference,
    below,
    difference,
    differences,
    lies_between,
    lost_features,
    roots,
)
from harness.cases import Case
from harness.recipe import Recipe, load_recipe

OWN_BEHAVIOUR: Role = "fixed behaviour"
REFERENCE_BEHAVIOUR: Role = "reference behaviour"
_BROKEN, _RIGHT, _SOUND, _LOW, _HIGH = "broken behaviour ", "right ", "sound ", "low ", "high "
_RIGHT_VERDICTS = ("full", "alternative")
# What network and loss do together: a softmax may move from one to the other.
_TOGETHER = frozenset({"network", "loss"})
_SINKS = ("step", "step at the start", "first steps", "evaluation of the network", "serving")


@dataclass(frozen=True)
class Cause:
    """What became of one break: `left` is the figure that is not that of a right program, None if it is fixed.

    as_before: that figure's aspect is still exactly as in the broken program.
    """

    id: str
    left: Difference | None
    as_before: bool


@dataclass(frozen=True)
class Comparison:
    """A fix beside the sound programs.

    other: the figures of places that were not broken in which the fix differs from all of them. lost: features of the
    healthy program that no longer act. other_loss: the loss is another one that is right.
    """

    causes: tuple[Cause, ...]
    other: tuple[Difference, ...]
    lost: tuple[str, ...]
    other_loss: bool = False

    @property
    def is_right(self) -> bool:
        """Whether the program is a right one in every aspect that was measured."""
        return not (self.left or self.other or self.lost)

    @property
    def left(self) -> tuple[Cause, ...]:
        """The causes that are not fixed."""
        return tuple(cause for cause in self.causes if cause.left is not None)


def behaviour_requests(requests: Mapping[Role, Request]) -> dict[Role, Request]:
    """Return the behaviours to measure first: of the fix, the reference fix, and each single break."""
    fixed, reference = requests["fixed"], requests["reference"]
    wanted: dict[Role, Request] = {
        OWN_BEHAVIOUR: check_request(fixed, "behaviour"),
        REFERENCE_BEHAVIOUR: check_request(reference, "behaviour"),
    }
    for cause, source in _single_breaks(reference.recipe).items():
        wanted[_BROKEN + cause] = _ours(reference, source)
    return wanted


def sound_requests(requests: Mapping[Role, Request]) -> dict[Role, Request]:
    """Return the behaviours of the other sound programs, for a fix that does not do what the reference fix does."""
    reference = requests["reference"]
    return {role: _ours(reference, source) for role, source in _sound_programs(reference.recipe).items()}


def _ours(reference: Request, source: str) -> Request:
    return check_request(replace(reference, source=source, tree=tree_digest(source), trusted=True), "behaviour")


def _parts(recipe: Recipe) -> Sequence[Recipe]:
    """Return the recipes of which a case is made; a recipe is its own."""
    return [load_recipe(cause) for cause in recipe.causes] if isinstance(recipe, Case) else [recipe]


@lru_cache(maxsize=256)
def _single_breaks(recipe: Recipe) -> Mapping[str, str]:
    """Return the program with each single break of a recipe, by cause."""
    return {} if recipe.is_healthy else {part.id: part.broken_source() for part in _parts(recipe)}


@lru_cache(maxsize=256)
def _sound_programs(recipe: Recipe) -> Mapping[Role, str]:
    """Return the source of each right fix and each sound edit that we know, by its role."""
    found: dict[Role, str] = {}
    if not recipe.is_healthy:
        for part in _parts(recipe):
            for item in load_variants(part.id):
                if item.verdict in _RIGHT_VERDICTS:
                    found[f"{_RIGHT}{part.id} {item.id}"] = item.source(part.broken_source())
            for span in load_ranges(part.id):
                low, high = span.ends(part.broken_source())
                found |= {f"{_LOW}{part.id} {span.id}": low, f"{_HIGH}{part.id} {span.id}": high}
    for item in load_shared_edits(recipe.experiment):
        if item.verdict == "sound":
            found[f"{_SOUND}{item.id}"] = item.source(recipe.healthy_source())
    return found


def compare(recipe: Recipe, replays: Mapping[Role, Replay]) -> Comparison | None:
    """Compare a fix with the sound programs whose behaviours are here; None if its behaviour could not be measured."""
    found: dict[Role, Behaviour] = {
        role: replay.behaviour for role, replay in replays.items() if replay.behaviour is not None
    }
    own, reference = found.get(OWN_BEHAVIOUR), found.get(REFERENCE_BEHAVIOUR)
    if own is None or reference is None:
        return None
    apart = differences(own, reference)
    breaks = {role.removeprefix(_BROKEN): one for role, one in found.items() if role.startswith(_BROKEN)}
    right: list[Behaviour] = [reference]
    causes: list[Cause] = []
    accepted: set[str] = set()
    for id, broken in breaks.items():
        edited = roots(differences(broken, reference))
        examples = [_Example(reference, edited)]
        for role, one in found.items():
            if role.startswith(f"{_RIGHT}{id} "):
                examples.append(_Example(one, {*edited, *roots(differences(one, reference))}))
            elif role.startswith(f"{_LOW}{id} "):
                examples.append(_Example(one, edited, found[_HIGH + role.removeprefix(_LOW)]))
        right += [one.behaviour for one in examples[1:]]
        fixed_like = next((one for one in examples if one.is_like(own)), None)
        if fixed_like is not None:
            accepted |= {aspect for aspect in fixed_like.aspects if aspect in apart}
        elif set(edited) <= _TOGETHER and not apart.keys() & set(_SINKS):
            accepted |= _TOGETHER
        else:
            wrong = [aspect for aspect in edited if aspect in apart]
            before = [aspect for aspect in wrong if difference(aspect, own, broken) is None]
            causes.append(Cause(id, apart[(before or wrong or list(apart))[0]], bool(before)))
            accepted |= set(edited)
            continue
        causes.append(Cause(id, None, False))
    sound = [*right, *(one for role, one in found.items() if role.startswith(_SOUND))]
    accepted |= {aspect for aspect in apart if any(difference(aspect, own, one) is None for one in sound[1:])}
    other = [aspect for aspect in apart if aspect not in accepted and not below(aspect) & apart.keys()]
    return Comparison(
        causes=tuple(causes),
        other=tuple(apart[aspect] for aspect in other),
        lost=lost_features(own, [*right, *breaks.values()]),
        other_loss="loss" in apart and "loss" in accepted,
    )


@dataclass(frozen=True)
class _Example:
    """A right program, and the aspects in which a fix must agree with it; with `high`, lie between the two."""

    behaviour: Behaviour
    aspects: Collection[str]
    high: Behaviour | None = None

    def is_like(self, own: Behaviour) -> bool:
        """Return whether a program does in these aspects what this one does."""
        if self.high is not None:
            return all(lies_between(aspect, own, self.behaviour, self.high) for aspect in self.aspects)
        return all(difference(aspect, own, self.behaviour) is None for aspect in self.aspects)
