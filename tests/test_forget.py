"""`grader forget` and anonymous exports: the remaining traces of a student and of names."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.courses import write_course
from helpers.made_up_class import changed, make_attachments, make_row

from grader.cli import cli
from grader.course.decisions import Decision, decisions_path, keep_decision, load_decisions
from grader.course.export import given_path
from grader.course.forget import forget
from grader.course.log import log_path, note, read_log
from grader.intake.folder import Arrival, Sender
from grader.report.write import write_reports
from grader.score.identity import SIMILAR
from grader.score.scores_file import read_scores
from grader.score.verdict import Change, Flag, RuleTotal, Scores, lost
from harness.errors import UserError

ALIKE = Flag(id=SIMILAR, message="It is like zoe_huge_lr of zoe.")
ZOE = replace(
    make_row("zoe_huge_lr", "zoe", "huge_lr", changed("fix.minimal", lost, "zoe wrote much.", "Less.", points=1.0)),
    arrival=Arrival(file="in/zoe_huge_lr.tar.gz", senders=(Sender(platform="Moodle", name="Zoe Quist", id="7"),)),
)
ADA = make_row("ada_huge_lr", "ada", "huge_lr", {}, flags=(ALIKE, Flag(id="hints", message="2 hints.")))
ROWS = (ADA, replace(ADA, submission="bob_huge_lr", student="bob", flags=()), ZOE)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return reports of three students, with all other files that may be next to them."""
    out = tmp_path / "reports"
    change = Change(submission="zoe_huge_lr", before="1", after="2", why="zoe")
    scores = Scores(
        provenance={}, submissions=ROWS, changes=(change, replace(change, submission="ada_huge_lr", why="-"))
    )
    write_reports(scores, {row.submission: make_attachments(row.submission) for row in ROWS}, out)
    for name in ("ada", "zoe", "bob", "zoe"):
        keep_decision(out, Decision(submission=f"{name}_huge_lr", total=50, comment=f"I know {name}."))
    given_path(out).write_text(json.dumps({"canvas": {"Week 1 (1)": {"ada": "5", "zoe": "6"}}}))
    note(out, "score", changes=scores.changes)
    assert CliRunner().invoke(cli, ["export", "--format", "pages", "--out", str(out)]).exit_code == 0
    return out


def test_nothing_is_left_of_a_student_and_all_of_the_others(out: Path) -> None:
    before = {path.name: path.read_bytes() for path in out.glob("*.html")}
    with decisions_path(out).open("a") as file:
        file.write("# Zoe called me.\n# My note about the others.\n")
    done = CliRunner().invoke(cli, ["forget", "Zoe", str(out), "--yes"])
    assert done.exit_code == 0, done.output
    assert "in/zoe_huge_lr.tar.gz" in done.output
    assert "# My note about the others.\n" in decisions_path(out).read_text()
    left = [path for path in out.parent.rglob("*") if path.is_file()]
    assert [path.name for path in left if b"zoe" in path.read_bytes().lower()] == []
    assert [path.name for path in left if "zoe" in path.name] == []
    scores = read_scores(out)
    assert [row.submission for row in scores.submissions] == ["ada_huge_lr", "bob_huge_lr"]
    assert [flag.id for flag in scores.submissions[0].flags] == ["hints"]
    assert [one.submission for one in scores.changes] == ["ada_huge_lr"]
    for name in ("ada_huge_lr.html", "bob_huge_lr.html"):
        assert (out / name).read_bytes() == before[name]
    assert [one.submission for one in load_decisions(out)] == ["ada_huge_lr", "bob_huge_lr"]
    assert [entry.did for entry in read_log(out)] == ["score", "export", "forget"]
    assert json.loads(given_path(out).read_text()) == {"canvas": {"Week 1 (1)": {"ada": "5"}}}
    with pytest.raises(UserError, match="contains nothing about zoe"):
        forget("zoe", out)


def test_a_flag_that_names_somebody_else_stays(out: Path) -> None:
    """The login "zo" is part of the login "zoe", but not of other names."""
    zo = make_row("zo_huge_lr", "zo", "huge_lr", {})
    write_reports(Scores(provenance={}, submissions=(*ROWS, zo)), {}, out)
    forget("zo", out)
    assert ALIKE in read_scores(out).submissions[0].flags


def test_the_work_of_a_group_stays_while_a_member_needs_it(out: Path) -> None:
    copy = replace(ZOE, submission="zoe_huge_lr (with kim)", student="kim", copy_of="zoe_huge_lr")
    write_reports(Scores(provenance={}, submissions=(*ROWS, copy)), {}, out)
    assert not any("in/zoe_huge_lr.tar.gz" in line for line in forget("kim", out)), "it is zoe's"
    write_reports(Scores(provenance={}, submissions=(*ROWS, copy)), {}, out)
    (line,) = [line for line in forget("zoe", out) if "in/zoe_huge_lr.tar.gz" in line]
    assert "also the work of kim" in line
    assert [row.student for row in read_scores(out).submissions] == ["ada", "bob", "kim"]


def test_it_asks_first_and_changes_nothing_without_an_answer(out: Path) -> None:
    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in out.parent.rglob("*") if path.is_file()}

    before = files()
    done = CliRunner().invoke(cli, ["forget", "zoe", str(out)])
    assert "add --yes" in str(done.exception)
    for wrong in ("eve", "zo"):
        with pytest.raises(UserError, match="contains nothing about"):
            forget(wrong, out)
    assert files() == before
    assert log_path(out).is_file()


def test_an_export_for_research_names_nobody(out: Path, tmp_path: Path) -> None:
    file = write_course(tmp_path)
    rule = RuleTotal(status="graded", total=90.0, reason="")
    rows = (*ROWS[:2], replace(ZOE, rule=rule, reason="The instructor decided: zoe has mumps."))
    write_reports(Scores(provenance={}, submissions=rows), {}, out)
    told = []
    for kind in ("csv", "json"):
        words = ["export", "--format", kind, "--out", str(out), "--pseudonyms"]
        assert "add --course" in str(CliRunner().invoke(cli, words).exception)
        assert CliRunner().invoke(cli, [*words, "--course", str(file)]).exit_code == 0
        path = out / "export" / kind / f"grades.{kind}"
        told.append(path.read_text(encoding="utf-8-sig"))
        texts = "".join(one.read_text(encoding="utf-8-sig") for one in path.parent.iterdir())
        for name in ("zoe", "ada", "bob", "Quist", "mumps"):
            assert name not in texts
    rows_of = json.loads(told[1])
    assert len({row["student"] for row in rows_of}) == 3
    assert sorted(row["total"] for row in rows_of) == [93, 100, 100]
    # The same secret gives the same pseudonyms. Another secret gives other pseudonyms.
    assert CliRunner().invoke(cli, [*words, "--course", str(file)]).exit_code == 0
    assert path.read_text() == told[1]
    file.write_text(file.read_text().replace("a secret of this course", "another secret"))
    assert CliRunner().invoke(cli, [*words, "--course", str(file)]).exit_code == 0
    assert {row["student"] for row in json.loads(path.read_text())}.isdisjoint(row["student"] for row in rows_of)
