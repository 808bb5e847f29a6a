import shutil
from pathlib import Path

import pytest
from made_up_class import made_up_class, make_row

from grader.reports.page_template import MARKER
from grader.reports.write import write_reports
from grader.score import Scores

SCORES, EXHIBITS, TITLES = made_up_class(20)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_page_for_each_an_index_and_a_gradebook(tmp_path: Path) -> None:
    out = tmp_path / "a" / "reports"
    paths = write_reports(SCORES, EXHIBITS, TITLES, out)
    assert [path.name for path in paths] == [
        "index.html",
        *(f"{row.submission}.html" for row in SCORES.submissions),
        "gradebook.csv",
    ]
    assert sorted(paths) == sorted(out.iterdir())


def test_the_same_scores_give_the_same_bytes_again(tmp_path: Path) -> None:
    write_reports(SCORES, EXHIBITS, TITLES, tmp_path / "1")
    write_reports(SCORES, dict(reversed(EXHIBITS.items())), TITLES, tmp_path / "2")
    write_reports(SCORES, EXHIBITS, TITLES, tmp_path / "2")
    assert content(tmp_path / "1") == content(tmp_path / "2")


def test_pages_of_submissions_that_are_gone_go_and_nothing_else(tmp_path: Path) -> None:
    write_reports(SCORES, EXHIBITS, TITLES, tmp_path)
    kept = {
        "scores.json": "{}",
        "notes.html": "<p>mine</p>",
        "nothing.html": "",
        "a name.html": MARKER,
        "late.html": "x" * 2000 + MARKER,
        "ada_huge_lr.html.bak": MARKER,
    }
    for name, text in kept.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "elsewhere").write_text(MARKER)
    (tmp_path / "link.html").symlink_to("elsewhere")
    others = {"folder.html", "elsewhere", "link.html", *kept}
    fewer = SCORES.model_copy(update={"submissions": SCORES.submissions[:2]})
    write_reports(fewer, EXHIBITS, TITLES, tmp_path)
    names = {"index.html", "gradebook.csv", *(f"{row.submission}.html" for row in fewer.submissions)}
    assert {path.name for path in tmp_path.iterdir()} == names | others


def test_no_submission_writes_outside_the_folder_or_over_the_index(tmp_path: Path) -> None:
    names = ("../evil", "/tmp/evil", "index", "gradebook.csv", "a/b", "Ada", "ada")
    rows = tuple(make_row(name, name, "huge_lr", {}) for name in names)
    out = tmp_path / "reports"
    paths = write_reports(Scores(provenance={}, submissions=rows), {}, {}, out)
    assert {path.parent for path in paths} == {out}
    assert len({path.name.lower() for path in paths}) == len(names) + 2
    assert [path.name for path in tmp_path.iterdir()] == ["reports"]


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "reports").touch()
    with pytest.raises(OSError, match="reports"):
        write_reports(SCORES, EXHIBITS, TITLES, tmp_path / "reports")


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    write_reports(SCORES, EXHIBITS, TITLES, tmp_path)
    before = content(tmp_path)
    (tmp_path / "index.html").unlink()
    (tmp_path / "index.html").mkdir()
    (tmp_path / "index.html" / "x").touch()
    with pytest.raises(OSError, match="index"):
        write_reports(SCORES, EXHIBITS, TITLES, tmp_path)
    shutil.rmtree(tmp_path / "index.html")
    assert content(tmp_path) == {name: data for name, data in before.items() if name != "index.html"}
