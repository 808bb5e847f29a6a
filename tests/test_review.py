"""`grader review`: it asks about each open check, and each decision is on the disk at once."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from made_up_class import changed, make_row, scores_of

from grader.cli import cli
from grader.course.decisions import load_decisions
from grader.score.verdict import SCORES, open_check, scores_bytes


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return reports of one submission with two open checks."""
    opened = {
        **changed("fix.correct", open_check, "Line 7 is not plain. \x1b[2J\u202e"),
        **changed("fix.minimal", open_check, "Not decided yet."),
    }
    row = make_row("ada_huge_lr", "ada", "huge_lr", opened, reason="2 checks wait.")
    row = row.model_copy(update={"provenance": {**row.provenance, "tarball_sha256": "a" * 64}})
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / SCORES).write_bytes(scores_bytes(scores_of(row)))
    return folder


def run(out: Path, answers: str) -> str:
    words = ["review", str(out), "--who", "Prof. Ada"]
    done = CliRunner().invoke(cli, words, input=answers, env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert done.exit_code == 0, done.output
    return done.output


def test_what_is_decided_is_kept_and_not_asked_again(out: Path) -> None:
    said = run(out, "ten\n99\n10\n\nWell done.\n\n")
    assert "Line 7 is not plain." in said
    assert str(out / "ada_huge_lr.html") in said
    assert "\x1b[2J" not in said and "\u202e" not in said
    assert "Give a number from 0 to 12" in said
    (decision,) = load_decisions(out)
    assert (decision.check, decision.points, decision.comment) == ("fix.correct", 10, "Well done.")
    assert (decision.who, decision.submission, decision.sha256) == ("Prof. Ada", "ada_huge_lr", "a" * 64)
    again = run(out, "\n")
    assert "fix.correct" not in again and "fix.minimal" in again
    run(out, "8\nfine\n")
    assert "Nothing waits for you." in run(out, "")


def test_a_submission_without_checks_gets_a_total(out: Path) -> None:
    more: dict[str, object] = {"status": "not judged", "total": None, "reason": "It failed on it."}
    row = make_row("bob_huge_lr", "bob", "huge_lr", {}, criteria={}, **more)
    (out / SCORES).write_bytes(scores_bytes(scores_of(row)))
    assert "It failed on it." in run(out, "40\nby hand\n")
    (decision,) = load_decisions(out)
    assert (decision.total, decision.check) == (40, None)
