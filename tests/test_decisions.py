from pathlib import Path

import pytest
from made_up_class import changed, make_row, scores_of

from grader.course.decisions import Decision, apply_decisions, decisions_path, keep_decision, load_decisions
from grader.score.verdict import SubmissionScore, criterion_score, full, lost, open_check
from harness.errors import UserError


def without_checks(status: str, total: float | None) -> SubmissionScore:
    name = status[0]
    why = "No archive."
    return make_row(f"{name}_huge_lr", name, "huge_lr", {}, status=status, total=total, reason=why, criteria={})


FAILED = changed("fix.correct", lost, "The check fails.", "Fix it.", points=4.0)
OPEN = changed("fix.minimal", open_check, "Big?")
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
    assert row.reason == "It waits for the instructor: Nothing else was changed."


def test_it_stays_open_while_a_criterion_is_missing(tmp_path: Path) -> None:
    row = make_row("ada_huge_lr", "ada", "huge_lr", {})
    row = row.model_copy(
        update={"criteria": {"fix": criterion_score((full("a", "A", 3, ""), open_check("b", "B", 2, "")))}}
    )
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
        (one('check = "fix.correct"\npoints = 13'), "fix.correct is worth 0 to 12, not 13"),
        (one('check = "fix.corect"\npoints = 1'), "no check 'fix.corect': did you mean fix.correct?"),
        (one('check = "fix.correct"\npoints = 1', "ada_huge_rl"), "no such submission: did you mean ada_huge_lr"),
        (one('check = "fix.correct"\npoints = 1', "zzz"), "the names are those in scores.json"),
        (one('check = "fix.correct"\npoints = 1', "r_huge_lr"), "is rejected and has no checks: give it a `total`"),
        (one("total = 40"), "has checks, and its total is their sum"),
    ],
)
def test_a_decision_that_does_not_fit_is_a_sentence(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match="Your decision about ") as caught:
        applied(tmp_path, text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[override]]\nsubmission = ", "is not TOML"),
        ('[[overide]]\nsubmission = "a"', "overide: Extra inputs are not permitted"),
        ("override = [1]", "override.0: Input should be a valid dictionary"),
        (one('chek = "fix.correct"\npoints = 1'), "override.0.chek: Extra inputs are not permitted"),
        (one('check = "fix.correct"\npoints = nan'), "points: Input should be"),
        (one('check = "fix.correct"\npoints = -1'), "points: Input should be greater than or equal to 0"),
        (one('check = "fix.correct"'), "needs a `check` and its `points`, or a `total` alone"),
        (one('check = "fix.correct"\npoints = 1\ntotal = 1'), "needs a `check`"),
        ('[[override]]\nsubmission = "a"\ntotal = 1\n', "override.0.comment: Field required"),
        (one("total = 1", comment=""), "comment: String should have at least 1 character"),
        (one("total = 1", "r_huge_lr") + one("total = 1001", "n_huge_lr"), "override.1.total:"),
        (one('check = "fix.correct"\npoints = 5') * 2, "fix.correct of ada_huge_lr is decided twice"),
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
    keep_decision(decisions_path(out), reviewed(comment='"[[override]]"\n\\ \u202e\x7f é 学 🎓', who="Ada"))
    keep_decision(decisions_path(out), reviewed(submission="ada_huge_lr", check="fix.correct", sha256=None))
    first, second = load_decisions(out)
    assert (first.comment, first.who) == ('"[[override]]"\n\\ \u202e\x7f é 学 🎓', "Ada")
    assert second.submission == "ada_huge_lr"
    after = apply_decisions(SCORES, [first])
    assert (after.submissions[1].status, after.submissions[1].total) == ("graded", 95)


def test_what_was_reviewed_of_another_tarball_or_before_its_checks_is_flagged_and_not_applied() -> None:
    when = "2026-01-01"
    for decision in (reviewed(sha256="0" * 64, when=when), reviewed(check=None, points=None, total=40.0, when=when)):
        row = apply_decisions(SCORES, [decision]).submissions[1]
        assert (row.status, [flag.id for flag in row.flags][-1]) == ("not judged", "old_decision")
    assert apply_decisions(SCORES, [reviewed(submission="gone_huge_lr", when=when)]) == SCORES
