"""Whether the scores of a timed class are right: a figure that rests on a check left out is none."""

from collections.abc import Iterable, Iterator

from benchmarks.course.attacks import REFUSED
from benchmarks.course.plan import Entry, fixes_of
from benchmarks.timing import BenchmarkError
from grader.score.verdict import SubmissionScore
from grader.selfcheck.fixes import EXPECTED


def check_rows(entries: Iterable[Entry], rows: Iterable[SubmissionScore]) -> None:
    """Raise `BenchmarkError`, which names some, where a row is missing or came out as it must not."""
    by_name = {row.submission: row for row in rows}
    entries = list(entries)
    wrong = [f"{name}: nobody handed that in" for name in by_name.keys() - {entry.name for entry in entries}]
    for entry in entries:
        row = by_name.get(entry.name)
        complaints = ["there is no row"] if row is None else complaints_of(entry, row)
        wrong += [f"{entry.name} ({_kind(entry)}): {complaint}" for complaint in complaints]
    if wrong:
        raise BenchmarkError(f"{len(wrong)} rows are not what they must be: {'; '.join(sorted(wrong)[:5])}.")


def _kind(entry: Entry) -> str:
    return entry.attack or entry.claim or f"honest, {entry.fix}"


def complaints_of(entry: Entry, row: SubmissionScore) -> Iterator[str]:
    """Yield what is wrong with the row of a submission.

    An honest one keeps its points for both runs and gets for its fix what its verdict says. An untrue claim costs
    points; an attack gets none for its fix. What waits for the instructor is neither wrong nor right.
    """
    if entry.attack in REFUSED or entry.claim == "wrong hash":
        if row.status != "rejected":
            yield f"it is {row.status}, not rejected"
        return
    if not row.criteria:
        yield f"it is {row.status}: {row.reason}"
        return
    runs, fix = row.criteria["reproducibility"], row.criteria["fix"]
    if entry.attack:
        if fix.points:
            yield f"it has {fix.points:g} points for its fix"
        return
    verdict = next(known.verdict for known in fixes_of(entry.recipe) if known.id == entry.fix)
    least, most = (sum(bounds) for bounds in zip(*EXPECTED[verdict], strict=True))
    if fix.points is None or not least <= fix.points <= most:
        yield f"it has {fix.points} points for its fix, and {verdict} has {least:g} to {most:g}"
    if (runs.points == runs.max) == bool(entry.claim):
        yield f"it has {runs.points} points of {runs.max:g} for its runs"


def check_same_rows(some: Iterable[SubmissionScore], all_rows: Iterable[SubmissionScore]) -> None:
    """Raise `BenchmarkError` where a row of a smaller class differs from the same submission's in the whole course."""
    whole = {row.submission: row for row in all_rows}
    differing = [row.submission for row in some if whole.get(row.submission) != row]
    if differing:
        raise BenchmarkError(f"{len(differing)} rows differ between classes, {differing[0]} among them.")
