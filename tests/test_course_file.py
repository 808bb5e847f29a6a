"""A course file: its content, and one report of all its mistakes; drawn cases, lateness, attempts."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from helpers.courses import COURSE, POOLED, ROSTER, write_course
from helpers.made_up_class import make_row

from grader.cli import cli
from grader.course.course import check_course, read_course
from grader.course.decisions import TOTAL, Decision, apply_decisions
from grader.course.draw import draw_cases
from grader.course.lateness import AttemptRule, choose_attempt, with_lateness
from grader.course.review import find_open_items
from grader.intake.folder import Arrival, Sender
from grader.score.deadlines import LatePolicy, Schedule
from grader.score.rubric import DEFAULT_RUBRIC
from grader.score.verdict import Lateness, RuleTotal, Scores, SubmissionScore
from harness.errors import UserError
from harness.recipes.cases import case_of, load_cases
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import LEVELS

RESULTS = "[assignment.results]\n{} = 2026-10-28T00:00:00\n[assignment.late]"


def refused(folder: Path, *changes: tuple[str, str], roster: str = ROSTER) -> str:
    text = COURSE
    for find, other in changes:
        assert find in text
        text = text.replace(find, other, 1)
    with pytest.raises(UserError) as error:
        check_course(write_course(folder, text, roster))
    return str(error.value)


def test_a_course_is_read_as_written(tmp_path: Path) -> None:
    course = read_course(write_course(tmp_path))
    week = course.find("week-1")
    one, two, three = course.cases(week)
    assert (one.causes, two.causes, three.causes) == (
        ("broadcast_loss",), ("frozen_layer", "split_contamination"), ("healthy",),
    )  # fmt: skip
    assert one.broken_source() == load_recipe("broadcast_loss").broken_source()
    assert two.broken_source() == case_of("x", [load_recipe(name) for name in two.parts]).broken_source()
    assert three.broken_source() == three.healthy_source()
    (decoy,) = course.cases(course.find("week-2"))
    assert decoy.is_healthy
    assert "BATCH_SIZE = 8" in decoy.broken_source()
    # In October, Berlin is two hours ahead of UTC. In November, it is one hour ahead.
    schedule = course.schedule(week)
    assert schedule.deadline("ada") == datetime(2026, 10, 27, 22, 59, tzinfo=UTC)
    assert schedule.deadline("Cem") == datetime(2026, 10, 29, 22, 59, tzinfo=UTC)
    assert [student.login for student in course.students()] == ["ada", "bob", "cem"]
    # By default, students see no results before the last student's deadline and grace period have passed: cem's.
    assert schedule.feedback == schedule.solution == datetime(2026, 10, 30, 0, 14)
    lines = "\n".join(check_course(tmp_path / "course.toml"))
    assert "feedback from 2026-10-30 00:14 CET, and the solution from 2026-10-30 00:14 CET; before" in lines
    assert "3 students in 2 sections" in lines
    levels = sorted(case.goal.level for case in (one, two) if case.goal is not None)
    assert f"3 cases (1 healthy, {', '.join(f'1 level {level}' for level in levels)})" in lines


@pytest.mark.parametrize(
    ("find", "replace", "said"),
    [
        ("secret =", "sekret =", "sekret: there is no such key: did you mean secret?"),
        ("grace_minutes", "grace_minute", "assignment.week-1.late.grace_minute: there is no such key: did you"),
        ('experiment = "strength_reg"', 'experimnt = "strength_reg"', "a1.experimnt: there is no such key: did"),
        ("Europe/Berlin", "Europe/Berlni", "time_zone: 'Europe/Berlni' is not a time zone"),
        ("broadcast_loss", "brodcast_loss", "assignment.week-1.case.a1: There is no exercise 'brodcast_loss': did you"),
        ('["broadcast_loss"]', '["huge_lr"]', "huge_lr breaks the experiment digits_mlp, not strength_reg"),
        ('id = "a1"', 'id = "layernorm"', "choose another id"),
        ('id = "a1"', 'id = "a2"', "two cases have the id a2"),
        ('id = "week-2"', 'id = "week-1"', "two assignments have the id week-1"),
        ("2026-10-27T23:59:00", "2026-10-19T23:59:00", "is due 2026-10-19 23:59, but opens"),
        ("2026-10-27T23:59:00", "2026-10-27T23:59:00Z", "remove the offset"),
        (
            "opens = 2026-10-20T08:00:00",
            "opens = 2026-03-29T02:30:00",
            "2026-03-29 02:30 does not exist in Europe/Berlin",
        ),
        ("cem = 2026-10-29", "cem = 2026-10-22", "the extension of cem ends"),
        ("{ cem =", "{ cme =", "cme has an extension, but is not on the roster"),
        ("points_per_day = 10", "points_per_day = 10\npercent_per_day = 5", "keep one"),
        (
            "[assignment.late]",
            RESULTS.format("fedback"),
            "assignment.week-1.results.fedback: there is no such key: did you mean feedback?",
        ),
        (
            "[assignment.late]",
            RESULTS.format("solution"),
            "is 2026-10-28 00:00, but students can hand in until 2026-10-28 00:14",
        ),
        (
            "[assignment.late]",
            RESULTS.format("feedback = 2026-10-31T00:00:00\nsolution").replace("28T00", "30T08"),
            "results.solution is before results.feedback, 2026-10-31 00:00: change one",
        ),
        ('decoy = "tiny_batches"', 'decoy = "overshoot"', "there is no decoy of digits_mlp 'overshoot'"),
        ("due = 2026-11-03T23:59:00", 'due = 2026-11-03T23:59:00\nrubric = "none.toml"', "none.toml"),
    ],
)
def test_a_mistake_is_named_with_its_place(find: str, replace: str, said: str, tmp_path: Path) -> None:
    assert said in refused(tmp_path, (find, replace))


def test_feedback_may_come_before_the_solution(tmp_path: Path) -> None:
    text = COURSE.replace("[assignment.late]", RESULTS.format("feedback"), 1)
    course = read_course(write_course(tmp_path, text))
    schedule = course.schedule(course.find("week-1"))
    assert (schedule.feedback, schedule.solution) == (datetime(2026, 10, 28), datetime(2026, 10, 30, 0, 14))


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    told = refused(
        tmp_path,
        ("secret =", "sekret ="),
        ("broadcast_loss", "brodcast_loss"),
        roster=f"{ROSTER}ada,Again,,\n,Nobody,,\n",
    )
    assert "needs 4 corrections" in told
    for part in ("sekret", "brodcast_loss", "line 5: ada is also in line 2", "line 6: Nobody has no"):
        assert part in told


def test_a_missing_file_is_one_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^There is no .*course.toml"):
        check_course(tmp_path / "course.toml")
    write_course(tmp_path, "[[")
    with pytest.raises(UserError, match=r"(?s)1 correction:.*is not TOML"):
        check_course(tmp_path / "course.toml")
    write_course(tmp_path)
    (tmp_path / "roster.csv").unlink()
    with pytest.raises(UserError, match=r"(?s)1 correction:.*There is no .*roster.csv: export"):
        check_course(tmp_path / "course.toml")


def test_a_new_course_is_accepted_and_replaces_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    made = run(cli, ["course", "new"])
    assert made.exit_code == 0, made.output
    text = Path("course.toml").read_text()
    assert run(cli, ["course", "check"]).output.startswith("my-course: ")
    assert run(cli, ["course", "new"], standalone_mode=False).exception is not None
    assert Path("course.toml").read_text() == text
    drawn = run(cli, ["course", "draw", "--assignment", "week-1", "--cases", "3", "--level", "1"]).output
    assert drawn in text
    assert run(cli, ["course", "draw", "--assignment", "week-2", "--cases", "3", "--level", "1"]).output != drawn


@pytest.mark.parametrize("level", range(1, LEVELS + 1))
def test_drawn_cases_differ_in_their_experiments_and_in_what_they_look_like(level: int, tmp_path: Path) -> None:
    course = read_course(write_course(tmp_path))
    pairs = [set(pair.exercises) for pair in load_cases().twins]
    healthy = set()
    for number in range(12):
        cases = [table.case() for table in draw_cases(course, f"week-{number}", 6, level)]
        assert len({case.experiment for case in cases}) == len({case.id for case in cases}) == 6
        for one, two in combinations(cases, 2):
            assert not [
                pair
                for pair in pairs
                if pair & set(one.parts) and pair & set(two.parts) and pair <= {*one.parts, *two.parts}
            ]
        healthy.add(sum(case.is_healthy for case in cases))
    assert healthy == {1, 2}


def test_a_draw_follows_from_the_secret_and_repeats_no_break(tmp_path: Path) -> None:
    course = read_course(write_course(tmp_path))
    first = draw_cases(course, "week-3", 6, 2)
    assert draw_cases(course, "week-3", 6, 2) == first
    other = course.model_copy(update={"secret": "another secret"})
    assert draw_cases(other, "week-3", 6, 2) != first
    assert {case.id[0] for case in first} == {"c"}
    every = {name for number in range(20) for case in draw_cases(course, f"w{number}", 5, 1) for name in case.breaks}
    assert not every & {"broadcast_loss", "frozen_layer"}
    with pytest.raises(UserError, match=r"Level 1 has only \d breaks of different experiments"):
        draw_cases(course, "week-3", 26, 1)


DUE = datetime(2026, 10, 27, 23, 59, tzinfo=UTC)


def test_lateness_is_counted_in_begun_days_after_the_grace() -> None:
    late = LatePolicy(points_per_day=10, grace_minutes=15, most_days=3)
    after = {0: 0, 15: 0, 16: 1, 24 * 60: 1, 24 * 60 + 1: 2, 72 * 60 + 1: 4}
    assert {minutes: late.days_late(DUE + timedelta(minutes=minutes), DUE) for minutes in after} == after
    assert late.days_late(None, DUE) == 0
    assert [late.deduction(25, days) for days in range(5)] == [0, 10, 20, 25, 25]
    assert late.deduction(90, 4) == 90  # later than most_days
    assert LatePolicy(percent_per_day=10).deduction(57.67, 1) == 5.77
    assert LatePolicy().deduction(80, 100) == 0


def attempt(name: str, hours: int | None, total: float | None, **more: Any) -> SubmissionScore:
    """Return a row that came in this many hours after the due date."""
    moment = None if hours is None else DUE + timedelta(hours=hours)
    facts = {"student": "ada", "recipe": "a1", "status": "graded", "criteria": {}, "provenance": {}, **more}
    return SubmissionScore(submission=name, total=total, arrival=Arrival(file=name, submitted_at=moment), **facts)


def test_the_attempt_that_counts_follows_the_rule() -> None:
    one, two, three = attempt("a", 1, 80.0), attempt("b", 2, 90.0), attempt("c", 3, 70.0)
    rules: tuple[AttemptRule, ...] = ("latest", "best", "first")
    assert {rule: choose_attempt([two, one, three], rule) for rule in rules} == {
        "latest": three,
        "best": two,
        "first": one,
    }
    assert choose_attempt([], "best") is None
    unknown = attempt("a", None, 80.0)
    assert choose_attempt([unknown], "latest") == unknown
    assert choose_attempt([unknown, two], "latest") is None
    assert choose_attempt([unknown, two], "best") == two
    assert choose_attempt([one, attempt("b", 2, None)], "best") is None
    assert choose_attempt([one, attempt("z", 9, 0.0, status="rejected")], "latest") == one, (
        "a broken file takes no place"
    )
    equal = [attempt(name, 1, 80.0) for name in ("x", "z", "y")]
    assert {rule: choose_attempt(equal, rule) for rule in rules} == dict.fromkeys(rules, equal[1])


def test_of_two_files_with_one_time_none_counts_unless_the_points_are_equal() -> None:
    one, two = attempt("a", 20, 50.0), attempt("b", 20, 60.0)
    assert choose_attempt([one, two], "latest") is None
    assert choose_attempt([one, two], "first") is None
    assert choose_attempt([one, two], "best") is two
    same = replace(two, total=50.0)
    assert choose_attempt([one, same], "latest") is same


def test_the_same_bytes_again_are_no_attempt() -> None:
    def sent(name: str, hours: int | None, digest: str) -> SubmissionScore:
        return attempt(name, hours, 80.0, provenance={"tarball_sha256": digest})

    first, again, other = sent("a", 1, "x"), sent("b", 30, "x"), sent("c", 20, "y")
    assert choose_attempt([again, first], "latest") == first
    assert choose_attempt([sent("a", None, "x"), sent("b", None, "x")], "latest") == sent("a", None, "x")
    assert choose_attempt([sent("a", None, "x"), again], "latest") == again
    assert choose_attempt([sent("a", None, "x"), other], "latest") is None
    assert choose_attempt([first, other, again], "latest") == again, (
        "who goes back to an earlier version sends it again"
    )


def test_lateness_is_taken_from_the_total_once_and_never_from_a_decision() -> None:
    due = DUE.replace(tzinfo=None)
    schedule = Schedule(time_zone="UTC", due=due, late=LatePolicy(points_per_day=10), feedback=due, solution=due)
    rule = RuleTotal(status="graded", total=90.0, reason="")
    added = replace(rule, added=5.0)
    rows = [attempt("a", -1, 90.0), attempt("b", 25, 90.0), attempt("c", 25, None), attempt("d", 25, 95.0, rule=rule)]
    after = due.replace(tzinfo=UTC) + timedelta(days=9)
    early, late, waits, decided, more = with_lateness([*rows, attempt("e", 25, 95.0, rule=added)], schedule, after)
    assert more.total == 75.0, "points that are added do not undo lateness"
    assert (early, waits, decided) == (rows[0], rows[2], rows[3])
    assert (late.total, late.late) == (70.0, Lateness(days=2, cost=20.0))
    before = Scores(provenance={}, submissions=(late,))
    assert apply_decisions(before, ()).submissions == (rows[1],), "it is counted anew each time"


def test_an_unknown_time_waits_where_lateness_would_cost_points() -> None:
    due = DUE.replace(tzinfo=None)
    policy = LatePolicy(points_per_day=10, grace_minutes=15, extensions={"cem": due + timedelta(days=2)})
    schedule = Schedule(time_zone="UTC", due=due, late=policy, feedback=due, solution=due)
    now = DUE + timedelta(days=1)
    rows = [make_row(f"{student}_a1", student, "a1", {}) for student in ("ada", "cem")]

    def judged(row: SubmissionScore, schedule: Schedule = schedule, now: datetime = now) -> SubmissionScore:
        return with_lateness([row], schedule, now)[0]

    def on_canvas(*, late: bool) -> Arrival:
        return Arrival(file="x", senders=(Sender(platform="Canvas", name="ada"),), late=late)

    waits, extended = map(judged, rows)
    assert (waits.status, waits.total, waits.untimed) == ("not judged", None, True)
    assert "If this submission was on time, it has 100 of 100 points." in waits.reason
    assert extended == rows[1], "there is time left"
    for row in (
        judged(rows[0], now=DUE + timedelta(minutes=15)),
        judged(rows[0], schedule.model_copy(update={"late": LatePolicy(grace_minutes=3)})),
        judged(replace(rows[0], total=0.0)),
        judged(replace(rows[0], arrival=on_canvas(late=False))),
    ):
        assert not row.untimed
    assert judged(replace(rows[0], arrival=on_canvas(late=True))).untimed
    # A decision about the total ends the wait. A decision about an item does not.
    before = Scores(provenance={}, submissions=(waits,))
    assert apply_decisions(before, ()).submissions == (waits,)
    of_total = Decision(submission="ada_a1", total=90, comment="In time.")
    of_check = Decision(submission="ada_a1", check="fix.minimal", points=4, comment="Long.")
    (decided,) = apply_decisions(before, [of_total]).submissions
    assert (judged(decided).status, judged(decided).total) == ("graded", 90)
    (decided,) = apply_decisions(before, [of_check]).submissions
    assert "If this submission was on time, it has 96 of 100 points." in decided.reason
    (item,) = find_open_items([decided])
    assert (item.about, item.accepted) == (TOTAL, 96)


def test_each_line_that_the_new_file_offers_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, ["course", "new"]).exit_code == 0
    file = Path("course.toml")
    Path("my-rubric.toml").write_bytes(DEFAULT_RUBRIC.read_bytes())
    lines = file.read_text().splitlines()
    offered = [number for number, line in enumerate(lines) if re.match(r"# (\[assignment|\w+ +=)", line)]
    assert len(offered) >= 5
    table = next(number for number in offered if "[assignment.results]" in lines[number])
    for chosen in (*([table, number] for number in offered), offered):
        wanted = {number for number in chosen if number != table or chosen[-1] > table}
        file.write_text("\n".join(line[2:] if at in wanted else line for at, line in enumerate(lines)))
        check_course(file)


@pytest.mark.parametrize("table", ['id = "w1"\nwritten = "decision_tree"', 'id = "w1"\nexperiment = "decision_tree"'])
def test_a_written_exercise_among_the_cases_says_where_it_belongs(table: str, tmp_path: Path) -> None:
    text = COURSE.replace("[[assignment.case]]", f"[[assignment.case]]\n{table}\n[[assignment.case]]", 1)
    with pytest.raises(UserError) as error:
        read_course(write_course(tmp_path, text))
    said = "assignment.week-1.case.w1: a written exercise is not a case: remove this table, and write written ="
    assert f'{said} ["decision_tree"] under [[assignment]]' in str(error.value)


def test_a_misspelt_key_is_one_problem(tmp_path: Path) -> None:
    text = COURSE.replace("experiment =", "experimnt =", 1)
    with pytest.raises(UserError) as error:
        read_course(write_course(tmp_path, text))
    assert "a1.experimnt: there is no such key: did you mean experiment?" in str(error.value)
    assert "missing" not in str(error.value)


@pytest.mark.parametrize(
    ("find", "replace", "said"),
    [
        (
            "due = 2026-10-27T23:59:00",
            'due = "2026-10-27"',
            "due: write a date and a time as 2026-11-16T23:59:00, without",
        ),
        ("due = 2026-10-27T23:59:00", "due = 27.10.2026", "is not TOML"),
        ("hints = true", 'hints = "yes"', "hints: write true or false"),
        ("hints = true", "hints = True", "true and false in lower case"),
        ("hints = true", 'groups = [["ada"]]', "write at least 2 items"),
        ("hints = true", 'attempts = "lastest"', "attempts: write 'latest', 'best' or 'first'"),
        ("hints = true", 'written = "decision_tree"', "written: write a list"),
        ("roster =", "predict = true\nroster =", "predict: there is no such key: move this key below [[assignment]]"),
        ("roster =", "folder = 1\nroster =", "remove the key folder, which does not belong"),
        ('id = "a2"', 'id = "a1"', "two cases have the id a1: rename one"),
    ],
)
def test_a_wrong_value_says_what_to_write(find: str, replace: str, said: str, tmp_path: Path) -> None:
    assert said in refused(tmp_path, (find, replace))


def test_the_check_of_a_course_says_what_differs_between_students(tmp_path: Path) -> None:
    more = 'triage = "figures"\npredict = true\ngroups = [["ada", "bob"]]\nexcused = { cem = ["a1"] }\n'
    lines = check_course(write_course(tmp_path, POOLED.replace("[assignment.late]", f"{more}[assignment.late]", 1)))
    text = "\n".join(lines)
    for part in (
        "each student gets one of: a3 (", "the checks show values without outcomes", "students predict each run",
        "cem has time until 2026-10-29 23:59", "cem is excused from a1", "ada and bob hand in together",
    ):  # fmt: skip
        assert part in text
