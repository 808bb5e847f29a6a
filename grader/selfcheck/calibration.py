"""Read, write and show `solutions/<id>/calibration.toml`, the measurements of a recipe by `grader selfcheck`."""

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from harness.formats.toml_file import StrictModel, read_record
from harness.recipes.known_edits import Verdict
from harness.recipes.recipe import SOLUTIONS, Recipe

CALIBRATION = "calibration.toml"
_HEAD = (
    "# Measured by `grader selfcheck --write`: figures of the broken and the healthy runs, known edits with their"
    " verdict.\nformat_version = 1\n"
)
_WIDTH = 110
_Span = Annotated[tuple[float, float], Field(strict=False)]
_Words = Annotated[tuple[str, ...], Field(strict=False)]
Trips = Mapping[str, Mapping[str, str]]  # {recipe: {check that finds its break: outcome}}


class Quantity(StrictModel):
    """A number that a symptom or an observation of a recipe computes from a log: its bound, and its ranges over seeds.

    broken, healthy: the smallest and the largest value in broken and in healthy runs; None if the logs do not contain
    the
        signal.
    """

    data: str
    quantity: str
    present_if: str
    broken: _Span | None = None
    healthy: _Span | None = None

    def row(self) -> tuple[str, ...]:
        """Return the row of a table: data set, quantity, bound, range in broken runs, range in healthy runs."""
        return (self.data, self.quantity, self.present_if, _span_text(self.broken), _span_text(self.healthy))

    def toml(self) -> str:
        """Return the quantity as an inline table."""
        told = {key: getattr(self, key) for key in ("data", "quantity", "present_if")}
        words = [f"{key} = {json.dumps(value)}" for key, value in told.items()]
        spans = {"broken": self.broken, "healthy": self.healthy}
        # These numbers are not written as JSON, because TOML has inf and nan, but JSON does not.
        words += [f"{key} = [{span[0]:.4g}, {span[1]:.4g}]" for key, span in spans.items() if span is not None]
        return f"{{{', '.join(words)}}}"


class Calibration(StrictModel):
    """The content of `calibration.toml`.

    edits: {verdict: known edits that the grader judges correctly}. left_out: the known edits that cannot be applied,
    because the break has changed the same code. wrong: a sentence for each measurement that contradicts the recipe.
    """

    format_version: Literal[1] = 1
    seeds: int
    quantities: Annotated[tuple[Quantity, ...], Field(strict=False)] = ()
    left_out: _Words = ()
    wrong: _Words = ()
    edits: dict[Verdict, _Words]

    def toml(self) -> str:
        """Return the text of `calibration.toml`."""
        lines = [_HEAD, f"seeds = {self.seeds}\n"]
        if self.quantities:
            lines.append("quantities = [\n" + "".join(f"    {one.toml()},\n" for one in self.quantities) + "]\n")
        lines += [f"{key} = {_toml_list(words)}\n" for key in ("left_out", "wrong") if (words := getattr(self, key))]
        lines += ["\n[edits]\n", *(f"{verdict} = {_toml_list(names)}\n" for verdict, names in self.edits.items())]
        return "".join(lines)


def load_calibration(recipe_id: str, solutions: Path = SOLUTIONS) -> Calibration | None:
    """Return the calibration of a recipe, or None if it was not measured. Raises `UserError` for an invalid file."""
    path = calibration_path(recipe_id, solutions)
    return read_record(path, Calibration) if path.is_file() else None


def calibration_path(recipe_id: str, solutions: Path = SOLUTIONS) -> Path:
    """Return the path of a recipe's `calibration.toml`."""
    return solutions / recipe_id / CALIBRATION


