"""The release dates of scores, feedback and the solution, which all ways to return results respect."""

import csv
import io
import tarfile
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from helpers.made_up_class import RUBRIC, make_attachments, make_row
from helpers.page_reader import Page

from grader.course.export import ExportOptions, Format, run_export
from grader.course.gradescope import Settings, results
from grader.report.write import write_reports
from grader.score.deadlines import LatePolicy, ReleaseLevel, Schedule
from grader.score.release import as_students_see, seen_by_student
from grader.score.scores_file import read_scores
from grader.score.verdict import BY_RULE, Flag, RuleTotal, RuleVerdict, Scores, SubmissionScore, criterion_score, lost

SCHEDULE = Schedule(
    time_zone="Europe/Berlin",
    due=datetime(2026, 10, 27, 23, 59),
    late=LatePolicy(points_per_day=10),
    feedback=datetime(2026, 10, 28),
    solution=datetime(2026, 11, 10),
)
# Berlin is one hour ahead of UTC on these days.
TIMES: dict[ReleaseLevel, datetime] = {
    "score": datetime(2026, 10, 27, 22, 59, tzinfo=UTC),
    "feedback": datetime(2026, 11, 9, 22, 59, tzinfo=UTC),
    "solution": datetime(2026, 11, 9, 23, 0, tzinfo=UTC),
}
TOLD = {
    *("reproducibility.archive", "reproducibility.broken_log", "reproducibility.broken_checkpoint"),
    *("reproducibility.fixed_log", "reproducibility.fixed_checkpoint", "diagnostics.broken_complete"),
    *("diagnostics.fixed_complete", "diagnostics.broken_cited", "explanation.form"),
}
EVERY = {f"{criterion}.{check}" for criterion, checks in RUBRIC.items() for check in checks}
COLUMN = "Week 1 (77)"


def every_check_lost(submission: str, student: str) -> SubmissionScore:
    """Return a row in which each sentence of each item contains the name of the item."""
    changes = {}
    for address in EVERY:
        criterion, _, name = address.partition(".")
        most = RUBRIC[criterion][name]
        changes[address] = lost(name, f"T {address}", most, f"why-{address}.", f"how-{address}.", points=most / 2)
    flags = (Flag(id="not checked by machine", message="a-flag."),)
    return make_row(submission, student, "a1", changes, flags=flags)


def told(text: str) -> set[str]:
    """Return the items whose sentences a text contains."""
    return {address for address in EVERY if f"why-{address}." in text or f"how-{address}." in text}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    row = every_check_lost("ada_1_2_ada_a1", "ada")
    scores = Scores(provenance={}, submissions=(row,), schedule=SCHEDULE)
    write_reports(scores, {row.submission: make_attachments(row.submission)}, tmp_path / "reports")
    return tmp_path / "reports"


def exported(out: Path, platform: Format, now: datetime) -> str:
    """Return the complete content of an export as one text."""
    table = {
        "canvas": f"Student,ID,SIS User ID,SIS Login ID,Section,{COLUMN}\nAda,1,,ada,A,\n",
        "moodle": "Identifier,Username,Grade,Maximum grade,Last modified (grade),Feedback comments\n"
        "Participant 5,ada,,100,-,\n",
    }.get(platform)
    path = out.with_name("table.csv")
    path.write_text(table or "")
    run_export(platform, ExportOptions(out, gradebook=path if table else None), now)
    texts = []
    for file in sorted((out / "export" / platform).iterdir()):
        if file.suffix != ".zip":
            texts.append(file.read_text(encoding="utf-8-sig"))
            continue
        with zipfile.ZipFile(file) as pack:
            for name in pack.namelist():
                data = pack.read(name)
                if name.endswith(".tar.gz"):
                    with tarfile.open(fileobj=io.BytesIO(data)) as inner:
                        data = b"".join(inner.extractfile(one).read() for one in inner)  # type: ignore[union-attr]
                texts.append(data.decode())
    return "\n".join(texts)


@pytest.mark.parametrize("platform", ["pages", "canvas", "moodle"])
def test_every_export_tells_what_may_be_seen_by_then(platform: Format, out: Path) -> None:
    texts = {level: exported(out, platform, now) for level, now in TIMES.items()}
    assert {level: told(text) for level, text in texts.items()} == {"score": set(), "feedback": TOLD, "solution": EVERY}
    solution = "The solution follows on 2026-11-10 00:00 CET."
    assert f"Feedback follows on 2026-10-28 00:00 CET. {solution}" in texts["score"]
    assert "Feedback follows" not in texts["feedback"] and solution in texts["feedback"]
    assert "follows on" not in texts["solution"]
    for level, text in texts.items():
        assert "This page reveals the cause" not in text
        # Values of the grader's own runs appear with the solution, and the student's own text with the feedback.
        assert ("largest rate" in text) == ("the loss passes 50 within" in text) == (level == "solution")
        assert ("each step overshoots" in text) == (level != "score")
        assert "50" in text, "the total is there at once"
    if platform == "pages":
        exported(out, platform, TIMES["feedback"])
        Page((out / "export/pages/ada.html").read_text()).check()


