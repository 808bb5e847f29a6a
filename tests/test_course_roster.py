"""A roster as platforms export it, and its effect on a class."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.courses import COURSE, POOLED, write_course
from helpers.made_up_class import make_row

from grader.course.course import check_course, read_course
from grader.course.decisions import Decision, apply_decisions
from grader.course.roster import EVERY, GROUP, read_roster, with_groups, with_missing, with_roster_flags
from grader.intake.folder import Arrival, Sender
from grader.report.gradebook import grade, is_excused, students_of
from grader.report.platforms import fill_canvas
from grader.report.standing import standings
from grader.score.identity import OTHER_NAME, Student, compare_rows, own_flags
from grader.score.verdict import Flag, Scores, SubmissionScore
from harness.errors import UserError
from harness.recipes.cases import Case
from harness.recipes.personal import personal_seed


def ids(cases: Sequence[Case]) -> list[str]:
    return [case.id for case in cases]


ADA = Student("ada", "Ada Lovelace", "ada@example.org", "A")
BY_ADDRESS = Student("ada@example.org", "Ada Lovelace", "ada@example.org", "A")
OF_CANVAS = Student("ada", "Lovelace, Ada", "", "A", ids=("17", "s17"))
PLAIN = "login,name,email,section\nada,Ada Lovelace,ada@example.org,A\n"
CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Quiz 1 (123)\n,,,,,Manual Posting\n"
    '    Points Possible,,,,,100\n"Lovelace, Ada",17,s17,ada,A,\n"Student, Test",99,,0123abcd,A,\n'
)
# Exported with the option to split names into two columns.
CANVAS_SPLIT = (
    "LastName,FirstName,ID,SIS User ID,SIS Login ID,Section,Quiz 1 (123)\n,,,,,,Manual Posting\n"
    "    Points Possible,,,,,,100\nLovelace,Ada,17,s17,ada,A,\nStudent,Test,99,,0123abcd,A,\n"
)
MOODLE = '"First name","Last name","Email address",Groups\nAda,Lovelace,ada@example.org,A\n'
WORKSHEET = (
    'Identifier,"Full name","ID number","Email address",Status,Grade,"Maximum Grade"\n'
    '"Participant 4711","Ada Lovelace",17,ada@example.org,"No submission",,100.00\n'
)
GRADESCOPE = "First Name,Last Name,SID,Email,Section\nAda,Lovelace,17,ada@example.org,A\n"


@pytest.mark.parametrize(
    ("text", "student"),
    [
        (PLAIN, ADA),
        (PLAIN.replace(",", ";"), ADA),
        (PLAIN.replace(",", "\t"), ADA),
        (f"\ufeff{PLAIN}".replace("\n", "\r\n"), ADA),
        (CANVAS, OF_CANVAS),
        (CANVAS_SPLIT, replace(OF_CANVAS, name="Ada Lovelace")),
        (MOODLE, BY_ADDRESS),
        (f"Username,{MOODLE}".replace("\nAda", "\nada,Ada"), ADA),
        (WORKSHEET, replace(BY_ADDRESS, section="", ids=("17", "Participant 4711"))),
        (GRADESCOPE, replace(BY_ADDRESS, ids=("17",))),
    ],
)  # fmt: skip
def test_what_a_platform_exports_is_read_as_it_is(text: str, student: Student, tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_bytes(text.encode())
    assert read_roster(path) == (student,)


def test_a_table_of_windows_is_read_with_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "roster.csv"
    path.write_bytes("login,name\nzoe,Zoë Müller\n".encode("cp1252"))
    assert read_roster(path) == read_roster(path) == (Student("zoe", "Zoë Müller"),)
    said = capsys.readouterr().err
    assert said.count("roster.csv is not UTF-8") == 1
    assert "zoe" not in said


def test_logins_of_any_script_have_one_form(tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_text("login\nzoe\u0308\n李雷\n\u043e\u043b\u044f@example.org\n", encoding="utf-8")
    assert [student.login for student in read_roster(path)] == ["zoë", "李雷", "\u043e\u043b\u044f@example.org"]


def test_every_line_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    lines = ("login,name", "ada,", ",Nobody", "ADA,", "\u0430da,Cyrillic", "a/b,", "bob\u200b,", f"{'x' * 65},")
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(UserError) as error:
        read_roster(path)
    told = str(error.value)
    for said in (
        "line 3: Nobody has no login", "line 4: ADA is also in line 2",
        r"line 5: '\u0430da' looks like 'ada' in line 2",
        "line 6: The login 'a/b' cannot", r"line 7: The login 'bob\u200b' cannot", "line 8: The login 'xxx",
    ):  # fmt: skip
        assert said in told


@pytest.mark.parametrize(
    ("text", "said"), [("", "no column with logins"), ("a,b\n", "no column"), ("login\n", "no student")]
)
def test_what_is_no_roster_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text(text)
    with pytest.raises(UserError, match=said):
        read_roster(tmp_path / "roster.csv")
    with pytest.raises(UserError, match="There is no"):
        read_roster(tmp_path / "other.csv")


def row(student: str, case: str, **more: Any) -> SubmissionScore:
    made = SubmissionScore(
        submission=f"{student}_{case}", student=student, recipe=case, status="graded", reason="", total=50.0,
        criteria={}, flags=(), provenance={},
    )  # fmt: skip
    return replace(made, **more)


def test_who_did_not_hand_in_a_case_has_a_row(tmp_path: Path) -> None:
    course = read_course(write_course(tmp_path))
    students, cases = course.students(), course.cases(course.find("week-1"))
    rows = with_missing([row("Ada", "a1"), row("bob", "a1", submission="ada_a2 (missing)")], students, ids(cases))
    missing = {(item.student, item.recipe) for item in rows if item.status == "missing"}
    every = {(student, case) for student in ("ada", "bob", "cem") for case in ("a1", "a2", "a3")}
    assert missing == every - {("ada", "a1"), ("bob", "a1")}
    assert len({item.submission for item in rows}) == len(rows)
    assert {item.total for item in rows if item.status == "missing"} == {None}
    again = with_missing([*rows, row("cem", "a1")], students, ids(cases))
    assert {(item.student, item.recipe) for item in again if item.status == "missing"} == missing - {("cem", "a1")}
    decided = [replace(item, status="graded", total=0.0) if item.student == "cem" else item for item in rows]
    assert with_missing(decided, students, ids(cases)) == decided


def test_strangers_and_other_students_seeds_are_flagged_and_cost_nothing(tmp_path: Path) -> None:
    course = read_course(write_course(tmp_path))
    students, cases = course.students(), course.cases(course.find("week-1"))
    ada, nobody = personal_seed("ml", "ada", "a1"), 7
    made = {
        ("ADA", ada): [],
        ("bob", ada): ["other seed"],
        ("cem", nobody): ["other seed"],
        ("eve", ada): ["not on the roster", "other seed"],
    }
    rows = [row(student, "a1", provenance={"seed": seed}) for student, seed in made]
    flagged = with_roster_flags(compare_rows(rows), students, cases)
    assert [[flag.id for flag in item.flags] for item in flagged] == list(made.values())
    assert f"have the seed {ada}, which belongs to ada, not to bob" in flagged[1].flags[0].message
    assert "belongs to nobody on the roster" in flagged[2].flags[0].message
    assert {item.total for item in flagged} == {50.0}
    assert own_flags(flagged[1]) == ()  # a student's page names no other student
    shared = course.model_copy(update={"personal_seeds": False})
    cases = shared.cases(shared.find("week-1"))
    assert with_roster_flags(rows[:3], students, cases) == rows[:3]


def test_a_file_from_somebody_who_is_not_on_the_roster_is_flagged(tmp_path: Path) -> None:
    students = (Student("ada", "Ada Lovelace", "al@example.org"), Student("bob", "Bob", ""))
    ours = ("Lovelace, Ada", "lovelaceada", "Participant", "", "Ada King, Countess")
    senders = {**dict.fromkeys(ours, ()), "Evelyn Ghost": ("not on the roster",)}
    for name, ids in senders.items():
        arrival = Arrival(file="f", senders=(Sender(platform="Moodle", name=name),))
        [found] = with_roster_flags([row("ada", "a1", arrival=arrival)], students, [])
        assert tuple(flag.id for flag in found.flags) == ids, name
    assert "According to Moodle, Evelyn Ghost sent this file" in found.flags[0].message
    [found] = with_roster_flags([row("ada", "a1", arrival=arrival)], [Student("ada")], [])
    assert found.flags == (), "a roster of logins tells no names"


def test_a_seed_follows_from_course_login_and_case() -> None:
    seeds = {personal_seed(course, name, case) for course in "xy" for name in ("ada", "bob") for case in ("a1", "a2")}
    assert len(seeds) == 8
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert personal_seed("x", "ada", "a1") == personal_seed("x", " ADA ", "a1")
    assert personal_seed("x", "zoe\u0308", "a1") == personal_seed("x", "zoë", "a1")
    assert personal_seed("ml", "ada", "a1") == 3508203955  # existing kits contain this seed


# --- Excused students and groups ---


def test_an_excused_case_is_no_missing_one(tmp_path: Path) -> None:
    course = read_course(write_course(tmp_path))
    cases = course.cases(course.find("week-1"))
    rows = with_missing([], course.students(), ids(cases), {"Ada": ["a2"], "bob": [EVERY]})
    assert {(row.student, row.recipe): row.status for row in rows} == {
        (student, case): "excused" if (student, case) == ("ada", "a2") or student == "bob" else "missing"
        for student in ("ada", "bob", "cem")
        for case in ("a1", "a2", "a3")
    }
    handed_in = make_row("ada_a1", "ada", "a1", {})
    rows = with_missing([handed_in], course.students(), ids(cases), {"ada": ["a2"]})
    students = students_of(Scores(provenance={}, submissions=(*rows,)))
    assert grade(students["ada"], ["a1", "a2", "a3"]) == 50, "a3 is missing, a2 does not count"
    assert grade(students["ada"], ["a2"]) is None and is_excused(students["ada"], ["a2"])
    table = tmp_path / "canvas.csv"
    table.write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section,Week (1)\n    Points Possible,,,,,100\nAda,1,,ada,,\n"
    )
    assert b'"EX"' in fill_canvas(students, table, exercises=["a2"]).table


def test_what_one_of_a_group_hands_in_counts_for_all(tmp_path: Path) -> None:
    course = read_course(write_course(tmp_path))
    cases = course.cases(course.find("week-1"))
    row = make_row("ada_a1", "ada", "a1", {})
    foreign = make_row("x_a2", "ada", "a2", {}, flags=(Flag(id=OTHER_NAME, message="?"),))
    rows = with_groups([row, foreign], [["ADA", "bob"]])
    assert {(one.submission, one.student, one.copy_of) for one in rows} == {
        ("ada_a1", "ada", ""), ("ada_a1 (with bob)", "bob", "ada_a1"), ("x_a2", "ada", ""),
    }  # fmt: skip
    whole = with_missing(rows, course.students(), ids(cases))
    assert ("bob", "a1", "missing") not in {(one.student, one.recipe, one.status) for one in whole}
    copy = next(one for one in whole if one.copy_of)
    assert [flag.id for flag in with_roster_flags([copy], course.students(), cases)[0].flags] == [GROUP]
    # A decision applies to the group, or only to one member.
    of_all = Decision(submission="ada_a1", total=50, comment="So.")
    of_one = Decision(submission="ada_a1 (with bob)", total=70, comment="He did more.")
    for decisions, totals in (([of_all], {50}), ([of_all, of_one], {50, 70}), ([of_one], {100, 70})):
        decided = apply_decisions(Scores(provenance={}, submissions=(*rows,)), decisions).submissions
        again = with_groups(decided, [["ada", "bob"]])
        assert {one.total for one in again if one.recipe == "a1"} == totals
        assert len(again) == 3


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            'excused = { ada = ["b1"] }',
            "excuses ada from b1, which is not in this assignment: choose from a1, a2, a3, or all",
        ),
        ('excused = { eve = ["all"] }', "eve is excused, but is not on the roster"),
        ('groups = [["ada", "bob"], ["cem", "Ada"]]', "lists ada in two groups, or twice in a group"),
        ('groups = [["ada", "eve"]]', "eve is in a group, but is not on the roster"),
        ('groups = [["ada"]]', "at least 2 items"),
    ],
)
def test_wrong_groups_and_excuses_are_named(line: str, said: str, tmp_path: Path) -> None:
    file = write_course(tmp_path, COURSE.replace("[assignment.late]", f"{line}\n[assignment.late]", 1))
    with pytest.raises(UserError) as error:
        check_course(file)
    assert said in str(error.value)


def test_each_student_gets_one_case_of_a_pool(tmp_path: Path) -> None:
    course = read_course(write_course(tmp_path, POOLED))
    week = course.find("week-1")
    assert week.pool_of("a3") == ("a3", "a4")
    assert week.pool_of("a1") == ()
    a3, a4 = (case for case in course.cases(week) if case.pool)
    draws = {name: a3.case_of(name) for name in ("ada", "bob", "cem", *(f"s{number}" for number in range(100)))}
    assert {a4.case_of(name) for name in ("ada", "Ada ")} == {draws["ada"]}
    assert 30 < sum(case == "a3" for case in draws.values()) < 73
    rows = with_missing([], course.students(), week.exercises, {"ada": ["a3"]}, course.cases(week))
    pooled = {(row.student, row.recipe): row.status for row in rows if row.recipe in ("a3", "a4")}
    for name, status in (("ada", "excused"), ("bob", "missing"), ("cem", "missing")):
        assert pooled.pop((name, draws[name])) == status
    assert set(pooled.values()) == {"not drawn"}
    assert len(pooled) == 3


def test_a_case_of_the_pool_that_the_student_handed_in_takes_the_place_of_the_own(tmp_path: Path) -> None:
    course = read_course(write_course(tmp_path, POOLED))
    week = course.find("week-1")
    own = next(case for case in course.cases(week) if case.pool).case_of("bob")
    other = {"a3": "a4", "a4": "a3"}[own]
    rows = with_missing([row("bob", other)], course.students(), week.exercises, None, course.cases(week))
    assert next(row.status for row in rows if (row.student, row.recipe) == ("bob", own)) == "not drawn"
    scores = Scores(provenance={}, submissions=tuple(rows))
    assert set(standings(scores)["bob"].exercises) == {"a1", "a2", other}
    assert grade(students_of(scores)["bob"], week.exercises) == pytest.approx(50 / 3)


def test_a_pool_of_one_case_is_refused(tmp_path: Path) -> None:
    file = write_course(
        tmp_path, COURSE.replace('experiment = "orders_mlp"', 'experiment = "orders_mlp"\npool = "p"', 1)
    )
    with pytest.raises(UserError, match="the pool p has only one case: add another case, or remove the pool"):
        check_course(file)


def test_what_an_excused_student_handed_in_does_not_count(tmp_path: Path) -> None:
    course = read_course(write_course(tmp_path))
    students, cases = course.students(), ids(course.cases(course.find("week-1")))
    arrival = Arrival(file="x")
    handed_in = [row("ada", case, arrival=arrival) for case in cases] + [row("bob", "a1", arrival=arrival)]
    once = with_missing(handed_in, students, cases, {"ada": [EVERY]})
    rows = with_missing(once, students, cases, {"ada": [EVERY]})
    assert rows == once
    own = [one for one in rows if one.student == "ada"]
    assert [(one.submission, one.status, one.total) for one in own] == [
        (f"ada_{case}", "excused", None) for case in cases
    ]
    assert own[0].reason == "The student is excused, so this submission does not count."
    scores = Scores(provenance={}, submissions=tuple(rows))
    assert is_excused(students_of(scores)["ada"], cases)
    assert grade(students_of(scores)["ada"], cases) is None
    assert grade(students_of(scores)["bob"], cases) == pytest.approx(50 / 3)


def test_who_is_not_on_the_roster_has_no_page(tmp_path: Path) -> None:
    course = read_course(write_course(tmp_path))
    rows = with_roster_flags([row("ada", "a1"), row("eve", "a1")], course.students(), [])
    assert set(standings(Scores(provenance={}, submissions=tuple(rows)))) == {"ada"}
