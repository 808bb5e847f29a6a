"""Read the known edits of experiments from `solutions/`, each with the verdict that the grader must give.

`<experiment>.edits.toml` contains edits of the *healthy* experiment, which all recipes for this experiment share.
`<id>/variants.toml` contains edits of the *broken* experiment of one recipe. Both files are optional. They have one
table for each verdict, with entries `id = [[find, replace], ...]`. If the break is a wrong number, a table
`[range.<name>]` says which numbers are right.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from harness.formats.toml_file import StrictModel, read_record
from harness.recipes.recipe import SOLUTIONS, Edit, Recipe, apply_edits, edit_of

# full: the reference fix, or a fix with the same effect. alternative: a different correct fix. masking: the symptom
# disappears, but the cause remains. overreach: a correct fix that also changes correct code. wrong: fixes nothing.
# sound: a harmless change of a healthy experiment. half: fixes only one of two causes.
Verdict = Literal["full", "alternative", "masking", "overreach", "wrong", "sound", "half"]


_SomeEdits = Annotated[tuple[Annotated[Edit, BeforeValidator(edit_of)], ...], Field(min_length=1, strict=False)]
_Named = dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], _SomeEdits]


class KnownEdit(StrictModel):
    """One edit of an experiment, with the verdict that the grader must give it."""

    id: str
    verdict: Verdict
    edits: tuple[Edit, ...]

    def source(self, source: str) -> str:
        """Return the edited source. Raises `ValueError` if a `find` does not occur exactly once."""
        return apply_edits(source, self.edits, where=f"edit {self.id}")


@dataclass(frozen=True)
class KnownFix:
    """An experiment that a student may hand in, and the verdict that the grader must give it."""

    recipe: Recipe
    id: str
    verdict: Verdict
    source: str


class _EditsFile(StrictModel):
    model_config = ConfigDict(extra="allow")

    format_version: Literal[1]
    range: "dict[str, Range]" = Field(default_factory=dict)
    __pydantic_extra__: dict[Verdict, _Named]  # type: ignore[assignment]


def load_variants(recipe_id: str, solutions: Path = SOLUTIONS) -> tuple[KnownEdit, ...]:
    """Return the known edits of one recipe, or () without a `variants.toml`. Raises `UserError` for an invalid file."""
    return _load(solutions / recipe_id / "variants.toml")


def load_shared_edits(experiment: str, solutions: Path = SOLUTIONS) -> tuple[KnownEdit, ...]:
    """Return the known edits that all recipes for an experiment share. Raises `UserError` for an invalid file."""
    return _load(solutions / f"{experiment}.edits.toml")


class Range(StrictModel):
    """Edits that fix the broken experiment with any number from a range, such as a learning rate.

    `right` contains the two ends of the range. In each `replace` of the edits, `{}` stands for the number. `outside`
    contains the nearest wrong number below the range and above it, or "" if there is none. The instructor decides about
    a number between a right and a wrong number.
    """

    edits: _SomeEdits
    right: Annotated[tuple[str, str], Field(strict=False)]
    outside: Annotated[tuple[str, str], Field(strict=False)]

    def source(self, broken: str, number: str) -> str:
        """Return the broken experiment, fixed with this number. Raises `ValueError` if an edit cannot be applied."""
        edits = [Edit(find=one.find, replace=one.replace.replace("{}", number)) for one in self.edits]
        return apply_edits(broken, edits, where=f"range with {number}")


def load_ranges(recipe_id: str, solutions: Path = SOLUTIONS) -> Mapping[str, Range]:
    """Return {name: range of right numbers} for a recipe. Raises `UserError` for an invalid file."""
    path = solutions / recipe_id / "variants.toml"
    return read_record(path, _EditsFile).range if path.is_file() else {}


def known_fixes(recipe: Recipe, solutions: Path = SOLUTIONS) -> tuple[list[KnownFix], list[str]]:
    """Return the known fixes of a recipe, with the reference fix first, and the ids of the edits that were left out.

    If the break has changed the lines that a masking or wrong edit of the healthy experiment edits, this edit is left
    out. Raises `ValueError` if another edit cannot be applied to its source.
    """
    broken, healthy = recipe.broken_source(), recipe.healthy_source()
    found = [KnownFix(recipe, "reference", "full", healthy)]
    for item in load_variants(recipe.id, solutions):
        found.append(KnownFix(recipe, item.id, item.verdict, item.source(broken)))
    for name, one in load_ranges(recipe.id, solutions).items():
        for number in one.right:
            found.append(KnownFix(recipe, f"{name} {number}", "alternative", one.source(broken, number)))
        for number in filter(None, one.outside):
            found.append(KnownFix(recipe, f"{name} {number}", "masking", one.source(broken, number)))
    left_out = []
    for item in load_shared_edits(recipe.experiment):
        edited = item.source(healthy)
        if item.verdict in ("masking", "wrong"):
            try:
                edited = item.source(broken)
            except ValueError:
                left_out.append(item.id)
                continue
        found.append(KnownFix(recipe, item.id, item.verdict, edited))
    return found, left_out


def _load(path: Path) -> tuple[KnownEdit, ...]:
    if not path.is_file():
        return ()
    found = read_record(path, _EditsFile).__pydantic_extra__
    return tuple(
        KnownEdit(id=name, verdict=verdict, edits=edits)
        for verdict, named in found.items()
        for name, edits in named.items()
    )
