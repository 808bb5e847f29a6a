"""Draw the faults of an interview, and build the programs with some of them."""

import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from harness.errors import UserError, suggestion
from harness.recipes.recipe import Recipe, apply_edits, experiment_source, load_recipes

KINDS = {
    "gpt": ("char_gpt", "tales"),
    "classifier": ("digits_mixup", "digits"),
    "tabular": ("orders_table", "shipments"),
    "segmentation": ("cells_unet", "cells"),
    "ddp": ("shapes_ddp", "shapes"),
}
"""The kinds of interviews, each with the script that its faults are put into, and the script's data set."""
FAULTS = 4
_TRIES = 2000
_APART = 3  # lines between two faults: the judge must tell whose lines the candidate has changed


@dataclass(frozen=True)
class Interview:
    """The content of an interview: its kind, the seed of its runs, and the ids of the recipes whose faults it has.

    Without faults, this is what a candidate knows of an interview that somebody else has drawn.
    """

    kind: str
    seed: int
    faults: tuple[str, ...]

    @property
    def experiment(self) -> str:
        """The name of the healthy script."""
        return KINDS[self.kind][0]

    @property
    def dataset(self) -> str:
        """The name of the data set."""
        return KINDS[self.kind][1]

    def recipes(self) -> tuple[Recipe, ...]:
        """Return the recipe of each fault."""
        return tuple(_recipes_of(self.kind)[id] for id in self.faults)

    def healthy_source(self) -> str:
        """Return the source of the healthy script."""
        return experiment_source(self.experiment)

    def source_with(self, faults: Collection[str]) -> str:
        """Return the script with some of the faults."""
        return _with_faults(self.kind, [id for id in self.faults if id in faults])

    def broken_source(self) -> str:
        """Return the script with all faults."""
        return self.source_with(self.faults)


@cache
def _recipes_of(kind: str) -> dict[str, Recipe]:
    return {one.id: one for one in load_recipes()[0] if one.experiment == KINDS[kind][0]}


def _with_faults(kind: str, faults: Iterable[str]) -> str:
    """Return the script with these faults. Raises `ValueError` if their edits do not fit together."""
    source = experiment_source(KINDS[kind][0])
    for id in faults:
        source = apply_edits(source, _recipes_of(kind)[id].breaks, where=id)
    return source


def draw_interview(kind: str, seed: int, used: Collection[str] = ()) -> Interview:
    """Draw four faults that fit together, at most one of them without a symptom in the log, and none of `used`.

    If too few other faults are left, those that were used longest ago come again: `used` is in the order of use.
    Raises `UserError` for an unknown kind.
    """
    if kind not in KINDS:
        raise UserError(f"There is no interview of the kind {kind!r}: {suggestion(kind, list(KINDS))}")
    known = _recipes_of(kind)
    if len(known) < FAULTS:
        able = [name for name in KINDS if len(_recipes_of(name)) >= FAULTS]
        raise UserError(f"There are too few faults for a {kind} interview here: choose {' or '.join(able)}.")
    drawn = random.Random(f"{kind} {seed}")
    latest_first = [id for id in reversed([*used]) if id in known]
    for allowed in range(len(latest_first), -1, -1):
        left = sorted(known.keys() - set(latest_first[:allowed]))
        found = _draw(kind, left, drawn) if len(left) >= FAULTS else None
        if found is not None:
            return Interview(kind, seed, found)
    raise UserError(f"No four faults of {KINDS[kind][0]} fit together.")


def _draw(kind: str, ids: Sequence[str], drawn: random.Random) -> tuple[str, ...] | None:
    for _ in range(_TRIES):
        faults = tuple(drawn.sample(ids, FAULTS))
        silent = sum(not _recipes_of(kind)[id].symptoms for id in faults)
        if silent <= 1 and _fit(kind, faults):
            return faults
    return None


def lines_of(recipe: Recipe, source: str) -> set[int]:
    """Return the lines, counted from 0, of a source that a fault changes. The source must not have this fault."""
    found = set[int]()
    for edit in recipe.breaks:
        start = source.index(edit.find)
        found |= set(range(source.count("\n", 0, start), source.count("\n", 0, start + len(edit.find) - 1) + 1))
    return found


def _fit(kind: str, faults: Sequence[str]) -> bool:
    """Return whether each selection of the faults can be put into the script, in any order, with lines between them."""
    healthy = experiment_source(KINDS[kind][0])
    lines = [lines_of(_recipes_of(kind)[id], healthy) for id in faults]
    for one, two in combinations(lines, 2):
        if any(abs(a - b) < _APART for a in one for b in two):
            return False
    try:
        for count in range(2, len(faults) + 1):
            for some in combinations(faults, count):
                if _with_faults(kind, some) != _with_faults(kind, reversed(some)):
                    return False
    except ValueError:
        return False
    return True
