"""Decide whether a program behaves like the healthy one, by comparing its behaviour with several correct programs.

An aspect is one part of a program's behaviour, such as its loss. A break changes some aspects: in these aspects, the
broken program differs from the healthy one. Some of the changed aspects do not depend on another changed aspect. They
are called edited, because they belong to the functions that the break edits. A break counts as fixed in two cases: all
its edited aspects agree with one correct program, or network and loss differ but together give the same steps and
evaluations. In all other aspects, a program may do anything that a known correct edit of the experiment does.
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

# Network and loss are judged together, because a fix may move the softmax from one to the other. The losses of a script
# are computed from its network's outputs, so only the outputs may differ.
_TOGETHER = (frozenset({"network", "loss"}), frozenset({"outputs"}))
_SINKS = frozenset(
    {"step", "step at the start", "first steps", "evaluation of the network", "serving", "losses", "gradients",
     "validation", "end of the run"}
)  # fmt: skip
# If a fix changes one of these aspects, its loss may have a different lowest value, for example with mixup.
_OF_LOSS = ("loss", "losses", "batches", "augmentation")
_EXACT = frozenset(
    {"evaluation", "evaluation of the network", "serving", "resuming", "validation",
     "evaluated weights", "saved weights", "evaluation of the checkpoint", "end of the run"}
)  # fmt: skip
# A fix may use another optimizer, learning rate or schedule if a known correct edit of the experiment uses it.
_RULE = "update rule"
_BY_PARAMETER = frozenset({_RULE, "first weights"})
_OF_DATA = frozenset({"training data", "validation data", "batches", "augmentation"})
# The feature is measured by the effect of scaled inputs, which depends on the network.
_THROUGH_NETWORK = frozenset({"clipping"})
_LIST = Field(strict=False)
# For each aspect and for each figure (a named list of numbers), the indices of some numbers in this list.
Places = dict[str, dict[str, Annotated[tuple[int, ...], _LIST]]]


class Example(StrictModel):
    """A correct program. A fix that agrees with it in `aspects` has fixed the cause.

    other_end: a second correct program, which differs in one number. The number of a fix may lie between the two.
    places: for aspects with one number per parameter, the indices of the parameters that the break changes or that this
        program fixes.
    """

    aspects: Annotated[tuple[str, ...], _LIST]
    behaviour: Behaviour
    other_end: Behaviour | None = None
    places: Places = Field(default_factory=dict)

    def agrees_with(self, own: Behaviour, *, everywhere: bool = True) -> bool:
        """Return whether a program agrees with this example in all `aspects`.

        Unless `everywhere` is set, only the parameters in `places` are compared.
        """
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

    def shorten(self, reference: Behaviour) -> "Example":
        """Return a copy with only the features, `aspects`, and the aspects that differ from the reference fix."""
        wanted = {*self.aspects, *differences(self.behaviour, reference), FEATURES}
        end = self.other_end
        return Example(
            aspects=self.aspects,
            behaviour={name: one for name, one in self.behaviour.items() if name in wanted},
            other_end=end and {name: one for name, one in end.items() if name in wanted},
            places=self.places,
        )


class Break(StrictModel):
    """The effects of one break, and its known correct and wrong fixes.

    edited: the changed aspects that do not depend on another changed aspect.
    changed: all aspects in which the broken program differs from the reference fix.
    right: known correct fixes other than the reference fix.
    doubtful: correct fixes, each with the nearest wrong fix as `other_end`. The instructor decides about a fix between
        the two.
    masked: known fixes that do not remove the cause.
    places: for aspects with one number per parameter, the indices of the parameters that the break changes.
    broken: the behaviour of the broken program, if it is available.
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
    """The behaviours of the reference fix, of other correct fixes for each break, and of correct edits."""

    format_version: Literal[1] = 1
    reference: Behaviour
    breaks: Annotated[tuple[Break, ...], _LIST] = ()
    sound: Annotated[tuple[Behaviour, ...], _LIST] = ()

    def shorten(self) -> "SoundPrograms":
        """Return a copy for a student's machine, without broken programs and with only the aspects that are used there.

        For each correct edit of the experiment, keep only the aspects that it edits and that no check judges: metrics,
        predictions, saved states, and aspects that a break changes. If a break edits only the update rule, keep the
        update rule, too, unless the edit is a known mask of the break.
        """
        judged = _EXACT.union(*(one.changed for one in self.breaks))
        ruled = [one for one in self.breaks if one.edited == (_RULE,)]
        sound = []
        for edit in self.sound:
            masks = any(_is_mask(edit, example) for one in ruled for example in one.masked)
            names = judged & set(aspects_of_break(edit, self.reference)) | ({_RULE} if ruled else set())
            if kept := {name: edit[name] for name in sorted(names - ({_RULE} if masks else set())) if name in edit}:
                sound.append(kept)
        breaks = [
            Break(
                id=one.id,
                edited=one.edited,
                changed=one.changed,
                places=one.places,
                right=tuple(example.shorten(self.reference) for example in one.right),
                doubtful=tuple(example.shorten(self.reference) for example in one.doubtful),
            )
            for one in self.breaks
        ]
        return SoundPrograms(reference=self.reference, breaks=tuple(breaks), sound=tuple(sound))


