"""Decide whether a program behaves like the healthy one, by comparing its behaviour with several sound programs.

A break acts in the aspects in which the broken program differs from the healthy one. The roots of these aspects are the
functions that the break edits. A cause is fixed in two cases: all these roots agree with one correct program, or
network and loss differ but together make the same steps and evaluations. In all other aspects, a program may do
anything that a sound edit of the experiment does.
"""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from harness.behaviour.compare import (
    FEATURES,
    RAISES,
    Behaviour,
    Difference,
    agrees_with_broken,
    at_places,
    dependencies_of,
    difference,
    differences,
    find_unmeasured,
    goes_towards,
    have_one_form,
    independent_aspects,
    is_conditional,
    lies_between,
    lost_features,
    not_executed,
    places_apart,
)
from harness.errors import UserError
from harness.formats.toml_file import StrictModel

# Network and loss may share work in different ways: a softmax may move from one to the other.
_TOGETHER = frozenset({"network", "loss"})
_SINKS = frozenset({"step", "step at the start", "first steps", "evaluation of the network", "serving"})
# A loss with other targets, for example of mixed examples, has another floor.
_OF_LOSS = ("loss", "batches", "augmentation")
_EXACT = frozenset({"evaluation", "evaluation of the network", "serving", "end of an epoch", "resuming"})
# Another optimizer, learning rate or schedule is correct if a sound edit of the experiment uses it.
_RULE = "update rule"
_BY_PARAMETER = frozenset({_RULE, "first weights"})
_OF_DATA = frozenset({"training data", "validation data", "batches", "augmentation"})
_LIST = Field(strict=False)
# The places of a list, by aspect and figure.
Places = dict[str, dict[str, Annotated[tuple[int, ...], _LIST]]]


class Example(StrictModel):
    """A correct program. A fix that agrees with it in `aspects` has fixed the cause.

    other_end: a second program whose edit differs in one number; a fix may lie anywhere between the two.
    places: the parameters that the break changes or that this program fixes, in aspects with a number per parameter.
    """

    aspects: Annotated[tuple[str, ...], _LIST]
    behaviour: Behaviour
    other_end: Behaviour | None = None
    places: Places = Field(default_factory=dict)

    def agrees_with(self, own: Behaviour, *, everywhere: bool = True) -> bool:
        """Return whether a program agrees with this one in `aspects`: `everywhere`, or only at `places`."""
        ends = [self.behaviour] if self.other_end is None else [self.behaviour, self.other_end]
        for aspect in self.aspects:
            if not everywhere and (where := self.places.get(aspect)):
                if not all(have_one_form(aspect, own, end) for end in ends):
                    return False
                own, *ends = (at_places(aspect, one, where) for one in (own, *ends))
            if len(ends) == 1 and difference(aspect, own, ends[0]) is not None:
                return False
            if len(ends) == 2 and not lies_between(aspect, own, *ends):
                return False
        return True

    def shorten(self) -> "Example":
        """Return a copy with only the aspects that `agrees_with` and the comparison of features use."""
        wanted = {*self.aspects, FEATURES}
        end = self.other_end
        return Example(
            aspects=self.aspects,
            behaviour={name: one for name, one in self.behaviour.items() if name in wanted},
            other_end=end and {name: one for name, one in end.items() if name in wanted},
            places=self.places,
        )


class Break(StrictModel):
    """One break: the aspects that it edits, all aspects that it changes, and further correct programs.

    doubtful: correct programs, each with the nearest wrong program as `other_end`. A person decides on fixes between.
    masked: known fixes that do not remove the cause.
    places: the parameters that the break changes, in the aspects with a number per parameter.
    broken: the broken program, if it is available.
    """

    id: str
    edited: Annotated[tuple[str, ...], _LIST]
    changed: Annotated[tuple[str, ...], _LIST]
    right: Annotated[tuple[Example, ...], _LIST] = ()
    doubtful: Annotated[tuple[Example, ...], _LIST] = ()
    masked: Annotated[tuple[Example, ...], _LIST] = ()
    places: Places = Field(default_factory=dict)
    broken: Behaviour | None = None


