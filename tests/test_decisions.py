from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.made_up_class import changed, make_row, scores_of

from grader.course.decisions import (
    Decision,
    apply_decisions,
    changed_scores,
    decisions_path,
    keep_decision,
    load_decisions,
)
from grader.report.pages import render_class_page, render_submission
from grader.score.scores_file import SCORES as SCORES_FILE
from grader.score.scores_file import read_rows_before, scores_json
from grader.score.verdict import Scores, SubmissionScore, criterion_score, full, lost, open_item
from harness.errors import UserError


def without_checks(status: str, total: float | None) -> SubmissionScore:
    name = status[0]
    why = "No archive."
    return make_row(f"{name}_huge_lr", name, "huge_lr", {}, status=status, total=total, reason=why, criteria={})


FAILED = changed("fix.correct", lost, "The check fails.", "Fix it.", points=4.0)
OPEN = changed("fix.minimal", open_item, "Big?")
SCORES = scores_of(
    make_row("ada_huge_lr", "ada", "huge_lr", FAILED),
    make_row("bob_huge_lr", "bob", "huge_lr", OPEN, reason="1 check waits."),
    without_checks("rejected", 0.0),
    without_checks("not judged", None),
)


def loaded(tmp_path: Path, text: str) -> tuple[Decision, ...]:
    decisions_path(tmp_path / "reports").write_text(text, encoding="utf-8")
    return load_decisions(tmp_path / "reports")


def one(body: str, submission: str = "ada_huge_lr", comment: str = "Looked at it.") -> str:
    return f'[[override]]\nsubmission = "{submission}"\n{body}\ncomment = "{comment}"\n'


def applied(tmp_path: Path, text: str) -> dict[str, SubmissionScore]:
    result = apply_decisions(SCORES, loaded(tmp_path, text))
    assert [row.submission for row in result.submissions] == [row.submission for row in SCORES.submissions]
    return {row.submission: row for row in result.submissions}


def test_points_stand_in_place_of_the_rule_and_are_added_up(tmp_path: Path) -> None:
    row = applied(tmp_path, one('check = "fix.correct"\npoints = 12'))["ada_huge_lr"]
    check = row.criteria["fix"].checks[0]
    assert (check.outcome, check.points, check.remedy, check.comment) == ("passed", 12, "", "Looked at it.")
    assert check.rule is not None
    assert (check.rule.outcome, check.rule.points, check.rule.reason) == ("failed", 4, "The check fails.")
    assert (row.criteria["fix"].points, row.total, row.status) == (20, 100, "graded")
    assert SCORES.submissions[0].total == 92


def test_what_was_passed_can_be_lost_and_an_open_check_that_is_decided_makes_it_graded(tmp_path: Path) -> None:
    text = one('check = "explanation.form"\npoints = 0') + one('check = "fix.minimal"\npoints = 3', "bob_huge_lr")
    rows = applied(tmp_path, text)
    assert rows["ada_huge_lr"].criteria["explanation"].checks[-1].outcome == "failed"
    assert rows["ada_huge_lr"].total == 89
    bob = rows["bob_huge_lr"]
    assert (bob.status, bob.total, bob.reason) == ("graded", 95, "")
    rule = bob.criteria["fix"].checks[1].rule
    assert rule is not None
    assert (rule.outcome, rule.points) == ("could not judge", None)


def test_it_stays_open_while_another_check_is(tmp_path: Path) -> None:
    row = applied(tmp_path, one('check = "fix.correct"\npoints = 3', "bob_huge_lr"))["bob_huge_lr"]
    assert (row.status, row.total) == ("not judged", None)
    assert row.reason == "The instructor has to decide: Nothing else was changed."


def test_it_stays_open_while_a_criterion_is_missing(tmp_path: Path) -> None:
    row = make_row("ada_huge_lr", "ada", "huge_lr", {})
    row = replace(row, criteria={"fix": criterion_score((full("a", "A", 3, ""), open_item("b", "B", 2, "")))})
    [after] = apply_decisions(scores_of(row), loaded(tmp_path, one('check = "fix.b"\npoints = 2'))).submissions
    assert (after.status, after.total, after.criteria["fix"].points) == ("not judged", None, 5)