def encode(programs: SoundPrograms) -> bytes:
    """Return the behaviours as a compressed base64 text, because a readable text would reveal the break to students."""
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
    """Read the behaviours of an exercise's correct programs from a file; return None if the file does not exist.

    Raises `UserError` if the file does not contain such behaviours.
    """
    try:
        return SoundPrograms.model_validate_json(zlib.decompress(base64.b64decode(path.read_bytes())))
    except FileNotFoundError:
        return None
    except (ValidationError, ValueError, zlib.error):
        raise UserError(f"{path} was not written by this version of trainwreck. Restore the original file.") from None


@dataclass(frozen=True)
class BreakState:
    """Whether a program fixes one break, and how it differs from the correct programs.

    difference: a difference from all correct programs; None if the break is fixed.
    as_before: whether some figure or parameter still agrees with the broken program, and the program's other functions
        do not compensate for this.
    weaker: whether the program has a weaker form of the break, or a known fix that does not remove the cause.
    doubtful: whether the instructor must decide. This is so if a number is near the limit of the correct range, if the
        training data changed but the predictions did not, or if a measurement failed.
    """

    id: str
    difference: Difference | None = None
    as_before: bool = False
    weaker: bool = False
    doubtful: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether the difference is in a metric, a prediction or a saved state, which have only one correct value."""
        return self.difference is not None and self.difference.aspect in _EXACT


@dataclass(frozen=True)
class Comparison:
    """The result of comparing a fix with the correct programs.

    causes: the state of each break.
    other: differences from all correct programs, in aspects that no break edits.
    lost: the features of all correct programs that are less active in the fix.
    other_loss: whether the loss is correct, but differs from the loss of the reference fix.
    other_data: whether the data differ from the data of the reference fix.
    not_executed: the statements of the fix that no measurement executes.
    conditional: a difference in a step that occurs only in some states of the training, or None.
    other_network: whether a break is fixed by a correct network that differs from the network of the reference fix.
    unmeasured: the aspects whose measurement fails for the fix.
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
        """Differences in metrics, predictions, saved or resumed states that the fix made wrong."""
        return tuple(one for one in self.other if one.aspect in _EXACT and one.aspect not in self.unmeasured)

    @property
    def open_causes(self) -> tuple[BreakState, ...]:
        """The causes that are not fixed."""
        return tuple(cause for cause in self.causes if cause.difference is not None)


def aspects_of_break(broken: Behaviour, reference: Behaviour) -> tuple[str, ...]:
    """Return the aspects that a break edits, or in which a correct fix differs from the reference fix."""
    return independent_aspects(differences(broken, reference))