class SoundPrograms(StrictModel):
    """The behaviours of the reference fix, of correct fixes of each break, and of sound edits of the experiment."""

    format_version: Literal[1] = 1
    reference: Behaviour
    breaks: Annotated[tuple[Break, ...], _LIST] = ()
    sound: Annotated[tuple[Behaviour, ...], _LIST] = ()

    def shorten(self) -> "SoundPrograms":
        """Return a copy for a student's machine, without broken programs and with only the aspects that count.

        Of sound edits, keep only the aspects that no check judges: metrics and answers that they edit. If a break edits
        only the update rule, keep the update rule, too.
        """
        rule = {_RULE} if any(one.edited == (_RULE,) for one in self.breaks) else set()
        wanted = [(one, rule | _EXACT & set(aspects_of_break(one, self.reference))) for one in self.sound]
        sound = tuple({name: one[name] for name in sorted(names) if name in one} for one, names in wanted if names)
        breaks = [
            Break(
                id=one.id,
                edited=one.edited,
                changed=one.changed,
                places=one.places,
                right=tuple(example.shorten() for example in one.right),
                doubtful=tuple(example.shorten() for example in one.doubtful),
            )
            for one in self.breaks
        ]
        return SoundPrograms(reference=self.reference, breaks=tuple(breaks), sound=sound)


def encode(programs: SoundPrograms) -> bytes:
    """Return sound programs as a compressed text that nobody can read at a glance: it would reveal the break."""
    data = programs.model_dump(mode="json", exclude_none=True)
    text = json.dumps(_round(data), separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(text, 9)) + b"\n"


