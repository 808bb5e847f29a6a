from pathlib import Path

import pytest
from made_up_class import changed, make_row

from grader.course.decisions import (
    Decision,
    all_decisions,
    apply_decisions,
    decisions_path,
    keep_decision,
    load_decisions,
)
from grader.score.verdict import Scores, SubmissionScore, criterion_score, full, lost, open_check
from harness.errors import UserError

WITHOUT_CHECKS = {
    status: SubmissionScore(
        submission=f"{status[0]}_huge_lr",
        student=status[0],
        recipe="huge_lr",
        status=status,
        reason="No archive.",
        total=0.0 if status == "rejected" else None,
        criteria={},
        provenance={},
    )
    for status in ("rejected", "not judged")
}
SCORES = Scores(
    provenance={},
    submissions=(
        make_row(
            "ada_huge_lr",
            "ada",
            "huge_lr",
            changed("fix.correct", lost, "The probe fails.", "Mend.", points=4.0),
        ),
        make_row(
            "bob_huge_lr",
            "bob",
            "huge_lr",
            changed("fix.minimal", open_check, "Big?"),
            reason="1 check waits.",
        ),
        *WITHOUT_CHECKS.values(),
    ),
)


def loaded(tmp_path: Path, text: str) -> tuple[Decision, ...]:
    path = tmp_path / "overrides.toml"
    path.write_text(text, encoding="utf-8")
    return load_decisions(path)


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
    assert (check.rule.outcome, check.rule.points, check.rule.reason) == ("failed", 4, "The probe fails.")
    assert (row.criteria["fix"].points, row.total, row.status) == (20, 100, "graded")
    assert SCORES.submissions[0].total == 92


@pytest.mark.parametrize(
    ("body", "points"), [("add = 2", 6), ("add = -4", 0), ("add = 0.5", 4.5), ("points = 0", 0)]
)
def test_a_check_can_be_adjusted(tmp_path: Path, body: str, points: float) -> None:
    row = applied(tmp_path, one(f'check = "fix.correct"\n{body}'))["ada_huge_lr"]
    check = row.criteria["fix"].checks[0]
    assert (check.outcome, check.points, check.remedy) == ("failed", points, "Mend.")
    assert row.total == 88 + points


def test_what_was_passed_can_be_lost(tmp_path: Path) -> None:
    row = applied(tmp_path, one('check = "explanation.form"\npoints = 0'))["ada_huge_lr"]
    assert row.criteria["explanation"].checks[-1].outcome == "failed"
    assert row.total == 91


def test_an_open_check_that_is_decided_makes_it_graded(tmp_path: Path) -> None:
    row = applied(tmp_path, one('check = "fix.minimal"\npoints = 3', "bob_huge_lr"))["bob_huge_lr"]
    assert (row.status, row.total, row.reason) == ("graded", 95, "")
    rule = row.criteria["fix"].checks[1].rule
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
    scores = Scores(provenance={}, submissions=(row,))
    [after] = apply_decisions(scores, loaded(tmp_path, one('check = "fix.b"\npoints = 2'))).submissions
    assert (after.status, after.total, after.criteria["fix"].points) == ("not judged", None, 5)


@pytest.mark.parametrize("status", ["rejected", "not judged"])
def test_a_total_is_for_what_has_no_checks(tmp_path: Path, status: str) -> None:
    name = f"{status[0]}_huge_lr"
    row = applied(tmp_path, one("total = 40", name))[name]
    assert (row.status, row.total) == ("graded", 40)
    assert (
        row.reason == f"The instructor decided: 40 of 100. Looked at it. (The grader: {status}. No archive.)"
    )


def test_several_overrides_of_one_submission_add_up(tmp_path: Path) -> None:
    text = one('check = "fix.correct"\npoints = 5') + one('check = "fix.minimal"\nadd = -1')
    assert applied(tmp_path, text)["ada_huge_lr"].total == 92