@pytest.mark.parametrize("status", ["rejected", "not judged"])
def test_a_total_is_for_what_has_no_checks(tmp_path: Path, status: str) -> None:
    name = f"{status[0]}_huge_lr"
    row = applied(tmp_path, one("total = 40", name))[name]
    assert (row.status, row.total) == ("graded", 40)
    assert row.reason == f"The instructor decided: 40 of 100. Looked at it. (The grader: {status}. No archive.)"


@pytest.mark.parametrize("text", ["", "# none yet\noverride = []\n"])
def test_no_decision_changes_nothing(tmp_path: Path, text: str) -> None:
    assert load_decisions(tmp_path / "reports") == ()
    assert apply_decisions(SCORES, loaded(tmp_path, text)) == SCORES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (one('check = "fix.correct"\npoints = 13'), "fix.correct has at most 12 points, not 13"),
        (one('check = "fix.correct"\nadd = 9'), "fix.correct has at most 12 points, not 13"),
        (one('check = "fix.minimal"\nadd = 1', "bob_huge_lr"), "The item is open"),
        (one("add = 1", "bob_huge_lr"), "There is no total yet"),
        (one('check = "fix.corect"\npoints = 1'), "no item 'fix.corect': did you mean fix.correct?"),
        (one('check = "fix.correct"\npoints = 1', "ada_huge_rl"), "no such submission: did you mean ada_huge_lr"),
        (one('check = "fix.correct"\npoints = 1', "zzz"), "use a name from scores.json"),
        (one('check = "fix.correct"\npoints = 1', "r_huge_lr"), "is rejected and has no items: decide the total"),
        (one('check = "fix.correct"\npoints = 1\nsha256 = "0"'), "The decision is about another tarball."),
    ],
)
def test_a_decision_that_does_not_fit_is_noted_and_stops_nothing(tmp_path: Path, text: str, message: str) -> None:
    good = one("total = 40", "r_huge_lr")
    result = apply_decisions(SCORES, loaded(tmp_path, text + good))
    unfit, other = result.decisions
    assert (unfit.state, other.state) == ("not applied", "holds")
    assert message in unfit.why
    assert [row.total for row in result.submissions] == [92, None, 40, None]
    page = "".join(render_class_page(result))
    assert "Not applied" in page and "All decisions, the newest last" in page


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[override]]\nsubmission = ", "is not TOML"),
        ('[[overide]]\nsubmission = "a"', "overide: there is no such key"),
        ("override = [1]", "override #1: write a table"),
        (one('chek = "fix.correct"\npoints = 1'), "override #1.chek: there is no such key"),
        (one('check = "fix.correct"\npoints = nan'), "points: Input should be"),
        (one('check = "fix.correct"\npoints = -1'), "points: Input should be greater than or equal to 0"),
        (one('check = "fix.correct"'), "needs exactly one of `points`, `add` and `withdrawn`"),
        (one('check = "fix.correct"\npoints = 1\nadd = 1'), "needs exactly one"),
        (one('check = "fix.correct"\ntotal = 1'), "needs exactly one"),
        (one("points = 1"), "exactly one of `total`, `add`, `withdrawn` and `student`"),
        (one("add = inf"), "override #1.add:"),
        ('[[override]]\nsubmission = "a"\ntotal = 1\n', "override #1.comment: this key is missing"),
        (one("total = 1", comment=""), "comment: String should have at least 1 character"),
        (one("total = 1", "r_huge_lr") + one("total = 1001", "n_huge_lr"), "override #2.total:"),
    ],
)
def test_a_file_that_is_wrong_is_a_sentence_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        loaded(tmp_path, text)
    assert message in str(caught.value)
    assert str(tmp_path / "reports.decisions.toml") in str(caught.value)


def reviewed(**changes: object) -> Decision:
    values = {"submission": "bob_huge_lr", "check": "fix.minimal", "points": 3.0, "comment": "fine"}
    return Decision.model_validate({**values, **changes})