def compare(own: Behaviour, programs: SoundPrograms) -> Comparison:
    """Compare the behaviour of a program with the behaviour of the correct programs and return the result."""
    reference = programs.reference
    apart = differences(own, reference)
    causes: list[BreakState] = []
    accepted: set[str] = set()
    other_network = False
    for one in programs.breaks:
        accepted |= _act_together(one, apart)
        examples = (Example(aspects=one.edited, behaviour=reference, places=one.places), *one.right)
        example = next((item for item in examples if item.agrees_with(own, everywhere=False)), None)
        if example is not None:
            other_network |= "network" in example.aspects and "network" in apart
            # If only parameters that the break does not change differ, the aspect is not accepted: they are judged
            # below.
            wholly = example.agrees_with(own)
            accepted |= {aspect for aspect in example.aspects if wholly or aspect not in example.places}
            causes.append(BreakState(one.id))
        elif _is_fixed_otherwise(one, programs, own, apart):
            causes.append(BreakState(one.id))
        else:
            accepted |= set(one.edited)
            causes.append(_state_of(one, own, programs, apart))
    right = [reference, *(item.behaviour for one in programs.breaks for item in one.right)]
    accepted |= {
        aspect
        for aspect in apart
        if any(difference(aspect, own, one) is None for one in (*right, *programs.sound) if aspect in one)
    }
    right_step = "step" in accepted or not apart.keys().isdisjoint(dependencies_of("step"))
    # Leave out an aspect that depends on another differing aspect, because that one explains the difference.
    other = [aspect for aspect in apart if aspect not in accepted and not dependencies_of(aspect) & apart.keys()]
    for place, one in enumerate(programs.breaks):
        if causes[place].difference is None and (
            still := [aspect for aspect in other if aspect in one.changed and aspect not in one.places]
        ):
            causes[place] = BreakState(one.id, apart[still[0]])
    return Comparison(
        causes=tuple(causes),
        other=tuple(apart[aspect] for aspect in other),
        lost=_lost(own, right, apart),
        other_loss=any(aspect in apart and aspect in accepted for aspect in _OF_LOSS),
        other_data=not apart.keys().isdisjoint(("training data", "validation data")),
        other_network=other_network,
        unmeasured=tuple(find_unmeasured(own, reference)),
        conditional=None if right_step else is_conditional(own, reference),
        not_executed=not_executed(own, [reference, *(one.broken for one in programs.breaks if one.broken)]),
    )


def _lost(own: Behaviour, right: Sequence[Behaviour], apart: Mapping[str, Difference]) -> tuple[str, ...]:
    """Return the features that a program disables. Unknown features count as present."""
    if RAISES in own.get(FEATURES, {}):
        return ()
    # A network with batch norm ignores the scale of its inputs, which looks like clipping.
    unknown = _THROUGH_NETWORK if "network" in apart else frozenset()
    return tuple(name for name in lost_features(own, right) if name not in unknown)


def _is_fixed_otherwise(one: Break, programs: SoundPrograms, own: Behaviour, apart: Mapping[str, Difference]) -> bool:
    """Return whether a break is fixed although its edited aspects agree with no correct fix.

    There are three such cases: the program behaves like one in which only another break remains, the update rule agrees
    with a correct edit of the experiment, or network and loss together have the same effect as in the reference fix.
    """
    if any(_is_mask(own, example) for example in one.masked):
        return False
    if one.edited == (_RULE,) and any(difference(_RULE, own, sound) is None for sound in programs.sound):
        return True
    if set(one.edited) <= _act_together(one, apart):
        return True
    return _only_others_act(one, programs.breaks, own)


def _only_others_act(one: Break, breaks: Sequence[Break], own: Behaviour) -> bool:
    """Return whether a program agrees with another break's broken program in all aspects that this break changes."""
    others = [other.broken for other in breaks if other.id != one.id and other.broken is not None]
    return any(all(difference(aspect, own, other) is None for aspect in one.changed) for other in others)


def _act_together(one: Break, apart: Mapping[str, Difference]) -> frozenset[str]:
    """Return the aspects that differ from the reference fix, but together give the same results; or an empty set.

    The results are training steps, evaluations and predictions; the break must change at least one of them.
    """
    if not _SINKS & set(one.changed) or apart.keys() & _SINKS:
        return frozenset()
    return next((group for group in _TOGETHER if apart.keys() >= group), frozenset())


