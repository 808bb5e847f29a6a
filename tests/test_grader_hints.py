"""How many hints a student asked for reaches the instructor: manifest, row, gradebook, page; it costs nothing."""

import json
from typing import Any

import pytest
from intake_archives import packed, whole

from grader.classroom import scores_of
from grader.graded import Graded, graded_row
from grader.intake.rejected import Rejected
from grader.intake.submission import parse_submission
from grader.replay.replay import Replay
from grader.report.gradebook import gradebook
from grader.report.scores_file import scores_bytes
from grader.report.submission_page import render_submission
from grader.score.evidence import Evidence
from grader.score.weights import load_weights
from grader.taken import Taken, take_in
from harness.recipe import load_recipe


def taken(**changed: Any) -> Taken:
    return take_in(parse_submission("ada_huge_lr", packed(whole(**changed)), "0" * 64))


def graded(item: Taken) -> Graded:
    failed = Replay.model_validate({"status": "RE", "message": "it raised"})
    evidence = Evidence(
        recipe=load_recipe("huge_lr"), settings=item.settings,
        command_problem="", missing=(), claims=item.claims, source=item.source, report=item.report, broken=failed,
        fixed=failed, reference=failed, same_class=True, suspicions=(), again={},
    )  # fmt: skip
    return graded_row(item, evidence, load_weights(), sandboxed=True)


def test_an_instructor_sees_how_many_and_no_point_is_lost() -> None:
    without, with_two = graded(taken()), graded(taken(hints=2))
    assert with_two.row.criteria == without.row.criteria
    assert with_two.row.total == without.row.total
    assert [flag.id for flag in with_two.row.flags if flag not in without.row.flags] == ["hints"]
    scores = scores_of([with_two.row], {})
    (row,) = json.loads(scores_bytes(scores))["submissions"]
    assert row["provenance"]["hints"] == 2
    assert b"hints: 2 of 3 were asked for" in gradebook(scores)
    page = render_submission(with_two.row, with_two.exhibits, title="", provenance={})
    assert "2 of 3 were asked for" in page


def test_a_manifest_that_says_nothing_of_hints_is_one_of_none() -> None:
    assert taken().hints == 0
    found = graded(taken())
    assert "hints" not in found.row.provenance
    assert not any(flag.id == "hints" for flag in found.row.flags)
    assert graded(taken(hints=0)).row.flags == found.row.flags


@pytest.mark.parametrize("hints", [-1, 4, True, "2", None, [1], 1.5, 10**400])
def test_a_manifest_with_anything_else_is_refused(hints: object) -> None:
    with pytest.raises(Rejected, match="hints: "):
        taken(hints=hints)
