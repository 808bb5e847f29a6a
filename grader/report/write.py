"""`reports/`: the pages, the gradebook and `scores.json`, written all at once; pages of what is gone go as well."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from grader.crew import Crew
from grader.replay.leftovers import remove_leftovers
from grader.report.class_page import render_class_page
from grader.report.gradebook import COLUMNS, csv_bytes, gradebook
from grader.report.page_job import PageJob, PageMaker
from grader.report.page_names import is_page_name, page_stems
from grader.report.page_template import MARKER, beginning_of, is_own_page
from grader.report.progress import Progress
from grader.report.scores_file import SCORES, scores_bytes
from grader.report.staging import Staging
from grader.score.verdict import Scores
from grader.spool import Spool
from harness.errors import UserError
from harness.plain_yaml import shown

INDEX, GRADEBOOK = "index.html", "gradebook.csv"
# How the two files begin that are no pages.
_BEGINNINGS = {GRADEBOOK: csv_bytes([COLUMNS], mark=True).rstrip(), SCORES: b'{\n "format_version": '}


def write_reports(
    scores: Scores, spool: Spool, recipes: Mapping[str, str], out: Path, crew: Crew, progress: Progress
) -> list[Path]:
    """Write `index.html`, a page for each submission, `gradebook.csv` and `scores.json`, and return them.

    spool: holds what the pages show; where it has nothing on a submission, the page that is there stays, and if none
    is, it shows the score alone. recipes: the title of each recipe. Equal input gives equal bytes. What else lies in
    the folder stays, except for pages that were made here for submissions that are not among the scores any more.
    Raises `OSError` where it cannot be written.
    """
    out.mkdir(parents=True, exist_ok=True)
    stems = page_stems(row.submission for row in scores.submissions)
    pages = {row.submission: out / f"{stems[row.submission]}.html" for row in scores.submissions}
    index, book = out / INDEX, out / GRADEBOOK
    # All at once: a disk that fills up leaves the earlier reports as they were. Of all files scores.json alone is
    # waited for until it is on the disk: the others can be made again.
    with Staging() as staging:
        jobs = [
            PageJob(row, recipes.get(row.recipe, ""), path, staging.scratch_for(path))
            for row, path in zip(scores.submissions, pages.values(), strict=True)
        ]
        progress.begin("pages", len(jobs))
        crew.each(
            PageMaker(spool, scores.provenance).make,
            jobs,
            lost=_lost,
            noted=lambda job, seconds: progress.done(job.row.submission, seconds),
        )
        staging.write(index, render_class_page(scores, recipes).encode())
        staging.write(book, gradebook(scores))
        staging.write(out / SCORES, scores_bytes(scores))
        staging.commit()
    _keep_on_disk(out / SCORES)
    _remove_stale(out, {path.name for path in pages.values()})
    return [index, *pages.values(), book, out / SCORES]


def _lost(job: PageJob) -> None:
    from harness.run.launch import ChildFault

    raise ChildFault(f"the process that made {job.path.name} ended before it was done, twice")


def refuse_strangers(submissions: Iterable[str], out: Path) -> None:
    """Raise `UserError` where reports on these submissions would replace what was not made here, or a folder."""
    pages = (INDEX, *(f"{stem}.html" for stem in page_stems(submissions).values()))
    names = [*pages, GRADEBOOK, SCORES]
    taken = [name for name in names if os.path.lexists(out / name) and not _may_go(out / name)]
    if taken:
        raise UserError(
            f"{out} holds {shown(taken[0], 80)}, which grader did not make and would have to replace: move it away,"
            " or name another folder with --out."
        )


def clear_leftovers(out: Path) -> None:
    """Remove what a killed grader left half-written among the reports; for whoever holds the folder alone."""
    remove_leftovers([out], lambda name: name in (INDEX, GRADEBOOK, SCORES) or is_page_name(name))


def _may_go(path: Path) -> bool:
    """Say whether a report may take this file's place: one of ours, or one of which a loss of power left nothing."""
    begins = beginning_of(path)
    own = _BEGINNINGS.get(path.name)
    ours = MARKER.encode() in begins if own is None else begins.startswith(own)
    return ours or not begins.strip(b"\0")


def _keep_on_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _remove_stale(out: Path, current: set[str]) -> None:
    for path in sorted(out.glob("*.html")):
        if (
            path.name not in current
            and is_page_name(path.name)
            and not path.is_symlink()
            and is_own_page(path)
        ):
            path.unlink()