def places_of(broken: Behaviour, right: Sequence[Behaviour], aspects: Sequence[str]) -> Places:
    """Return {aspect: {figure: indices of the parameters in which a broken program differs from a correct one}}.

    The result contains only aspects with one number per parameter, and only if all programs have the same parameters.
    """
    found: Places = {}
    for aspect in _BY_PARAMETER.intersection(aspects):
        if all(have_one_form(aspect, broken, one) for one in right):
            tables = [places_apart(aspect, broken, one) for one in right]
            names = dict.fromkeys(name for table in tables for name in table)
            found[aspect] = {name: tuple(sorted({*chain(*(one.get(name, ()) for one in tables))})) for name in names}
    return {aspect: places for aspect, places in found.items() if places}


def _state_of(one: Break, own: Behaviour, programs: SoundPrograms, apart: Mapping[str, Difference]) -> BreakState:
    reference = programs.reference
    wrong: Sequence[str] = [aspect for aspect in one.edited if aspect in apart] or list(apart)
    before: list[str] = []
    weaker = any(_is_mask(own, example) for example in one.masked)
    if (broken := one.broken) is not None:
        if not _is_made_up_for(one, apart):
            before = [aspect for aspect in wrong if _is_as_before(aspect, one, own, broken, programs)]
            if any(_is_fixed_elsewhere(example, before, own, broken) for example in one.right):
                before = []
        # This holds only for data, where fewer wrong examples are a weaker break. A correct loss or update rule may
        # also lie in the direction of the broken one.
        weaker |= any(goes_towards(aspect, own, broken, reference) for aspect in wrong if aspect in _OF_DATA)
    left = apart[(before or wrong)[0]]
    doubtful = any(_is_doubtful(own, example) for example in one.doubtful)
    # The fix may have changed the training data so that they match the served predictions.
    doubtful |= left.aspect == "serving" and "training data" in apart and "training data" not in one.changed
    doubtful |= left.aspect in find_unmeasured(own, reference)
    # With another network or update rule, a correct program has other answers and saved states, too.
    doubtful |= left.aspect in _EXACT and not before and not dependencies_of(left.aspect).isdisjoint(apart)
    return BreakState(one.id, left, bool(before), weaker, doubtful)


def _is_mask(own: Behaviour, example: Example) -> bool:
    """Return whether a program agrees with a known fix that does not remove the cause, also in its training steps."""
    return example.agrees_with(own) and difference("step", own, example.behaviour) is None


def _is_fixed_elsewhere(example: Example, before: Sequence[str], own: Behaviour, broken: Behaviour) -> bool:
    """Return whether a program changes every parameter of the broken program that a correct program changes.

    If so, the parameters that the program did not change are not wrong.
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
    """Return whether steps, evaluations and predictions that a break changes are now as in the healthy program."""
    shown = _SINKS & set(one.changed) - set(one.edited)
    return bool(shown) and shown.isdisjoint(apart)


def _is_as_before(aspect: str, one: Break, own: Behaviour, broken: Behaviour, programs: SoundPrograms) -> bool:
    """Return whether an aspect of the fixed program equals the broken program in at least one value or parameter."""
    if difference(aspect, own, broken) is None:
        return True
    if aspect not in _BY_PARAMETER:
        return agrees_with_broken(aspect, own, broken, programs.reference, *programs.sound)
    if not all(have_one_form(aspect, own, other) for other in (broken, programs.reference)):
        return False
    return any(
        agrees_with_broken(
            aspect, *(at_places(aspect, item, {figure: (place,)}) for item in (own, broken, programs.reference))
        )
        for figure, places in one.places.get(aspect, {}).items()
        for place in places
    )


def _is_doubtful(own: Behaviour, example: Example) -> bool:
    wrong = Example(aspects=example.aspects, behaviour=example.other_end or {})
    return example.agrees_with(own) and not wrong.agrees_with(own)