def _toml_list(words: Sequence[str]) -> str:
    """Return a TOML list, on one line if it is short."""
    texts = [json.dumps(word, ensure_ascii=False) for word in words]
    if len(line := f"[{', '.join(texts)}]") <= _WIDTH:
        return line
    # Break lines only between the texts, not inside a text.
    joined = " ".join(f"{text},".replace(" ", "\0") for text in texts)
    filled = textwrap.fill(joined, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return f"[\n{textwrap.indent(filled, '    ')}\n]".replace("\0", " ")


def _span_text(span: tuple[float, float] | None) -> str:
    return "-" if span is None else f"{span[0]:.4g} to {span[1]:.4g}"


# --- Pages ---


@dataclass(frozen=True)
class Section:
    """One section of a page: a title, sentences, a table, and problems. A section without problems has passed."""

    title: str
    says: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()
    problems: Sequence[str] = ()

    def markdown(self) -> str:
        """Return the section as Markdown."""
        lines = [f"## {self.title}"]
        if self.rows:
            table = (self.columns, ["---"] * len(self.columns), *self.rows)
            lines += ["", *(f"| {' | '.join(map(_cell, row))} |" for row in table)]
        lines += [text for line in self.says for text in ("", line)]
        if self.problems:
            lines += ["", *(f"- **wrong:** {_cell(line)}" for line in self.problems)]
        return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def recipe_section(recipe: Recipe, trips: Mapping[str, str], found: Calibration) -> Section:
    """Return the section about one recipe. trips: {check: outcome} of the checks that find its break."""
    tripped = ", ".join(f"`{check}` ({outcome})" for check, outcome in trips.items()) or "none"
    edits = f"The grader judges {sum(map(len, found.edits.values()))} known edits as expected."
    if found.left_out:
        edits += f" These edits are left out, because the break has changed the same code: {', '.join(found.left_out)}."
    says = (f"{recipe.experiment}, {found.seeds} seeds. Checks that find the break: {tripped}.", edits)
    columns = ("data", "quantity", "present if", "broken", "healthy")
    return Section(recipe.id, says, columns, [one.row() for one in found.quantities], found.wrong)


def calibration_page(
    recipes: Sequence[Recipe], trips: Trips, outcomes: Trips, found: Mapping[str, Calibration | None]
) -> str:
    """Return the calibration page: the measurements of each recipe, and the pairs of recipes that differ least.

    trips: {recipe: {check that finds its break: outcome}}. outcomes: {recipe: {check: outcome}} for all checks.
    found: {recipe: calibration, or None if it was not measured}.
    """
    head = f"# Calibration\n\nMade from `solutions/<id>/{CALIBRATION}`. Ranges: smallest to largest value over seeds.\n"
    sections = [
        Section(recipe.id, (f"Not measured yet: `grader selfcheck --only {recipe.id} --seeds 10 --write`.",))
        if (measured := found.get(recipe.id)) is None
        else recipe_section(recipe, trips[recipe.id], measured)
        for recipe in recipes
    ]
    sections.append(_pairs_section([recipe.id for recipe in recipes], trips, outcomes))
    return "\n".join((head, *(section.markdown() for section in sections)))


def trip_differences(one: Mapping[str, str], two: Mapping[str, str]) -> list[str]:
    """Return the checks that find only one of two breaks, or that find both with different outcomes.

    one, two: for each of the two breaks, {check that finds it: outcome}.
    """
    return [name for name in {**one, **two} if one.get(name) != two.get(name)]


def _pairs_section(recipes: Sequence[str], trips: Trips, outcomes: Trips) -> Section:
    pairs = {(one, two): trip_differences(trips[one], trips[two]) for one, two in combinations(recipes, 2)}
    rows = []
    for (one, two), names in pairs.items():
        first, second = outcomes[one], outcomes[two]
        sound = [f"{name}, sound" for name in first if name in second and first[name] != second[name]]
        if len(names) < 2:
            rows.append((one, two, "; ".join(names or sound) or "the log"))
    says = (
        f"The checks that find a break distinguish {sum(map(bool, pairs.values()))} of {len(pairs)} pairs. The table"
        " lists the pairs that at most one such check distinguishes. `grader selfcheck` proves that each pair differs"
        " in a check or in the log."
    )
    return Section("Differences between recipes", (says,), ("recipe", "recipe", "difference"), rows)
