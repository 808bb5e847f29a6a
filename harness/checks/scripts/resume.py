"""Run a script until it has saved twice, continue it from its first checkpoint, and compare.

A run that resumes from its checkpoint must make the same updates, log the same metrics and save the same state as a run
that was never interrupted. If the checkpoint lacks some state, or the script does not restore it, this state starts
again: for example the moments of an optimizer, an average of the weights, the position in an epoch, or the state of a
random generator. Only a run that is interrupted shows it.
"""

import io
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from harness.checks.core.finding import Finding, Table, short
from harness.errors import UserError
from harness.scripts.observation import Ends, Observation, observe
from harness.scripts.script import ScriptSubject

_SHOWN = 10  # rows of the table


def measure(subject: ScriptSubject) -> Finding:
    """Compare what follows the first checkpoint, until the second one, with and without an interruption."""
    if not subject.script.can_resume:
        return Finding("not-resumed", "the script has no option --resume", {})
    whole = observe(subject.script, subject.data, subject.settings, "natural", ends=_has_saved(2))
    if len(whole.saved) < 2:
        return Finding("not-resumed", "the script saves fewer than two checkpoints", {})
    (at, checkpoint), (end, wanted) = whole.saved[:2]
    try:
        resumed = observe(
            subject.script, subject.data, subject.settings, "natural", resume_from=checkpoint, ends=_has_saved(1)
        )
    except UserError as error:
        return Finding("fails", f"continued after {at} updates, the script fails: {error}", {})
    updates, saved = end - at, resumed.saved[0] if resumed.saved else (resumed.made, b"")
    losses = [(sum(one), sum(other)) for one, other in zip(whole.losses[at:end], resumed.losses, strict=False)]
    figures = [one for place, one in whole.figures if place > at], [one for _, one in resumed.figures]
    table = Table("After the interruption", ("update", "loss", "loss, interrupted"), tuple(
        (at + number, *pair) for number, pair in enumerate(losses[:_SHOWN])))  # fmt: skip
    measured = {"interrupted after update": at, "updates until the next checkpoint": updates}
    outcome, text = _compare(updates, saved, losses, figures, wanted)
    return Finding(outcome, f"interrupted after {at} updates; {text}", measured, tables=(table,))


def _compare(
    updates: int,
    saved: tuple[int, bytes],
    losses: list[tuple[float, float]],
    figures: tuple[list[dict[str, float]], list[dict[str, float]]],
    wanted: bytes,
) -> tuple[str, str]:
    """Return the outcome and its reason; see `measure` for the values."""
    if losses and losses[0][0] != losses[0][1]:
        return "other-draws", f"the next loss is {short(losses[0][1])} instead of {short(losses[0][0])}"
    for number, (one, other) in enumerate(losses):
        if one != other:
            return "departs", f"from the {number + 1}th update on, the losses differ: {short(other)}, not {short(one)}"
    if saved[0] != updates:
        return "other-updates", f"the next checkpoint comes after {saved[0]} updates instead of {updates}"
    for one_record, other_record in zip(*figures, strict=False):
        for name in one_record:
            if one_record[name] != other_record.get(name):
                values = f"{short(other_record.get(name))} instead of {short(one_record[name])}"
                return "other-figures", f"the losses are the same, but {name} is {values}"
    if differing := [name for name, same in _entries(wanted, saved[1]) if not same]:
        return "other-state", f"losses and metrics are the same, but the checkpoint differs in {differing[0]}"
    return "continues", f"{updates} updates later, everything is the same"


def _entries(one: bytes, other: bytes) -> Iterator[tuple[str, bool]]:
    """Yield for each entry of a checkpoint its name, and whether another checkpoint has the same value there."""
    first, second = (torch.load(io.BytesIO(content), weights_only=False) for content in (one, other))
    yield from _same_entries("", first, second)


def _same_entries(name: str, one: Any, other: Any) -> Iterator[tuple[str, bool]]:
    parts = dict(enumerate(one)) if isinstance(one, list | tuple) else one
    others = dict(enumerate(other)) if isinstance(other, list | tuple) else other
    if isinstance(parts, Mapping) and isinstance(others, Mapping):
        for key in parts:
            yield from _same_entries(f"{name}[{key!r}]", parts[key], others.get(key))
    elif isinstance(one, Tensor) and isinstance(other, Tensor):
        yield name, one.shape == other.shape and bool((one == other).all())
    else:
        yield name, type(one) is type(other) and bool(one == other)


def _has_saved(times: int) -> Ends:
    def ends(seen: Observation) -> bool:
        return len(seen.saved) >= times

    return ends
