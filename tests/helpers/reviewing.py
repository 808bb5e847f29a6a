"""Serve the review of an invented class for the tests."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from test_report_pages import hostile_attachments, hostile_row

from grader.course.review_page import ReviewServer
from grader.report.write import write_reports
from grader.score.verdict import Scores, SubmissionScore, open_item
from helpers.made_up_class import changed, make_attachments, make_row

REASON = "line 10 calls something. The instructor decides: build_optimizer, and 1523.4 at step 3."


def open_rows() -> list[SubmissionScore]:
    """Return two submissions, each with one open item."""
    rows = [
        make_row("ada_huge_lr", "ada", "huge_lr", changed("fix.correct", open_item, REASON)),
        make_row("bob_huge_lr", "bob", "huge_lr", changed("explanation.ruled_out", open_item, REASON)),
    ]
    return [replace(row, provenance={**row.provenance, "tarball_sha256": row.student * 16}) for row in rows]


@contextmanager
def reviewing(out: Path, *, anonymous: bool = False) -> Iterator[ReviewServer]:
    """Write reports of two open submissions and a hostile submission, and serve their review."""
    hostile = replace(hostile_row(), status="not judged", total=None, criteria={})
    rows = (*open_rows(), hostile)
    attachments = {row.submission: make_attachments(row.submission) for row in rows}
    write_reports(
        Scores(provenance={}, submissions=rows), {**attachments, hostile.submission: hostile_attachments()}, out
    )
    with ReviewServer(out, "Prof. Ada", anonymous=anonymous) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
