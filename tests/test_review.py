"""`grader review`: it asks about each open check, and each decision is on the disk at once."""

import hashlib
from pathlib import Path

import pytest
from click.testing import CliRunner
from intake_archives import contents, manifest, packed
from made_up_class import changed, make_row, scores_of
from recorded_logs import log_bytes, recorded_evidence

from grader.cli import cli
from grader.course.decisions import load_decisions
from grader.report.scores_file import SCORES, scores_bytes
from grader.score.verdict import open_check
from harness.recipe import load_recipe

REPORT = (recorded_evidence("huge_lr").report or "") + "\n`val_accuracy` is 0.5555. \x1b[2J\u202e\n"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Reports of one submission with two open checks, and its tarball beside them."""
    source = load_recipe("huge_lr").healthy_source().replace("lr=0.1", "lr=0.05 + 0.05")
    logs = {
        "runs__broken__metrics.log": log_bytes("huge_lr"),
        "runs__fixed__metrics.log": log_bytes("digits_mlp"),
    }
    files = contents(report=REPORT.encode(), experiment=source.encode(), **logs)
    data = packed({**files, "manifest.json": manifest(files)})
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions" / "ada_huge_lr.tar.gz").write_bytes(data)
    opened = {
        **changed("fix.correct", open_check, "Line 7 is not plain."),
        **changed("fix.minimal", open_check, "Not decided yet."),
    }
    row = make_row("ada_huge_lr", "ada", "huge_lr", opened, reason="2 checks wait.")
    row = row.model_copy(
        update={"provenance": {**row.provenance, "tarball_sha256": hashlib.sha256(data).hexdigest()}}
    )
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / SCORES).write_bytes(scores_bytes(scores_of(row)))
    return folder


def run(out: Path, answers: str) -> str:
    words = ["review", str(out), "--submissions", str(out.parent / "submissions"), "--who", "Prof. Ada"]
    done = CliRunner().invoke(cli, words, input=answers, env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert done.exit_code == 0, done.output
    return done.output


def test_what_is_decided_is_kept_and_not_asked_again(out: Path) -> None:
    said = run(out, "ten\n99\n10\n\nWell done.\n\n")
    assert "Line 7 is not plain." in said
    assert "lr=0.05 + 0.05" in said, "the inserted line"
    assert "is 0.5555." in said, "the report"
    assert "\x1b[2J" not in said and "\u202e" not in said
    assert "Give a number from 0 to 12" in said
    (decision,) = load_decisions(out)
    assert (decision.check, decision.points, decision.comment) == ("fix.correct", 10, "Well done.")
    assert (decision.who, decision.submission) == ("Prof. Ada", "ada_huge_lr")
    again = run(out, "\n")
    assert "fix.correct" not in again and "fix.minimal" in again
    run(out, "8\nfine\n")
    assert "Nothing waits for you." in run(out, "")


def test_a_tarball_that_is_gone_or_changed_is_not_shown(out: Path) -> None:
    path = out.parent / "submissions" / "ada_huge_lr.tar.gz"
    path.write_bytes(path.read_bytes() + b"x")
    said = run(out, "\n\n")
    assert "has changed" in said and "lr=0.05" not in said
    path.unlink()
    assert "is missing" in run(out, "\n\n")


def test_a_submission_without_checks_gets_a_total(out: Path) -> None:
    more: dict[str, object] = {"status": "not judged", "total": None, "reason": "It failed on it."}
    row = make_row("bob_huge_lr", "bob", "huge_lr", {}, criteria={}, **more)
    (out / SCORES).write_bytes(scores_bytes(scores_of(row)))
    assert "It failed on it." in run(out, "40\nby hand\n")
    (decision,) = load_decisions(out)
    assert (decision.total, decision.check) == (40, None)
