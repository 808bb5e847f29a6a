import os
import shutil
from pathlib import Path

import pytest
from made_up_class import made_up_class, make_row, write_made_up

from grader.report.page_template import MARKER
from grader.report.scores_file import read_scores
from grader.report.write import clear_leftovers, refuse_strangers
from grader.score.verdict import Scores
from harness.errors import UserError
from harness.files import scratch_path

SCORES, EXHIBITS, TITLES = made_up_class(20)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_page_for_each_an_index_and_a_gradebook(tmp_path: Path) -> None:
    out = tmp_path / "a" / "reports"
    paths = write_made_up(SCORES, EXHIBITS, TITLES, out)
    assert [path.name for path in paths] == [
        "index.html",
        *(f"{row.submission}.html" for row in SCORES.submissions),
        "gradebook.csv",
        "scores.json",
    ]
    assert read_scores(out) == SCORES
    assert sorted(paths) == sorted(out.iterdir())


def test_the_same_scores_give_the_same_bytes_again(tmp_path: Path) -> None:
    write_made_up(SCORES, EXHIBITS, TITLES, tmp_path / "1")
    write_made_up(SCORES, dict(reversed(EXHIBITS.items())), TITLES, tmp_path / "2")
    write_made_up(SCORES, EXHIBITS, TITLES, tmp_path / "2")
    assert content(tmp_path / "1") == content(tmp_path / "2")


def test_a_page_that_is_there_is_not_made_again_and_one_that_was_touched_is(tmp_path: Path) -> None:
    write_made_up(SCORES, EXHIBITS, TITLES, tmp_path)
    first = content(tmp_path)
    names = [f"{row.submission}.html" for row in SCORES.submissions]
    before = {name: (tmp_path / name).stat().st_ino for name in names}
    touched = {
        names[0]: first[names[0]][:-1],
        names[1]: b"",
        names[2]: first[names[2]].replace(b"<h1>", b"<h1> "),
    }
    for name, data in touched.items():
        (tmp_path / name).write_bytes(data)
    write_made_up(SCORES, EXHIBITS, TITLES, tmp_path)
    assert content(tmp_path) == first
    anew = {name for name in names if (tmp_path / name).stat().st_ino != before[name]}
    assert anew == set(touched)
    # Another score, another title, another grader.
    row = SCORES.submissions[0].model_copy(update={"reason": "Another."})
    other = SCORES.model_copy(update={"submissions": (row, *SCORES.submissions[1:])})
    write_made_up(other, EXHIBITS, TITLES, tmp_path)
    assert (tmp_path / names[0]).read_bytes() != first[names[0]]
    assert (tmp_path / names[1]).read_bytes() == first[names[1]]
    other = SCORES.model_copy(update={"provenance": {**SCORES.provenance, "grader": "9"}})
    write_made_up(other, EXHIBITS, TITLES, tmp_path)
    assert all((tmp_path / f"{name}.html").read_bytes() != first[f"{name}.html"] for name in EXHIBITS)


def test_pages_of_submissions_that_are_gone_go_and_nothing_else(tmp_path: Path) -> None:
    write_made_up(SCORES, EXHIBITS, TITLES, tmp_path)
    kept = {
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
    write_made_up(fewer, EXHIBITS, TITLES, tmp_path)
    names = {
        "index.html",
        "gradebook.csv",
        "scores.json",
        *(f"{row.submission}.html" for row in fewer.submissions),
    }
    assert {path.name for path in tmp_path.iterdir()} == names | others


def test_no_submission_writes_outside_the_folder_or_over_the_index(tmp_path: Path) -> None:
    names = ("../evil", "/tmp/evil", "index", "gradebook.csv", "a/b", "Ada", "ada")
    rows = tuple(make_row(name, name, "huge_lr", {}) for name in names)
    out = tmp_path / "reports"
    paths = write_made_up(Scores(provenance={}, submissions=rows), {}, {}, out)
    assert {path.parent for path in paths} == {out}
    assert len({path.name.lower() for path in paths}) == len(names) + 3
    assert [path.name for path in tmp_path.iterdir()] == ["reports"]


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "reports").touch()
    with pytest.raises(OSError, match="reports"):
        write_made_up(SCORES, EXHIBITS, TITLES, tmp_path / "reports")


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    write_made_up(SCORES, EXHIBITS, TITLES, tmp_path)
    before = content(tmp_path)
    (tmp_path / "index.html").unlink()
    (tmp_path / "index.html").mkdir()
    (tmp_path / "index.html" / "x").touch()
    with pytest.raises(OSError, match="index"):
        write_made_up(SCORES, EXHIBITS, TITLES, tmp_path)
    shutil.rmtree(tmp_path / "index.html")
    assert content(tmp_path) == {name: data for name, data in before.items() if name != "index.html"}


def test_reports_take_no_place_of_what_somebody_else_made(tmp_path: Path) -> None:
    names = [row.submission for row in SCORES.submissions]
    refuse_strangers(names, tmp_path)
    write_made_up(SCORES, EXHIBITS, TITLES, tmp_path)
    for path in sorted(tmp_path.iterdir()):
        for left in (b"", bytes(2000)):  # as a loss of power may leave it
            ours = path.read_bytes()
            path.write_bytes(left)
            refuse_strangers(names, tmp_path)
            path.write_bytes(ours)
    refuse_strangers(names, tmp_path)
    for name in ("index.html", f"{names[0]}.html", "gradebook.csv", "scores.json"):
        path = tmp_path / name
        ours = path.read_bytes()
        path.write_bytes(b"mine")
        with pytest.raises(UserError, match=f"holds {name}, which grader did not make"):
            refuse_strangers(names, tmp_path)
        path.unlink()
        path.mkdir()
        with pytest.raises(UserError, match=f"holds {name}, which grader did not make"):
            refuse_strangers(names, tmp_path)
        path.rmdir()
        os.mkfifo(path)
        with pytest.raises(UserError, match=f"holds {name}, which grader did not make"):
            refuse_strangers(names, tmp_path)
        path.unlink()
        path.write_bytes(ours)
    (tmp_path / "other.html").write_bytes(b"mine")
    refuse_strangers(names, tmp_path)


def test_what_a_killed_grader_left_is_cleared_and_nothing_else(tmp_path: Path) -> None:
    left = [
        scratch_path(tmp_path / name) for name in ("index.html", "ada.html", "gradebook.csv", "scores.json")
    ]
    mine = [
        tmp_path / name for name in (".notes.txt.0123abcd", ".index.html.old", ".htaccess", "x.html.0123abcd")
    ]
    for path in (*left, *mine):
        path.write_bytes(b"half")
    (tmp_path / ".ada.html.0123abce").mkdir()
    clear_leftovers(tmp_path)
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in (*mine, tmp_path / ".ada.html.0123abce"))