def test_no_override_changes_nothing(tmp_path: Path) -> None:
    assert apply_decisions(SCORES, loaded(tmp_path, "")) == SCORES
    assert apply_decisions(SCORES, loaded(tmp_path, "# none yet\noverride = []\n")) == SCORES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (one('check = "fix.correct"\npoints = 13'), "fix.correct would have 13 points, and is worth 0 to 12"),
        (one('check = "fix.correct"\nadd = 9'), "would have 13 points"),
        (one('check = "fix.correct"\nadd = -5'), "would have -1 points"),
        (one('check = "fix.minimal"\nadd = 1', "bob_huge_lr"), "could not be judged, so there is nothing to add"),
        (one('check = "fix.corect"\npoints = 1'), "no check 'fix.corect': did you mean fix.correct?"),
        (one('check = "correct"\npoints = 1'), "no check 'correct'"),
        (one('check = "fix.correct"\nadd = 1', "ada_huge_rl"), "no submission 'ada_huge_rl': did you mean ada_huge_lr"),
        (one('check = "fix.correct"\npoints = 1', "zzz"), "the names are those in scores.json"),
        (one('check = "fix.correct"\npoints = 1', "r_huge_lr"), "is rejected and has no checks: give it a `total`"),
        (one("total = 40"), "has checks, and its total is their sum"),
    ],
)  # fmt: skip
def test_an_override_that_does_not_fit_is_a_sentence(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        applied(tmp_path, text)
    assert message in str(caught.value)
    assert f"{tmp_path / 'overrides.toml'}, override 1 (line 1): " in str(caught.value)


def test_the_close_match_may_be_hostile(tmp_path: Path) -> None:
    rows = (make_row("mallory_\x1b[2J\u202ehuge_lr", "x", "huge_lr", {}),)
    with pytest.raises(UserError, match="did you mean") as caught:
        apply_decisions(
            SCORES.model_copy(update={"submissions": rows}),
            loaded(tmp_path, one('check = "fix.correct"\nadd = 1', "mallory_huge_lr")),
        )
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[override]]\nsubmission = ", "is not TOML"),
        ('[[overide]]\nsubmission = "a"', "there is no key 'overide': did you mean override?"),
        ('[override]\nsubmission = "a"', "begin each override with a line [[override]]"),
        ("override = [1]", "begin each override with a line [[override]]"),
        (one('chek = "fix.correct"\npoints = 1'), "there is no key 'chek': did you mean check?"),
        (one('place = "x"\ntotal = 1'), "there is no key `place`"),
        (one('check = "fix.correct"\npoints = "12"'), "points: Input should be a valid number"),
        (one('check = "fix.correct"\npoints = true'), "points: Input should be a valid number"),
        (one('check = "fix.correct"\npoints = nan'), "points: Input should be a finite number"),
        (one('check = "fix.correct"\npoints = -1'), "points: Input should be greater than or equal to 0"),
        (one("total = 101"), "total: Input should be less than or equal to 100"),
        (one('check = "fix.correct"'), "needs exactly one of `points`, `add` and `total`"),
        (one('check = "fix.correct"\npoints = 1\nadd = 1'), "needs exactly one of"),
        (one('check = "fix.correct"\ntotal = 1'), "`total` stands without one"),
        (one("points = 1"), "need a `check`"),
        ('[[override]]\nsubmission = "a"\ntotal = 1\n', "'comment' is missing"),
        (one("total = 1", comment=""), "comment: String should have at least 1 character"),
        ('[[override]]\ncomment = "a"\ntotal = 1\n', "'submission' is missing"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_is_a_sentence_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        loaded(tmp_path, text)
    assert message in str(caught.value)
    assert str(tmp_path / "overrides.toml") in str(caught.value)


def test_the_place_is_the_override_in_question(tmp_path: Path) -> None:
    text = one("total = 1", "r_huge_lr") + "\n# a comment\n" + one("total = 1001", "n_huge_lr")
    with pytest.raises(UserError, match=r"overrides\.toml, override 2 \(line 7\): total:"):
        loaded(tmp_path, text)


def test_a_header_within_a_text_makes_lines_uncertain(tmp_path: Path) -> None:
    text = '[[override]]\nsubmission = "a"\ntotal = 101\ncomment = """\n[[override]]\n"""\n'
    with pytest.raises(UserError, match=r"overrides\.toml, override 1: total:"):
        loaded(tmp_path, text)


def test_one_thing_is_decided_once(tmp_path: Path) -> None:
    text = one('check = "fix.correct"\npoints = 5') + one('check = "fix.correct"\nadd = 1')
    with pytest.raises(
        UserError, match=r"2 \(line 6\): fix.correct of ada_huge_lr is already decided by override 1 \("
    ):
        loaded(tmp_path, text)


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"There is no file .*overrides\.toml"):
        load_decisions(tmp_path / "overrides.toml")
    (tmp_path / "overrides.toml").write_bytes(b"\xff")
    with pytest.raises(UserError, match="not UTF-8"):
        load_decisions(tmp_path / "overrides.toml")


def reviewed(**changes: object) -> Decision:
    values = {
        "submission": "bob_huge_lr",
        "check": "fix.minimal",
        "points": 3.0,
        "comment": "fine",
        "place": "",
    }
    return Decision.model_validate({**values, **changes})


def test_what_was_reviewed_is_kept_beside_the_reports_and_applied(tmp_path: Path) -> None:
    out = tmp_path / "reports"
    assert all_decisions(out, None) == ()
    keep_decision(decisions_path(out), reviewed(comment='"[[override]]"\n\\ \u202e\x7f é 学 🎓', who="Ada"))
    keep_decision(decisions_path(out), reviewed(submission="ada_huge_lr", check="fix.correct", sha256=None))
    first, second = all_decisions(out, None)
    assert (first.comment, first.who) == ('"[[override]]"\n\\ \u202e\x7f é 学 🎓', "Ada")
    assert second.submission == "ada_huge_lr"
    after = apply_decisions(SCORES, [first])
    assert (after.submissions[1].status, after.submissions[1].total) == ("graded", 95)


def test_a_file_by_hand_wins_over_what_was_reviewed(tmp_path: Path) -> None:
    keep_decision(decisions_path(tmp_path / "reports"), reviewed())
    by_hand = tmp_path / "overrides.toml"
    by_hand.write_text(one('check = "fix.minimal"\npoints = 8', "bob_huge_lr"))
    row = apply_decisions(SCORES, all_decisions(tmp_path / "reports", by_hand)).submissions[1]
    check = row.criteria["fix"].checks[1]
    assert (row.total, check.points, check.comment) == (100, 8, "Looked at it.")
    assert check.rule is not None and check.rule.outcome == "could not judge"


def test_a_decision_about_another_tarball_is_flagged_and_not_applied() -> None:
    row = apply_decisions(SCORES, [reviewed(sha256="0" * 64)]).submissions[1]
    assert (row.status, [flag.id for flag in row.flags][-1]) == ("not judged", "other tarball")
    assert apply_decisions(SCORES, [reviewed(submission="gone_huge_lr", sha256="0" * 64)]) == SCORES
