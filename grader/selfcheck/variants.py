"""Part `variants`: each variant of every recipe, handed in and scored, against the verdict it must get."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from grader.course.examples import broken_workspace
from grader.grade import grade
from grader.score.solutions import Variant, Verdict
from grader.score.verdict import SubmissionScore
from grader.selfcheck.handed_in import Submissions
from grader.selfcheck.progress import StagesCounted, counting
from grader.selfcheck.section import Row, Section, Table
from grader.session import Grading
from harness.errors import UserError
from harness.recipe import Recipe

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


def variants_section(
    wanted: Sequence[tuple[Recipe, Variant]],
    grading: Grading,
    submissions: Submissions,
    scratch: Path,
    *,
    jobs: int,
) -> Section:
    """Hand in the variants of the recipes, score them as one class, and compare.
    A recipe that cannot be graded here has that reason in each of its rows.
    """
    handed = _hand_in(wanted, submissions, scratch, jobs)
    paths = [path for path in handed.values() if isinstance(path, Path)]
    with StagesCounted() as progress:
        rows = {(item.row.recipe, item.row.student): item.row for item in grade(paths, grading, progress)}
    found = []
    for recipe, variant in wanted:
        path = handed[recipe.id, variant.id]
        if isinstance(path, Path):
            found.append(_compared(recipe.id, variant, rows[recipe.id, variant.id]))
        else:
            found.append(Comparison(recipe.id, variant, None, f"it cannot be handed in: {path}"))
    return _section(found)


def _hand_in(
    wanted: Sequence[tuple[Recipe, Variant]], submissions: Submissions, scratch: Path, jobs: int
) -> Mapping[tuple[str, str], Path | UserError]:
    """Return the tarball of each variant, or why there is none."""
    out = scratch / "submissions"
    sources = {(recipe.id, variant.id): variant.source(recipe.broken_source()) for recipe, variant in wanted}
    found: dict[tuple[str, str], Path | UserError] = {}
    for (recipe_id, student), source in sources.items():
        if path := submissions.known(recipe_id, student, source, out):
            found[recipe_id, student] = path
    missing = [key for key in sources if key not in found]
    template = scratch / "template"

    def make(key: tuple[str, str]) -> Path | UserError:
        recipe_id, student = key
        work = scratch / "work" / recipe_id / student
        try:
            return submissions.make(recipe_id, student, sources[key], template, work, out)
        except UserError as error:
            return error

    with ThreadPoolExecutor(jobs) as pool, counting("handing in") as progress:
        try:
            list(
                pool.map(lambda name: broken_workspace(name, template), sorted({name for name, _ in missing}))
            )
            futures = {pool.submit(make, key): key for key in missing}
            for done, future in enumerate(as_completed(futures), start=1):
                found[futures[future]] = future.result()
                progress(done, len(missing))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found


def _compared(recipe: str, variant: Variant, row: SubmissionScore) -> Comparison:
    if "fix" not in row.criteria:
        return Comparison(recipe, variant, None, row.reason)
    fix = row.criteria["fix"]
    # Where the fix is not right, that is the reason; else what else was changed.
    telling = next((check for check in fix.checks if check.outcome != "passed"), fix.checks[0])
    return Comparison(recipe, variant, fix.points, telling.reason)


def _section(found: Sequence[Comparison]) -> Section:
    rows, wrong = [], []
    for item in found:
        low, high = EXPECTED[item.variant.verdict]
        given = "open" if item.points is None else f"{item.points:g}"
        expected = f"{low:g} to {high:g}"
        held = "held back" if item.variant.held_back else ""
        cells = (item.recipe, item.variant.id, item.variant.verdict, held, expected, given)
        rows.append(Row(cells, agrees=item.agrees))
        if not item.agrees:
            wrong.append(f"{item.recipe} {item.variant.id}: {given}, not {expected}: {item.reason}")
    columns = ("recipe", "variant", "verdict", "", "expected", "given")
    return Section(
        title="Variants",
        says="Every variant of `solutions/<id>/variants.toml`, handed in by a student's commands and scored: the points"
        " for the fix, of 20, against those of its verdict. What is *held back* was not looked at while the rules"
        " were made.",
        tables=(Table(columns, tuple(rows)),),
        figures=f"{_agreeing('open', found, False)}; {_agreeing('held back', found, True)}.",
        disagreements=tuple(wrong),
    )


def _agreeing(name: str, found: Sequence[Comparison], held_back: bool) -> str:
    own = [item for item in found if item.variant.held_back == held_back]
    return f"{name} {sum(item.agrees for item in own)} of {len(own)} agree"
