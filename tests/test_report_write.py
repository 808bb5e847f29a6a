import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.commands import snapshot
from helpers.made_up_class import TITLES, made_up_class, make_row, scores_of
from pydantic import TypeAdapter

from grader.course.decisions import Decision, decisions_path, keep_decision
from grader.report import write
from grader.report.pages import render_class_page
from grader.report.write import check_reports_folder, new_export, write_reports
from grader.score.scores_file import SCORES as SCORES_FILE
from grader.score.scores_file import read_rows_before, read_scores, scores_json
from grader.score.verdict import Change, Scores
from grader.session import upgrade_between
from harness.errors import UserError

SCORES, EXHIBITS = made_up_class(20)
PAGES = {f"{row.submission}.html" for row in SCORES.submissions}
NAMES = {"index.html", "gradebook.csv", "scores.json"} | PAGES
CHANGE = Change(submission="ada_steep", before="1", after="2", why='"submissions": [] {\n  }')
OTHER = replace(SCORES, provenance={**SCORES.provenance, "grader": "9"})


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return a folder with reports, whose parent folder contains nothing else."""
    write_reports(SCORES, EXHIBITS, tmp_path / "reports", titles=TITLES)
    return tmp_path / "reports"


def test_a_page_for_each_an_index_a_gradebook_and_the_scores(tmp_path: Path) -> None:
    out = tmp_path / "a" / "reports"
    paths = write_reports(SCORES, EXHIBITS, out, titles=TITLES)
    assert paths[0].name == "index.html"
    assert sorted(paths) == sorted(out.iterdir())
    assert {path.name for path in paths} == NAMES
    assert read_scores(out) == SCORES
    assert [path.name for path in out.parent.iterdir()] == ["reports"]


@pytest.mark.parametrize("number", [0, 1, 20])
def test_scores_are_written_and_read_row_by_row_as_one_document(number: int, tmp_path: Path) -> None:
    scores = replace(SCORES, submissions=SCORES.submissions[:number], changes=(CHANGE,))
    content = b"".join(scores_json(scores))
    assert content == TypeAdapter(Scores).dump_json(scores, indent=1) + b"\n"
    (tmp_path / SCORES_FILE).write_bytes(content)
    assert (*read_rows_before(tmp_path),) == scores.submissions


def test_the_same_scores_give_the_same_bytes(out: Path, tmp_path: Path) -> None:
    write_reports(SCORES, EXHIBITS, tmp_path / "2", titles=TITLES)
    assert snapshot(out) == snapshot(tmp_path / "2")
    write_reports(OTHER, EXHIBITS, tmp_path / "2", titles=TITLES)
    assert snapshot(out) != snapshot(tmp_path / "2")


def test_only_a_page_that_changed_is_a_new_file(out: Path) -> None:
    first, second, *others = SCORES.submissions
    before = {name: (out / name).stat().st_ino for name in PAGES}
    rows = (replace(first, total=1.5), second, *others)
    write_reports(replace(SCORES, submissions=rows), EXHIBITS, out, titles=TITLES)
    changed = {name for name in PAGES if (out / name).stat().st_ino != before[name]}
    assert changed == {f"{first.submission}.html"}
    assert "1.5" in (out / f"{first.submission}.html").read_text(encoding="utf-8")


def test_a_page_without_a_submission_goes(out: Path) -> None:
    fewer = replace(OTHER, submissions=OTHER.submissions[:3])
    write_reports(fewer, EXHIBITS, out, titles=TITLES)
    pages = {f"{row.submission}.html" for row in fewer.submissions}
    assert snapshot(out).keys() == pages | {"index.html", "gradebook.csv", "scores.json"}


def test_exports_permissions_and_a_link_to_the_folder_stay(tmp_path: Path, out: Path) -> None:
    out = out.rename(tmp_path / "elsewhere")
    (tmp_path / "reports").symlink_to("elsewhere")
    (out / "export").mkdir()
    (out / "export" / "canvas.csv").write_text("old")
    out.chmod(0o700)
    write_reports(OTHER, EXHIBITS, tmp_path / "reports", titles=TITLES)
    assert (tmp_path / "reports").is_symlink()
    assert (out / "export" / "canvas.csv").read_text() == "old"
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert read_scores(out) == OTHER


def test_no_submission_writes_outside_the_folder_or_over_the_index(tmp_path: Path) -> None:
    names = ("../evil", "/tmp/evil", "index", "gradebook.csv", "a/b", "Ada", "ada")
    rows = tuple(make_row(name, "s", "steep", {}) for name in names)
    out = tmp_path / "reports"
    paths = write_reports(scores_of(*rows), {}, out)
    assert {path.parent for path in paths} == {out}
    assert len({path.name.lower() for path in paths}) == len(names) + 3
    assert [path.name for path in tmp_path.iterdir()] == ["reports"]


@pytest.mark.parametrize("fails", ["render_class_page", "scores_json", "_exchange"])
def test_a_failure_at_any_time_leaves_the_earlier_reports(
    out: Path, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(out)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(write, fails, fail)
    with pytest.raises(OSError, match="No space left"):
        write_reports(OTHER, EXHIBITS, out)
    assert snapshot(out) == before
    assert [path.name for path in out.parent.iterdir()] == ["reports"]


def test_a_file_system_that_cannot_exchange_folders_still_gets_the_reports(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "_RENAME_EXCHANGE", 1 << 30)
    write_reports(OTHER, EXHIBITS, out, titles=TITLES)
    assert read_scores(out) == OTHER
    assert [path.name for path in out.parent.iterdir()] == ["reports"]


def test_what_a_killed_grader_left_is_put_in_order(out: Path, tmp_path: Path) -> None:
    before = snapshot(out)
    shutil.copytree(out, tmp_path / ".reports.0123abcd")
    (tmp_path / ".reports.0123abcd" / "ada.html").write_bytes(b"")
    (tmp_path / ".reports.89abcdef").mkdir()
    (tmp_path / ".reports.89abcdef" / "mine.txt").touch()
    (tmp_path / ".reports.notes").mkdir()
    check_reports_folder(out)
    assert {path.name for path in tmp_path.iterdir()} == {"reports", ".reports.89abcdef", ".reports.notes"}
    # A kill between two renames, on a file system that cannot exchange folders.
    out.rename(tmp_path / ".reports.old")
    check_reports_folder(out)
    assert snapshot(out) == before


def test_nothing_that_grader_did_not_make_is_replaced(out: Path) -> None:
    check_reports_folder(out)
    for name in ("index.html", sorted(PAGES)[0], "gradebook.csv", "scores.json"):
        path = out / name
        ours = path.read_bytes()
        for left in (b"", bytes(2000)):  # possible contents after a power cut
            path.write_bytes(left)
            check_reports_folder(out)
        path.write_bytes(ours)
    (out / "scores.json").unlink()
    makers: dict[str, Callable[[Path], object]] = {
        "notes.txt": Path.touch,
        ".hidden": Path.touch,
        "mine.html": lambda path: path.write_text("<p>mine</p>"),
        "scores.json": lambda path: path.write_text("{}"),
        "folder.html": Path.mkdir,
        "pipe.html": os.mkfifo,
        "link.html": lambda path: path.symlink_to(out / "index.html"),
    }
    for name, make in makers.items():
        make(out / name)
        before = sorted(out.iterdir())
        with pytest.raises(UserError, match=f"contains {name}, which is not a file of grader"):
            check_reports_folder(out)
        with pytest.raises(UserError, match=f"contains {name}, which is not a file of grader"):
            write_reports(OTHER, EXHIBITS, out)
        assert sorted(out.iterdir()) == before
        (out / name).rmdir() if (out / name).is_dir() else (out / name).unlink()


def test_a_folder_that_cannot_be_replaced_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is a file: give a folder"):
        check_reports_folder(tmp_path / "file")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(UserError, match="choose a folder inside it"):
        check_reports_folder(Path())


def rights(folder: Path) -> set[str]:
    return {oct(stat.S_IMODE(path.stat().st_mode)) for path in (folder, *folder.rglob("*"))}


def test_reports_are_their_owners_alone_unless_the_folder_says_otherwise(tmp_path: Path) -> None:
    out = tmp_path / "reports"
    write_reports(SCORES, EXHIBITS, out, titles=TITLES)
    with new_export(out / "export" / "csv", ["grades.csv"]) as folder:
        (folder / "grades.csv").write_bytes(b"")
    assert rights(out) == {"0o700", "0o600"}
    out.chmod(0o750)
    (out / "export" / "csv").chmod(0o750)
    with new_export(out / "export" / "csv", ["grades.csv"]) as folder:
        (folder / "grades.csv").write_bytes(b"")
    assert rights(out / "export" / "csv") == {"0o750", "0o640"}
    write_reports(OTHER, EXHIBITS, out, titles=TITLES)
    assert {oct(stat.S_IMODE(path.stat().st_mode)) for path in (out, out / "index.html")} == {"0o750", "0o640"}


def test_what_was_decided_keeps_the_rights_of_its_file(tmp_path: Path) -> None:
    decision = Decision(submission="ada", total=5, comment="So.")
    keep_decision(tmp_path / "reports", decision)
    path = decisions_path(tmp_path / "reports")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o660)
    keep_decision(tmp_path / "reports", decision)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660


def test_an_upgrade_of_the_suite_is_named() -> None:
    before = Scores(provenance={"grader": "1.0.0", "torch": "2.13.0", "rubric_sha256": "a"}, submissions=())
    now = replace(before, provenance={"grader": "1.1.0", "torch": "2.13.0", "rubric_sha256": "b"})
    assert upgrade_between(before, now) == "version 1.0.0 -> 1.1.0, a different rubric"
    assert upgrade_between(before, before) == upgrade_between(None, now) == ""
    page = "".join(render_class_page(replace(now, upgrade="version 1.0.0 -> <b>")))
    assert "has changed since the last scoring: version 1.0.0 -&gt; &lt;b&gt;." in page
