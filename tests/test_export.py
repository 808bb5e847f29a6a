"""`grader export`: a complete folder for each format or none, without files of an earlier export."""

import csv
import io
import json
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from helpers.made_up_class import HOSTILE, TITLES, changed, make_attachments, make_row, scores_of
from helpers.page_reader import Page
from test_report_platforms import GRADEBOOK, canvas_import

from grader.cli import cli
from grader.report.gradebook import export, gradebook
from grader.report.write import write_reports
from grader.score.identity import ABOUT_OTHERS
from grader.score.verdict import Flag, Scores, open_item
from grader.session import lock_folder
from harness.errors import UserError

_FLAG = Flag(id=ABOUT_OTHERS[0], message="ada_steep is one of 2 files: bob_steep counts.")
CLASS = Scores(
    provenance={},
    submissions=(
        make_row("ada_steep", "ada", "steep", {}, flags=(_FLAG,)),
        make_row("ada_asleep", "ada", "asleep", changed("fix.correct", open_item, "Who knows?")),
        make_row("bob_steep", "bob", "steep", {}),
        make_row("eve_steep", "eve", "steep", {}, status="rejected", reason="Not an archive.", total=0.0, criteria={}),
    ),
)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return write(tmp_path, CLASS)


def write(tmp_path: Path, scores: Scores) -> Path:
    attachments = {row.submission: make_attachments(row.submission) for row in scores.submissions}
    write_reports(scores, attachments, tmp_path / "reports", titles=TITLES)
    return tmp_path / "reports"


def run(out: Path, *words: str) -> Result:
    done = CliRunner().invoke(cli, ["export", "--out", str(out), "--format", *words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def files(out: Path, platform: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "export" / platform).iterdir()}


def test_plain_tables_have_a_row_for_each_student_and_exercise(out: Path) -> None:
    run(out, "csv")
    done = run(out, "json")
    assert files(out, "csv")["grades.csv"] == gradebook(CLASS)
    [content] = files(out, "json").values()
    rows = json.loads(content)
    assert [(row["student"], row["recipe"], row["status"], row["total"]) for row in rows] == [
        ("ada", "steep", "graded", 100.0),
        ("ada", "asleep", "not judged", None),
        ("bob", "steep", "graded", 100.0),
        ("eve", "steep", "rejected", 0.0),
    ]
    assert rows[1]["criteria"]["fix"] is None
    assert rows[0]["flags"] == [asdict(_FLAG)]
    assert "Not judged, so without a grade in this export: 1." in done.stdout
    assert done.stderr == ""


def test_pages_are_one_for_each_student_with_all_exercises(out: Path) -> None:
    done = run(out, "pages")
    found = files(out, "pages")
    assert list(csv.reader(io.StringIO(found.pop("index.csv").decode("utf-8-sig")))) == [
        ["login", "file"],
        ["ada", "ada.html"],
        ["bob", "bob.html"],
        ["eve", "eve.html"],
    ]
    assert found.keys() == {"ada.html", "bob.html", "eve.html"}
    assert "steep: the grader cannot read your file. Not an archive." in Page(found["eve.html"].decode()).words
    ada = found["ada.html"].decode()
    assert "bob" not in ada
    assert "100 of 100" in ada
    assert "not judged yet" in ada
    assert "eve_steep: Not an archive." in done.stderr
    Page(ada).check()


def test_a_report_that_looks_like_our_html_is_shown_as_it_is(tmp_path: Path) -> None:
    text = 'It says id="score" and href="#x" and <main>, </main>.'
    row = make_row("ada_steep", "ada", "steep", changed("fix.correct", open_item, f"{text} {HOSTILE}"))
    attachments = replace(make_attachments("ada_steep"), report=text)
    write_reports(scores_of(row), {"ada_steep": attachments}, tmp_path / "reports", titles=TITLES)
    run(tmp_path / "reports", "pages")
    page = Page(files(tmp_path / "reports", "pages")["ada.html"].decode())
    assert text in page.words
    assert not any(tag in ("script", "img") for tag, _ in page.tags)


def test_an_export_leaves_nothing_of_an_earlier_one(tmp_path: Path, out: Path) -> None:
    run(out, "pages")
    assert "bob.html" in files(out, "pages")
    write(tmp_path, scores_of(*CLASS.submissions[:2]))
    run(out, "pages")
    assert files(out, "pages").keys() == {"index.csv", "ada.html"}
    assert [path.name for path in (out / "export").iterdir()] == ["pages"]


def test_the_same_scores_give_the_same_bytes(out: Path, tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text(GRADEBOOK)
    words = ("canvas", "--gradebook", str(tmp_path / "g.csv"), "--column", "Week 3", "--exercise", "steep")
    found = []
    for _ in range(2):
        run(out, *words)
        run(out, "pages")
        found.append((files(out, "canvas"), files(out, "pages")))
    assert found[0] == found[1]


def test_a_file_of_somebody_else_stays_and_stops_the_export(out: Path) -> None:
    run(out, "canvas")
    (out / "export" / "canvas" / "marks.csv").write_text("mine")
    before = files(out, "canvas")
    with pytest.raises(UserError, match=r"contains marks\.csv.*move it away"):
        run(out, "canvas")
    assert files(out, "canvas") == before


def test_a_gradebook_is_filled_in_and_who_is_not_in_it_is_listed(out: Path, tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text(GRADEBOOK)
    fills = ("canvas", "--gradebook", str(tmp_path / "g.csv"), "--column", "Essay", "--exercise", "steep")
    done = run(out, *fills, "--overwrite")
    assert files(out, "canvas").keys() == {"canvas.csv"}, "no submission came from Canvas, so there is no feedback"
    assert canvas_import(files(out, "canvas")["canvas.csv"]) == {"101": {"12346": "50"}}
    assert "Students with a grade: 1." in done.stderr
    assert "Cells that the import changes: 1\n  ada, Essay (12346): 44.00 -> 50\n" in done.stderr
    # Our earlier grade may change until somebody edits it on the platform.
    (tmp_path / "g.csv").write_text(GRADEBOOK.replace("44.00", "50.00"))
    words = ("canvas", "--gradebook", str(tmp_path / "g.csv"), "--column", "Essay", "--exercise", "steep")
    write(tmp_path, scores_of(replace(CLASS.submissions[0], total=90.0)))
    assert "ada, Essay (12346): 50.00 -> 45" in run(out, *words).stderr
    (tmp_path / "g.csv").write_text(GRADEBOOK.replace("44.00", "49"))
    done = run(out, *words)
    assert "ada, Essay (12346): kept 49, because no export wrote this. To write 45, use --overwrite." in done.stderr
    assert canvas_import(files(out, "canvas")["canvas.csv"]) == {}
    (tmp_path / "reports.exported.json").write_text("[]")
    with pytest.raises(UserError, match="should contain the grades of earlier exports"):
        run(out, *words)
    write(tmp_path, CLASS)
    (tmp_path / "reports.exported.json").unlink()
    (tmp_path / "g.csv").write_text(GRADEBOOK)
    done = run(out, *words, "--overwrite")
    assert f"bob is not in {tmp_path / 'g.csv'}." in done.stderr
    # Without a table from the platform, export the plain format and remove the filled table.
    run(out, "canvas")
    assert files(out, "canvas") == {"canvas.csv": export(CLASS, "canvas")}


def test_moodle_gets_the_pages_of_its_students(out: Path, tmp_path: Path) -> None:
    head = "Identifier,Username,Grade,Maximum grade,Last modified (grade)"
    sheet = f"{head}\nParticipant 5,ADA,,100,-\nParticipant 6,bob,,100,-\n"
    (tmp_path / "w.csv").write_text(sheet)
    run(out, "moodle", "--gradebook", str(tmp_path / "w.csv"), "--exercise", "steep")
    run(out, "pages")
    with zipfile.ZipFile(out / "export" / "moodle" / "feedback.zip") as pack:
        assert pack.namelist() == [f"Participant_{n}_assignsubmission_file_/feedback.html" for n in (5, 6)]
        assert pack.read(pack.namelist()[0]) == files(out, "pages")["ada.html"]


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("pages", "--gradebook", "x"), "--gradebook"),
        (("canvas", "--column", "x"), "--column"),
        (("moodle", "--gradebook", "x", "--column", "x"), "--column"),
        (("csv", "--exercise", "x"), "--exercise"),
        (("json", "--visibility", "hidden"), "--visibility"),
        (("moodle", "--trust-submissions"), "--trust-submissions"),
    ],
)
def test_an_option_that_a_format_does_not_use_is_refused(out: Path, words: tuple[str, ...], option: str) -> None:
    with pytest.raises(UserError, match=f"does not use {option}: remove that option"):
        run(out, *words)
    assert not (out / "export").exists()


