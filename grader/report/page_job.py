"""Makes the page of one submission, in whatever process, unless it is there already."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.report.page_template import is_own_page
from grader.report.seal import is_sealed, made_of, sealed
from grader.report.staging import write_scratch
from grader.report.submission_page import render_submission_page
from grader.score.exhibits import Exhibits
from grader.score.verdict import SubmissionScore
from grader.spool import Spool


@dataclass(frozen=True)
class PageJob:
    """A page to make: of which row, under which title, for which place, and where it is to be written first."""

    row: SubmissionScore
    title: str
    path: Path
    scratch: Path


@dataclass(frozen=True)
class PageMaker:
    """Makes the pages of a class; what they show lies in the spool."""

    spool: Spool
    provenance: Mapping[str, str | int | float | bool | None]

    def make(self, job: PageJob) -> None:
        """Write a page to its scratch file, unless the one that is there is what this would give.

        Where nothing is known but the score, a page of ours stays: it shows more. Raises `OSError`.
        """
        shown = self.spool.exhibits(job.row.submission)
        if shown is None and is_own_page(job.path):
            return
        inputs = made_of(job.row, shown or b"", job.title, self.provenance)
        if is_sealed(job.path, inputs):
            return
        exhibits = None if shown is None else Exhibits.model_validate_json(shown)
        page = render_submission_page(job.row, exhibits, recipe_title=job.title, provenance=self.provenance)
        write_scratch(job.scratch, job.path, sealed(page, inputs))