def test_what_was_reviewed_is_kept_beside_the_reports_and_applied(tmp_path: Path) -> None:
    out = tmp_path / "reports"
    keep_decision(out, reviewed(comment='"[[override]]"\n\\ \u202e\x7f é 学 🎓', who="Ada"))
    keep_decision(out, reviewed(submission="ada_huge_lr", check="fix.correct", sha256=""))
    first, second = load_decisions(out)
    assert (first.comment, first.who) == ('"[[override]]"\n\\ \u202e\x7f é 学 🎓', "Ada")
    assert (second.submission, second.sha256) == ("ada_huge_lr", "")
    after = apply_decisions(SCORES, [first])
    assert (after.submissions[1].status, after.submissions[1].total) == ("graded", 95)


@pytest.mark.parametrize("text", ["override = []\n", "[[overide]]\n", 'a = """\n'])
def test_nothing_is_written_behind_an_error_in_the_file(tmp_path: Path, text: str) -> None:
    path = decisions_path(tmp_path / "reports")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"reports\.decisions\.toml"):
        keep_decision(tmp_path / "reports", reviewed())
    assert path.read_text(encoding="utf-8") == text


def test_two_reviewers_at_once_lose_nothing(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda place: keep_decision(tmp_path / "reports", reviewed(comment=f"{place}")), range(40)))
    assert sorted(int(one.comment) for one in load_decisions(tmp_path / "reports")) == list(range(40))


def test_the_last_entry_about_a_thing_holds_and_the_earlier_ones_are_its_history(tmp_path: Path) -> None:
    out = tmp_path / "reports"
    entries = (
        reviewed(who="Ada", when="2026-01-01"),
        reviewed(points=1.0, comment="Too kind."),
        reviewed(points=None, withdrawn=True, comment="Undone."),
    )
    totals: list[float | None] = []
    for count, entry in enumerate(entries, start=1):
        keep_decision(out, entry)
        result = apply_decisions(SCORES, load_decisions(out))
        totals.append(result.submissions[1].total)
        assert len(result.decisions) == count
    assert totals == [95, 93, None]
    assert [one.state for one in result.decisions] == ["replaced", "replaced", "withdrawn"]
    assert result.submissions == SCORES.submissions
    page = "".join(render_class_page(result))
    assert all(words in page for words in ("Too kind.", "2026-01-01", "withdrawn: the original points count again"))


def test_points_are_added_below_the_floor_of_a_check_and_above_the_maximum_of_a_total(tmp_path: Path) -> None:
    penalty, bonus = one('check = "fix.correct"\nadd = -10'), one("add = 20")
    row = applied(tmp_path, penalty + bonus)["ada_huge_lr"]
    assert (row.criteria["fix"].checks[0].points, row.criteria["fix"].points) == (-6, 2)
    assert row.total == 102
    assert row.reason == "The instructor decided: 102 of 100 (+20). Looked at it. (The grader: 82 of 100.)"
    assert applied(tmp_path, one("add = -93"))["ada_huge_lr"].total == 0
    assert applied(tmp_path, one('check = "fix.correct"\nadd = -999'))["ada_huge_lr"].total == 0
    assert "102" in render_submission(row, None)


def test_a_total_replaces_the_sum_of_the_checks_and_an_open_one_waits_no_more(tmp_path: Path) -> None:
    rows = applied(tmp_path, one("total = 50") + one("total = 60", "bob_huge_lr"))
    assert [(row.status, row.total) for row in list(rows.values())[:2]] == [("graded", 50), ("graded", 60)]
    page = "".join(render_class_page(scores_of(*rows.values())))
    assert "fix.minimal: Big?" not in page and "The instructor decided: 60 of 100" in page


def test_decisions_about_scores_that_have_them_already_change_nothing(tmp_path: Path) -> None:
    text = one('check = "fix.correct"\nadd = 5') + one("add = -3") + one("total = 40", "r_huge_lr")
    once = apply_decisions(SCORES, loaded(tmp_path, text))
    assert apply_decisions(once, loaded(tmp_path, text)) == once
    assert apply_decisions(once, ()).submissions == SCORES.submissions


