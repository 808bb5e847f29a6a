"""What a course costs: from cold, unchanged, with one submission more, by one worker and two; and by its size."""

from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks.class_check import check_same_rows
from benchmarks.class_lab import JOBS, ClassLab, ColdRun
from benchmarks.course.plan import Entry
from benchmarks.timing import BenchmarkError, Row

# What each submission may cost beside the replays of its class.
_MILLISECONDS_EACH = 30
_MB = 10**6
# So many submissions more are scored at once as well: it shows what each adds, apart from what a first one brings.
_TOGETHER = 20


def size_rows(lab: ClassLab) -> list[Row]:
    """Score the classes from cold, from the smallest to the whole course."""
    cold = [lab.cold(size) for size in lab.sizes]
    return [*_cold_rows(lab, cold[-1]), *_memory_rows(cold[-1]), *_growth(cold)]


def _cold_rows(lab: ClassLab, whole: ColdRun) -> Iterator[Row]:
    seconds, training = whole.scored.seconds, lab.training
    detail = f"{whole.replays} replays of {whole.fixes} distinct fixes; {_each(whole)}"
    what = f"{whole.submissions} submissions, from cold"
    yield Row("cold", what, seconds, "s", 360.0, detail, {"cold": [seconds]})
    rest = seconds - whole.submissions * _MILLISECONDS_EACH / 1000
    detail = (
        f"{sum(training.counts.values())} trainings, by themselves {training.total:.0f} s one after the other, here by"
        f" {JOBS} workers"
    )
    what = f"the same, less {_MILLISECONDS_EACH} ms a submission / the trainings by themselves"
    yield Row("cold-training", what, rest / training.total, "x", 1.3, detail, {"training": [training.total]})


def _each(run: ColdRun) -> str:
    return f"{1000 * run.scored.seconds / run.submissions:.0f} ms a submission"


def _memory_rows(whole: ColdRun) -> Iterator[Row]:
    peak = whole.scored.peak
    what = f"memory of the grader itself, {whole.submissions} submissions from cold"
    detail = f"all its processes together, looked at twice a second; the first alone at most {peak.leader / _MB:.0f} MB"
    yield Row("memory-grader", what, peak.grader / _MB, "MB", 300.0, detail, {})
    detail = "the forking process and the run that it forks together, looked at twice a second"
    yield Row("memory-worker", "memory of a worker, the same", peak.worker / _MB, "MB", 500.0, detail, {})


def _growth(cold: Sequence[ColdRun]) -> Iterator[Row]:
    if len(cold) < 2:
        return
    small, large = cold[-2:]
    cost = large.scored.seconds / small.scored.seconds
    size = large.submissions / small.submissions
    detail = (
        f"{cost:.2f} times the time for {size:.2f} times the submissions and {large.replays / small.replays:.2f} times"
        " the replays"
    )
    what = f"growth of cost / growth of class, from {small.submissions} to {large.submissions} submissions"
    yield Row("growth", what, cost / size, "x", 1.0, detail, {})


def size_table(lab: ClassLab) -> Sequence[tuple[str, ...]]:
    """Return the cost of each class that was scored from cold by as many workers as there may be, headings first."""
    lines = [("submissions", "distinct fixes", "replays", "from cold", "a submission")]
    for size in lab.sizes:
        run = lab.cold(size)
        seconds = f"{run.scored.seconds:.0f} s"
        each = f"{1000 * run.scored.seconds / size:.0f} ms"
        lines.append((str(size), str(run.fixes), str(run.replays), seconds, each))
    return lines


def unchanged_rows(lab: ClassLab, rounds: int = 3) -> list[Row]:
    """Score the whole course again, with nothing changed."""
    size = len(lab.entries)
    lab.cold(size)
    before = lab.rows(size)
    seconds = [lab.score(lab.course, size).seconds for _ in range(rounds)]
    check_same_rows(before, lab.rows(size))
    detail = (
        f"fastest {min(seconds):.2f} s, {1000 * median(seconds) / size:.1f} ms a submission; {rounds} rounds"
    )
    what = f"{size} submissions, nothing changed"
    return [Row("unchanged", what, median(seconds), "s", 20.0, detail, {"unchanged": seconds})]


def one_more_rows(lab: ClassLab, rounds: int = 7) -> list[Row]:
    """Score a class with one submission more, whose fix is known, against the same class without it.

    In a class of the smallest size: what one submission adds does not hang on how many others are unchanged, and the
    times of a large class scatter by more than that.
    """
    size = lab.sizes[0]
    lab.cold(size)
    waiting = _known(lab, size)
    if len(waiting) < rounds + _TOGETHER:
        raise BenchmarkError(f"Only {len(waiting)} known fixes come in later: take a larger course.")
    folder = lab.class_of(size, "one-more")
    without, with_one = [], []
    for entry in waiting[:rounds]:
        without.append(lab.score(folder, size).seconds)
        lab.add_later(entry, folder)
        with_one.append(lab.score(folder, size).seconds)
    for entry in waiting[-_TOGETHER:]:
        lab.add_later(entry, folder)
    many = lab.score(folder, size).seconds - median(without)
    more = [1000 * (b - a) for a, b in zip(without, with_one, strict=True)]
    detail = (
        f"a class of {size}, unchanged {median(without):.2f} s; least {min(more):.0f}, most {max(more):.0f} ms in"
        f" {rounds} rounds; of {_TOGETHER} more at once, {1000 * many / _TOGETHER:.0f} ms each"
    )
    seconds = {"without": without, "with one more": with_one}
    return [
        Row("one-more", "one more submission with a known fix", median(more), "ms", 60.0, detail, seconds)
    ]


def _known(lab: ClassLab, size: int) -> list[Entry]:
    """Return the submissions that come in later, with a fix that this class has handed in."""
    honest = [entry for entry in lab.entries[:size] if not entry.attack and entry.claim != "wrong hash"]
    fixes = {(entry.recipe, entry.fix) for entry in honest}
    return [entry for entry in lab.later if (entry.recipe, entry.fix) in fixes]


def worker_rows(lab: ClassLab) -> list[Row]:
    """Score a class from cold by two workers, and by one."""
    size = lab.sizes[0]
    two, one = lab.cold(size).scored.seconds, lab.cold(size, jobs=1).scored.seconds
    detail = f"{size} submissions from cold, {lab.cold(size).replays} replays: {one:.1f} s by one, {two:.1f} s by two"
    seconds = {"one": [one], "two": [two]}
    return [
        Row("workers", "two workers against one", one / two, "x", 1.8, detail, seconds, at_least=True),
    ]
