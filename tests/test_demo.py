"""`grader demo`: the plan of its class without runs, and the complete command."""

import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.sandbox_marks import needs_sandbox

from grader.cli import cli
from grader.course.course import check_course, read_course
from grader.course.demo import plan_case, rewrite_report, write_course
from grader.course.examples import edits_of
from grader.score.scores_file import read_scores
from grader.score.similarity import Work, find_alike
from harness.submission.report import parse_report

CASES = ("a1", "a2", "a3", "b1", "b2", "b3")
REPORT = """---
diagnosis:
  - cause: {cause}
ruled_out:
  - {{cause: label_permute, check: data, outcome: sound}}
  - {{cause: loss_sum, check: loss_form, outcome: agrees}}
evidence:
  - {{run: broken, signal: loss, step: 1, value: 31.8}}
  - {{run: fixed, signal: loss, step: 1, value: 1.8}}
---

# Symptom

The broken run differs from a healthy run: `loss` is 31.8 at step 1.

```
{{"step": 1, "loss": 31.8}}
```

# Root cause

In `build_optimizer`: the rate is too large.

# Fix

I corrected the line in `build_optimizer`, and changed nothing else.

# Verification

In the fixed run `loss` is 1.8 at step 1.
"""
BROKEN = "huge_lr\n    where: build_optimizer\n    first_wrong: {signal: loss, step: 1, value: 31.8}"


def test_its_course_and_its_plan_fit_together(tmp_path: Path) -> None:
    file = write_course(tmp_path)
    said = ("students see", "has time until")
    warnings = [line for line in check_course(file) if line.startswith("  ") and not any(one in line for one in said)]
    assert warnings == []
    course = read_course(file)
    students = {student.login: student for student in course.students()}
    assert len(students) == 40
    assert sum(not student.name.isascii() for student in students.values()) > 20
    plan = [item for case in CASES for item in plan_case(case)]
    kinds = Counter(item.kind for item in plan)
    assert kinds.keys() == {"right", "masked", "wrong", "twice", "copy", "as", "zip", "broken", "script"}
    assert {item.of for item in plan} - {""} <= students.keys()
    assert students.keys() - {item.login for item in plan}, "somebody hands in nothing"
    for assignment in course.assignment:
        for case in course.cases(assignment):
            edits = edits_of(case)
            assert (edits["right"] == case.broken_source()) == case.is_healthy
            assert edits["masked"] != edits["right"] != edits["wrong"]


@pytest.mark.parametrize("cause", [BROKEN, "healthy"])
def test_reports_are_alike_only_where_one_is_a_copy(cause: str) -> None:
    reports = [
        rewrite_report(REPORT.format(cause=cause), number=number, mistaken=number % 3 == 0) for number in range(40)
    ]
    works = [Work(f"s{number}", f"s{number}", "a1", report=text) for number, text in enumerate(reports)]
    copy = Work("t", "t", "a1", report=reports[7])
    pairs = find_alike([*works, copy], lambda _: ()).pairs
    assert [(pair.one.student, pair.other.student) for pair in pairs] == [("s7", "t")]
    right, mistaken = parse_report(reports[1]), parse_report(reports[0])
    assert str(right.diagnosis[0].cause) in cause
    assert str(mistaken.diagnosis[0].cause) == "loss_sum"


@pytest.mark.slow
@needs_sandbox
def test_the_whole_course_is_made_scored_decided_and_exported(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["demo", "--out", str(tmp_path / "demo")])
    assert done.exit_code in (0, 1), done.output
    one, two = (tmp_path / "demo" / "reports" / week for week in ("week-1", "week-2"))
    handed_in = (row for row in read_scores(one).submissions if row.status != "missing")
    rows = {(row.student, row.recipe): row for row in handed_in}
    flags = {key: {flag.id for flag in row.flags} for key, row in rows.items()}
    assert {key for key, found in flags.items() if "similar" in found} == {("ada", "a1"), ("isaac", "a1")}
    assert {"other name", "other seed"} <= flags["isaac", "a1"]
    assert (rows["ada", "a1"].total, rows["ada", "a2"].total, rows["ada", "a3"].total) == (100, 100, 100)
    # Neither the cause nor the fix is correct.
    assert (rows["bjork", "a1"].total, rows["bjork", "a1"].rule and rows["bjork", "a1"].rule.total) == (45, 40)
    assert rows["diego", "a1"].total == 90
    assert rows["niamh", "a1"].late is None
    assert (rows["oksana", "a3"].total, rows["grace", "a1"].total) == (0, 100)
    assert {rows[key].status for key in (("ibrahim", "a1"), ("kwame", ""))} == {"rejected"}
    assert [change.submission for change in read_scores(one).changes] == [rows["bjork", "a1"].submission]
    rows = {(row.submission, row.student): row for row in read_scores(two).submissions}
    assert [flag.id for (_, who), row in rows.items() for flag in row.flags if who == "maria"] == ["other name"]
    twice = [row for (_, who), row in rows.items() if who == "chidi" and row.recipe == "b2" and row.total is not None]
    assert [bool(row.not_counting) for row in sorted(twice, key=lambda row: row.total or 0)] == [True, False]
    for week, formats in ((one, "csv json moodle pages"), (two, "canvas csv json pages")):
        assert sorted(path.name for path in (week / "export").iterdir()) == formats.split()
    assert len(re.findall(r"^\$ grader score", done.output, re.MULTILINE)) == 4