def test_what_was_decided_of_another_tarball_does_not_hold_and_an_earlier_one_of_this_does() -> None:
    old, new = (reviewed(sha256=letter * 64, points=points) for letter, points in (("a", 2.0), ("b", 3.0)))
    row = SCORES.submissions[1]
    of_old = replace(row, provenance={"tarball_sha256": "a" * 64})
    result = apply_decisions(scores_of(of_old), [old, new])
    assert (result.submissions[0].total, [one.state for one in result.decisions]) == (94, ["holds", "replaced"])
    # At the time of the decision, the submission was unreadable. The decision does not apply to a readable submission.
    (note,) = apply_decisions(scores_of(of_old), [reviewed(sha256="")]).decisions
    assert note.state == "not applied"


def test_a_second_scoring_says_what_changed_and_why(tmp_path: Path) -> None:
    assert [*read_rows_before(tmp_path)] == []
    gone = make_row("zoe_huge_lr", "zoe", "huge_lr", {})
    before = Scores(provenance={}, submissions=(*SCORES.submissions, gone))
    (tmp_path / SCORES_FILE).write_bytes(b"".join(scores_json(before)))
    earlier = [*read_rows_before(tmp_path)]
    assert earlier == [*before.submissions]
    assert [one.submission for one in changed_scores(earlier, SCORES)] == ["zoe_huge_lr"]
    rows = applied(tmp_path, one('check = "fix.correct"\npoints = 12'))
    other = lost("minimal", "Small", 8, "Large.", "Less.", points=2.0)
    rows["bob_huge_lr"] = make_row("bob_huge_lr", "bob", "huge_lr", {"fix.minimal": other})
    after = scores_of(*rows.values())
    found = {one.submission: (one.before, one.after, one.why) for one in changed_scores(earlier, after)}
    assert found == {
        "ada_huge_lr": ("92", "100", "your decision about fix.correct"),
        "bob_huge_lr": ("not judged", "94", "fix.minimal open -> 2"),
        "zoe_huge_lr": ("100", "gone", "the file is not there any more"),
    }
    page = "".join(render_class_page(replace(after, changes=changed_scores(earlier, after))))
    assert "your decision about fix.correct" in page
    assert changed_scores(after.submissions, SCORES)[0].why == ("your decision about fix.correct no longer applies")


def test_changes_say_what_came_what_went_and_what_counts() -> None:
    def missing(student: str) -> SubmissionScore:
        name = f"{student}_huge_lr (missing)"
        return replace(make_row(name, student, "huge_lr", {}), status="missing", total=None, provenance={})

    def row(name: str, student: str, sha256: str) -> SubmissionScore:
        return replace(make_row(name, student, "huge_lr", {}), provenance={"tarball_sha256": sha256})

    before = [missing("ada"), row("bob_huge_lr", "bob", "b"), row("eve_huge_lr", "eve", "e"), missing("joe")]
    before += [row("kim_huge_lr", "kim", "k")]
    again = replace(row("kim_huge_lr-1", "kim", "l"), not_counting="")
    late = replace(row("kim_huge_lr", "kim", "k"), not_counting="kim_huge_lr-1 counts.")
    now = [
        row("ada_huge_lr", "ada", "a"),
        row("x/bob_huge_lr", "bob", "b"),
        missing("eve"),
        missing("mia"),
        again,
        late,
    ]
    found = {
        one.submission: (one.before, one.after, one.why)
        for one in changed_scores(before, Scores(provenance={}, submissions=(*now,)))
    }
    assert found == {
        "ada_huge_lr": ("missing", "100", "handed in since then"),
        "eve_huge_lr": ("100", "missing", "the file is not there any more"),
        "joe_huge_lr (missing)": ("missing", "not expected", "the student or the case is not in the course any more"),
        "kim_huge_lr": ("100", "100, does not count", "it no longer counts"),
        "kim_huge_lr-1": ("new", "100", "handed in since then"),
        "mia_huge_lr (missing)": ("not expected", "missing", "the student, the case or the excuse is new"),
    }
    assert changed_scores([], Scores(provenance={}, submissions=(*now,))) == ()