def _round(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _round(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_round(value) for value in data]
    return float(f"{data:.6g}") if isinstance(data, float) else data


def read_sound_programs(path: Path) -> SoundPrograms | None:
    """Return the sound programs of an exercise from a file, or None if they were never measured.

    Raises `UserError` if the file contains anything else.
    """
    try:
        return SoundPrograms.model_validate_json(zlib.decompress(base64.b64decode(path.read_bytes())))
    except FileNotFoundError:
        return None
    except (ValidationError, ValueError, zlib.error):
        raise UserError(f"{path} does not contain behaviours of this version. Restore the original file.") from None


@dataclass(frozen=True)
class BreakState:
    """The state of one break: `difference` is a difference from all correct programs, None if the break is fixed.

    as_before: in some figure, or on some parameter, the program still agrees with the broken one, and its other
        functions do not compensate.
    weaker: it differs from the healthy program in the direction of the broken one, but less; or it is a known fix that
        does not remove the cause.
    doubtful: it is not known to be wrong. Its number is close to a correct one, its answers are unchanged but its
        training data are not, or a measurement failed.
    """

    id: str
    difference: Difference | None = None
    as_before: bool = False
    weaker: bool = False
    doubtful: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether the remaining difference is in a result with one correct value: metric, answer, saved state."""
        return self.difference is not None and self.difference.aspect in _EXACT


@dataclass(frozen=True)
class Comparison:
    """A fix compared with the sound programs.

    causes: the state of each break.
    other: differences from all sound programs, in aspects that were not broken.
    lost: features of the correct programs that are no longer active.
    other_loss: the loss is correct, but not the loss of the reference fix.
    other_data: the data differ from the data of the reference fix.
    not_executed: statements of the fix that no measurement executes.
    conditional: a step that differs only in some states of the training.
    other_network: a correct network that differs from the reference fix fixes a cause.
    unmeasured: aspects whose measurement fails for the fix.
    """

    causes: tuple[BreakState, ...]
    other: tuple[Difference, ...]
    lost: tuple[str, ...]
    other_loss: bool = False
    other_data: bool = False
    not_executed: tuple[str, ...] = ()
    conditional: Difference | None = None
    other_network: bool = False
    unmeasured: tuple[str, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether the program is correct in every aspect that was measured."""
        return not (self.open_causes or self.other or self.lost)

    @property
    def newly_wrong(self) -> tuple[Difference, ...]:
        """Differences in metrics, answers, saved or resumed states that were not broken but are now wrong."""
        return tuple(one for one in self.other if one.aspect in _EXACT and one.aspect not in self.unmeasured)

    @property
    def open_causes(self) -> tuple[BreakState, ...]:
        """The causes that are not fixed."""
        return tuple(cause for cause in self.causes if cause.difference is not None)


def aspects_of_break(broken: Behaviour, reference: Behaviour) -> tuple[str, ...]:
    """Return the aspects that a break edits, or in which a correct fix differs from the reference fix."""
    return independent_aspects(differences(broken, reference))


def compare(own: Behaviour, programs: SoundPrograms) -> Comparison:
    """Compare a program with the sound programs and return the result."""
    reference = programs.reference
    apart = differences(own, reference)
    causes: list[BreakState] = []
    accepted: set[str] = set()
    other_network = False
    for one in programs.breaks:
        if _act_together(one, apart):
            accepted |= _TOGETHER
        examples = (Example(aspects=one.edited, behaviour=reference, places=one.places), *one.right)
        example = next((item for item in examples if item.agrees_with(own, everywhere=False)), None)
        if example is not None:
            other_network |= "network" in example.aspects and "network" in apart
            # Parameters that the break does not change are judged separately.
            wholly = example.agrees_with(own)
            accepted |= {aspect for aspect in example.aspects if wholly or aspect not in example.places}
            causes.append(BreakState(one.id))
        elif _is_fixed_otherwise(one, programs, own, apart):
            causes.append(BreakState(one.id))
        else:
            accepted |= set(one.edited)
            causes.append(_state_of(one, own, reference, apart))
    right = [reference, *(item.behaviour for one in programs.breaks for item in one.right)]
    accepted |= {
        aspect
        for aspect in apart
        if any(difference(aspect, own, one) is None for one in (*right, *programs.sound) if aspect in one)
    }
    right_step = "step" in accepted or not apart.keys().isdisjoint(dependencies_of("step"))
    # If an aspect depends on another aspect that differs, this explains its own difference.
    other = [aspect for aspect in apart if aspect not in accepted and not dependencies_of(aspect) & apart.keys()]
    for place, one in enumerate(programs.breaks):
        if causes[place].difference is None and (
            still := [aspect for aspect in other if aspect in one.changed and aspect not in one.places]
        ):
            causes[place] = BreakState(one.id, apart[still[0]])
    return Comparison(
        causes=tuple(causes),
        other=tuple(apart[aspect] for aspect in other),
        lost=() if RAISES in own.get(FEATURES, {}) else lost_features(own, right),
        other_loss=any(aspect in apart and aspect in accepted for aspect in _OF_LOSS),
        other_data=not apart.keys().isdisjoint(("training data", "validation data")),
        other_network=other_network,
        unmeasured=tuple(find_unmeasured(own, reference)),
        conditional=None if right_step else is_conditional(own, reference),
        not_executed=not_executed(own, [reference, *(one.broken for one in programs.breaks if one.broken)]),
    )


def _is_fixed_otherwise(one: Break, programs: SoundPrograms, own: Behaviour, apart: Mapping[str, Difference]) -> bool:
    """Return whether a break is fixed in one of three other ways.

    Only another break still acts; the update rule is sound; or network and loss together act as in the reference.
    """
    if any(_is_mask(own, example) for example in one.masked):
        return False
    if one.edited == (_RULE,) and any(difference(_RULE, own, sound) is None for sound in programs.sound):
        return True
    if set(one.edited) <= _TOGETHER and _act_together(one, apart):
        return True
    return _only_others_act(one, programs.breaks, own)


def _only_others_act(one: Break, breaks: Sequence[Break], own: Behaviour) -> bool:
    """Return whether a program agrees with another break's program in all aspects that this break changes."""
    others = [other.broken for other in breaks if other.id != one.id and other.broken is not None]
    return any(all(difference(aspect, own, other) is None for aspect in one.changed) for other in others)


def _act_together(one: Break, apart: Mapping[str, Difference]) -> bool:
    """Return whether a different network and a different loss together give the steps and evaluations of the reference.

    The break must be visible in steps or evaluations.
    """
    return bool(_SINKS & set(one.changed)) and apart.keys() >= _TOGETHER and not apart.keys() & _SINKS


def places_of(broken: Behaviour, right: Sequence[Behaviour], aspects: Sequence[str]) -> Places:
    """Return the parameters in which a broken program differs from a correct one, as places by aspect and figure.

    Only aspects with a number per parameter have places, and only if all programs have the same parameters.
    """
    found: Places = {}
    for aspect in _BY_PARAMETER.intersection(aspects):
        if all(have_one_form(aspect, broken, one) for one in right):
            tables = [places_apart(aspect, broken, one) for one in right]
            names = dict.fromkeys(name for table in tables for name in table)
            found[aspect] = {name: tuple(sorted({*chain(*(one.get(name, ()) for one in tables))})) for name in names}
    return {aspect: places for aspect, places in found.items() if places}


def _state_of(one: Break, own: Behaviour, reference: Behaviour, apart: Mapping[str, Difference]) -> BreakState:
    wrong: Sequence[str] = [aspect for aspect in one.edited if aspect in apart] or list(apart)
    before: list[str] = []
    weaker = any(_is_mask(own, example) for example in one.masked)
    if (broken := one.broken) is not None:
        if not _is_made_up_for(one, apart):
            before = [aspect for aspect in wrong if _is_as_before(aspect, one, own, broken, reference)]
            if any(_is_fixed_elsewhere(example, before, own, broken) for example in one.right):
                before = []
        # Only for data: fewer wrong examples are a weaker break. A correct loss or update rule may look like one.
        weaker |= any(goes_towards(aspect, own, broken, reference) for aspect in wrong if aspect in _OF_DATA)
    left = apart[(before or wrong)[0]]
    doubtful = any(_is_doubtful(own, example) for example in one.doubtful)
    # The fix may have changed the training data to match the answers.
    doubtful |= left.aspect == "serving" and "training data" in apart and "training data" not in one.changed
    doubtful |= left.aspect in find_unmeasured(own, reference)
    return BreakState(one.id, left, bool(before), weaker, doubtful)


def _is_mask(own: Behaviour, example: Example) -> bool:
    """Return whether a program agrees with a known mask (a fix that does not remove the cause), also in its steps."""
    return example.agrees_with(own) and difference("step", own, example.behaviour) is None


def _is_fixed_elsewhere(example: Example, before: Sequence[str], own: Behaviour, broken: Behaviour) -> bool:
    """Return whether a correct program explains everything that a program still has in common with the broken one.

    This is so if the program differs from the broken one at every place where the correct program does.
    """
    if not before or not set(before) <= _BY_PARAMETER or example.other_end is not None:
        return False
    for aspect in before:
        if not (have_one_form(aspect, own, broken) and have_one_form(aspect, example.behaviour, broken)):
            return False
        right, mine = (places_apart(aspect, one, broken) for one in (example.behaviour, own))
        if not right or any(not set(places) <= set(mine.get(figure, ())) for figure, places in right.items()):
            return False
    return True


def _is_made_up_for(one: Break, apart: Mapping[str, Difference]) -> bool:
    """Return whether the changed functions together have the same effect as in the healthy program."""
    shown = _SINKS & set(one.changed) - set(one.edited)
    return bool(shown) and shown.isdisjoint(apart)


def _is_as_before(aspect: str, one: Break, own: Behaviour, broken: Behaviour, reference: Behaviour) -> bool:
    """Return whether the break still acts in an aspect, in some figure or on some parameter."""
    if difference(aspect, own, broken) is None:
        return True
    if aspect not in _BY_PARAMETER:
        return agrees_with_broken(aspect, own, broken, reference)
    if not all(have_one_form(aspect, own, other) for other in (broken, reference)):
        return False
    return any(
        agrees_with_broken(
            aspect, *(at_places(aspect, program, {figure: (place,)}) for program in (own, broken, reference))
        )
        for figure, places in one.places.get(aspect, {}).items()
        for place in places
    )


def _is_doubtful(own: Behaviour, example: Example) -> bool:
    wrong = Example(aspects=example.aspects, behaviour=example.other_end or {})
    return example.agrees_with(own) and not wrong.agrees_with(own)