def test_what_is_yours_has_everything_at_any_time(out: Path) -> None:
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    page = (out / "ada_1_2_ada_a1.html").read_text()
    assert told(page) == EVERY and "largest rate" in page
    assert "This page reveals the cause of the fault. The student may see this page from 2026-11-10 00:00 CET." in page
    rows = list(csv.reader(io.StringIO(exported(out, "csv", TIMES["score"]))))
    assert "a-flag." in rows[1][-1]
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before
    assert read_scores(out).schedule == SCHEDULE


def test_without_a_course_everything_is_seen(tmp_path: Path) -> None:
    row = every_check_lost("ada_a1", "ada")
    write_reports(Scores(provenance={}, submissions=(row,)), {}, tmp_path / "reports")
    assert told(exported(tmp_path / "reports", "pages", TIMES["score"])) == EVERY
    assert "tells the cause" not in (tmp_path / "reports/ada_a1.html").read_text()


def test_gradescope_tells_no_cause_before_the_due_date() -> None:
    row = every_check_lost("ada_a1", "ada")
    at_once, later = (results([row], Settings(("a1",), visibility)) for visibility in ("visible", "after_due_date"))
    assert (told(str(at_once)), told(str(later))) == (TOLD, EVERY)
    assert at_once["score"] == later["score"]


def test_a_decision_is_feedback_and_the_rule_beside_it_is_not() -> None:
    rule = RuleVerdict(outcome="failed", points=0.0, reason="why-fix.correct.")
    decided = lost("correct", "T", 12, "The instructor decided: 6 of 12.", "how-fix.correct.", points=6)
    check = replace(decided, rule=rule, comment="See me.")
    row = replace(
        make_row("ada_a1", "ada", "a1", {"fix.correct": check}),
        rule=RuleTotal(status="not judged", total=None, reason="It was huge_lr."),
        reason=f"The instructor decided: 40 of 100. Nice.{BY_RULE}not judged. It was huge_lr.)",
    )
    seen = seen_by_student(row, "feedback")
    [decided] = [one for one in seen.criteria["fix"].checks if one.id == "correct"]
    assert (decided.reason, decided.comment) == (check.reason, "See me.")
    assert seen.reason == "The instructor decided: 40 of 100. Nice."
    assert "huge_lr" not in str(seen) and "fix.correct" not in str(seen)
    assert seen_by_student(row, "score").reason == ""
    assert seen_by_student(row, "solution") == row


def test_what_the_grader_could_not_do_tells_nothing_of_the_exercise() -> None:
    failed: dict[str, object] = {"status": "not judged", "total": None, "criteria": {}}
    waits = make_row(
        "ada_a1", "ada", "a1", {}, reason="The exercise a1 cannot be graded: It is in build_model.", **failed
    )
    refused = make_row(
        "bob_a1", "bob", "a1", {}, status="rejected", total=0.0, criteria={}, reason="No archive.", flags=()
    )
    for level in ("score", "feedback"):
        assert seen_by_student(waits, level).reason == "Your instructor has to decide."
        assert seen_by_student(refused, level) == refused


def test_a_check_that_nobody_listed_tells_nothing() -> None:
    new = criterion_score((lost("surprise", "T", 5, "It was huge_lr.", "Use lr=0.1."),))
    row = replace(make_row("ada_a1", "ada", "a1", {}), criteria={"fix": new, "novelty": new})
    assert "huge_lr" not in str(seen_by_student(row, "feedback")) and "0.1" not in str(seen_by_student(row, "feedback"))
    assert TOLD < EVERY


def test_levels_begin_at_their_local_time() -> None:
    scores = Scores(provenance={}, submissions=(), schedule=SCHEDULE)
    assert [SCHEDULE.level(now) for now in TIMES.values()] == list(TIMES)
    assert SCHEDULE.level(TIMES["score"] + timedelta(minutes=1)) == "feedback"
    assert as_students_see(scores, TIMES["score"]) == scores


def test_who_has_an_extension_sees_nothing_before_it_is_over(tmp_path: Path) -> None:
    late = LatePolicy(points_per_day=10, grace_minutes=15, extensions={"Bob": datetime(2026, 11, 20)})
    rows = (every_check_lost("ada_a1", "ada"), every_check_lost("bob_a1", "bob"))
    scores = Scores(provenance={}, submissions=rows, schedule=SCHEDULE.model_copy(update={"late": late}))
    write_reports(scores, {row.submission: make_attachments(row.submission) for row in rows}, tmp_path / "reports")
    over = datetime(2026, 11, 19, 23, 15, tzinfo=UTC)
    for now, found in ((TIMES["solution"], set()), (over - timedelta(seconds=1), set()), (over, EVERY)):
        exported(tmp_path / "reports", "pages", now)
        pages = {name: (tmp_path / f"reports/export/pages/{name}.html").read_text() for name in ("ada", "bob")}
        assert {name: told(page) for name, page in pages.items()} == {"ada": EVERY, "bob": found}
    assert "The solution follows on 2026-11-20 00:15 CET." in str(as_students_see(scores, TIMES["score"]))
