"""How many hints a student asked for reaches the instructor: manifest, row, gradebook, page; it costs nothing."""

import json
from typing import Any

import pytest
from intake_archives import packed, parsed, whole

from grader.intake.names import Rejected
from grader.intake.submission import Submission
from grader.replay.replay import Replay
from grader.report.gradebook import gradebook
from grader.report.scores_file import scores_bytes
from grader.report.submission_page import render_submission
from grader.score.scoring import Score, score_submission
from grader.score.verdict import Scores
from grader.score.weights import load_weights


def taken(**changed: Any) -> Submission:
    return parsed("ada_huge_lr", packed(whole(**changed)))


def graded(item: Submission) -> Score:
    failed = Replay(status="RE", message="it raised")
    return score_submission(item, {"broken": failed, "fixed": failed, "reference": failed}, load_weights())


def test_an_instructor_sees_how_many_and_no_point_is_lost() -> None:
    without, with_two = graded(taken()), graded(taken(hints=2))
    assert with_two.row.criteria == without.row.criteria
    assert with_two.row.total == without.row.total
    assert [flag.id for flag in with_two.row.flags if flag not in without.row.flags] == ["hints"]
    scores = Scores(provenance={}, submissions=(with_two.row,))
    (row,) = json.loads(scores_bytes(scores))["submissions"]
    assert row["provenance"]["hints"] == 2
    assert b"counted 2 of 3 hints" in gradebook(scores)
    page = render_submission(with_two.row, with_two.exhibits, title="", provenance={})
    assert "counted 2 of 3 hints" in page


def test_a_manifest_without_hints_counts_none() -> None:
    assert taken().manifest.hints == 0
    found = graded(taken())
    assert "hints" not in found.row.provenance
    assert not any(flag.id == "hints" for flag in found.row.flags)
    assert graded(taken(hints=0)).row.flags == found.row.flags


@pytest.mark.parametrize("hints", [-1, 4, True, "2", None, [1], 1.5, 10**400])
def test_a_manifest_with_anything_else_is_refused(hints: object) -> None:
    with pytest.raises(Rejected, match="hints: "):
        taken(hints=hints)
