"""`grader selfcheck`: each variant of every recipe, handed in and scored, against the verdict it must get."""

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from grader.classroom import Classroom
from grader.examples import broken_workspace, example_submission
from grader.graded import Graded
from grader.replayer import Replayer
from grader.rubric.weights import load_weights
from grader.sandbox.problem import sandbox_problem
from grader.sandbox.run import run_in_sandbox
from grader.score import SubmissionScore
from grader.solutions import Variant, Verdict, load_variants
from grader.store import default_store
from harness.data.loading import default_cache
from harness.errors import UserError
from harness.recipe import load_recipe, recipe_ids

# Points for the fix, of 20, that each verdict must get: at least, at most.
EXPECTED: dict[Verdict, tuple[float, float]] = {
    "full": (18, 20),
    "alternative": (12, 19.5),
    "overreach": (12, 17.5),
    "masking": (0, 4),
    "wrong": (0, 4),
}


@dataclass(frozen=True)
class Comparison:
    """A variant, and the points that it got for its fix (None: the grader could not judge it)."""

    recipe: str
    variant: Variant
    points: float | None
    reason: str

    @property
    def agrees(self) -> bool:
        """Whether the points are those of the verdict."""
        low, high = EXPECTED[self.variant.verdict]
        return self.points is not None and low <= self.points <= high


def run_selfcheck(*, jobs: int, replays: Path | None, only: Sequence[str] = ()) -> int:
    """Check the recipes, print expected against given, and return 0 if all agree, else 1."""
    problem = sandbox_problem()
    if problem is not None:
        raise UserError(problem)
    for recipe in only:
        load_recipe(recipe)
    console = Console(stderr=True)
    room = Classroom(
        Replayer(run_in_sandbox, default_cache()),
        replays or default_store(),
        load_weights(),
        jobs=jobs,
    )
    found: list[Comparison] = []
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch:
        for recipe in only or recipe_ids():
            with console.status(f"{recipe}: making and scoring its variants"):
                found += check_recipe(recipe, room, Path(scratch), jobs)
    _print(found)
    return 0 if all(item.agrees for item in found) else 1


def check_recipe(recipe_id: str, room: Classroom, scratch: Path, jobs: int) -> list[Comparison]:
    """Hand in every variant of a recipe, score them as one class, and return what each got."""
    recipe, variants = load_recipe(recipe_id), load_variants(recipe_id)
    out = scratch / recipe_id / "submissions"
    template = broken_workspace(recipe_id, scratch / recipe_id / "template")

    def hand_in(variant: Variant) -> Path:
        work = scratch / recipe_id / variant.id
        source = variant.source(recipe.broken_source())
        return example_submission(recipe_id, variant.id, source, template, work, out)

    with ThreadPoolExecutor(jobs) as pool:
        paths = list(pool.map(hand_in, variants))
    graded = {item.row.student: item for item in room.score(paths, lambda done, total: None)}
    return [_compared(recipe_id, variant, graded[variant.id]) for variant in variants]


def _compared(recipe: str, variant: Variant, graded: Graded) -> Comparison:
    row: SubmissionScore = graded.row
    if "fix" not in row.criteria:
        return Comparison(recipe, variant, None, row.reason)
    fix = row.criteria["fix"]
    # Where the fix is not right, that is the reason; else what else was changed.
    telling = next((check for check in fix.checks if check.outcome != "passed"), fix.checks[0])
    return Comparison(recipe, variant, fix.points, telling.reason)


def _print(found: Sequence[Comparison]) -> None:
    table = Table(title="Points for the fix, of 20: expected against given")
    for column in ("recipe", "variant", "verdict", "expected", "given"):
        table.add_column(column, no_wrap=True)
    for item in found:
        low, high = EXPECTED[item.variant.verdict]
        given = "open" if item.points is None else f"{item.points:g}"
        cells = (item.recipe, item.variant.id, item.variant.verdict, f"{low:g} to {high:g}", given)
        table.add_row(*cells, style=None if item.agrees else "bold red")
    console = Console()
    console.print(table)
    wrong = [item for item in found if not item.agrees]
    for item in wrong:
        console.print(f"{item.recipe} {item.variant.id}: {item.reason}", markup=False, highlight=False)
    console.print(f"{len(found)} variants, {len(wrong)} disagreements", highlight=False)
