"""`reports/`: the pages and the gradebook, written whole; pages of submissions that are gone go as well."""

from collections.abc import Mapping
from pathlib import Path

from grader.exhibits import Exhibits
from grader.reports.class_page import render_class_page
from grader.reports.gradebook import gradebook
from grader.reports.page_names import is_page_name, page_stems
from grader.reports.page_template import MARKER
from grader.reports.submission_page import render_submission_page
from grader.score import Scores
from harness.files import write_whole

INDEX, GRADEBOOK = "index.html", "gradebook.csv"


def write_reports(
    scores: Scores, exhibits: Mapping[str, Exhibits], recipes: Mapping[str, str], out: Path
) -> list[Path]:
    """Write a page for each submission, `index.html` and `gradebook.csv`; return them, the index first.

    exhibits: by submission; where one is missing, the page that is there stays, and if none is, it shows the score
    alone. recipes: the title of each
    recipe. Equal input gives equal bytes. What else lies in the folder stays, except for pages that were made
    here for submissions that are not among the scores any more. Raises `OSError` where it cannot be written.
    """
    out.mkdir(parents=True, exist_ok=True)
    stems = page_stems(row.submission for row in scores.submissions)
    pages = []
    for row in scores.submissions:
        path = out / f"{stems[row.submission]}.html"
        pages.append(path)
        if row.submission not in exhibits and _is_ours(path):
            continue
        page = render_submission_page(
            row,
            exhibits.get(row.submission),
            recipe_title=recipes.get(row.recipe, ""),
            provenance=scores.provenance,
        )
        # Not waited for until it is on the disk: all of it can be made again from scores.json.
        write_whole({path: page.encode()}, durable=False)
    index, book = out / INDEX, out / GRADEBOOK
    write_whole({index: render_class_page(scores, recipes).encode(), book: gradebook(scores)}, durable=False)
    _remove_stale(out, {path.name for path in pages})
    return [index, *pages, book]


def _remove_stale(out: Path, current: set[str]) -> None:
    for path in sorted(out.glob("*.html")):
        if path.name not in current and is_page_name(path.name) and not path.is_symlink() and _is_ours(path):
            path.unlink()


def _is_ours(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return MARKER.encode() in file.read(1024)
    except OSError:  # a folder, or a file that is none of our business
        return False