def test_reports_that_another_grader_writes_are_left_alone(out: Path) -> None:
    with lock_folder(out), pytest.raises(UserError, match="Another grader command is writing"):
        run(out, "csv")


def test_a_page_that_is_missing_stops_the_export(out: Path) -> None:
    run(out, "pages")
    before = files(out, "pages")
    (out / "bob_steep.html").unlink()
    with pytest.raises(UserError, match=r"bob_steep\.html: score the class again"):
        run(out, "pages")
    assert files(out, "pages") == before


def test_one_case_of_a_pool_stands_for_all_of_it(tmp_path: Path) -> None:
    rows = (
        make_row("ada_steep", "ada", "steep", {}),
        make_row("ada_asleep (not drawn)", "ada", "asleep", {}, status="not drawn", total=None, criteria={}),
        make_row("bob_asleep", "bob", "asleep", {}),
        make_row("bob_steep (not drawn)", "bob", "steep", {}, status="not drawn", total=None, criteria={}),
    )
    out = write(tmp_path, replace(CLASS, submissions=rows, pools=(("asleep", "steep"),)))
    (tmp_path / "w.csv").write_text(
        'Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Last modified (grade)"\n'
        '"Participant 1",Ada,ada,x,,100.00,-\n"Participant 2",Bob,bob,x,,100.00,-\n'
    )
    done = run(out, "moodle", "--gradebook", str(tmp_path / "w.csv"), "--exercise", "steep")
    assert "Also included: asleep, because each student has one case of the pool." in done.output
    table = list(csv.DictReader(io.StringIO(files(out, "moodle")["moodle.csv"].decode("utf-8-sig"))))
    assert {row["Email address"]: float(row["Grade"]) > 0 for row in table} == {"ada": True, "bob": True}
