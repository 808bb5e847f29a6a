import pytest
from made_up_class import changed, made_up_class, make_row

from grader.report.class_figures import distribution, lost_checks, maxima, means, middle, totals
from grader.score.verdict import SubmissionScore, lost, open_check


def rejected() -> SubmissionScore:
    return SubmissionScore(
        submission="e", student="e", recipe="a", status="rejected", total=0.0, criteria={}, provenance={}
    )


ROWS = [
    make_row("1", "s", "a", {}),
    make_row("2", "s", "a", changed("fix.minimal", lost, "", "", points=2.0)),
    make_row(
        "3", "s", "b", changed("fix.minimal", lost, "", "") | changed("fix.correct", lost, "", "", points=4.0)
    ),
    make_row("4", "s", "b", changed("fix.minimal", open_check, "")),
    rejected(),
]


def test_only_what_is_graded_counts() -> None:
    assert totals(ROWS) == [100, 94, 84]
    assert middle(totals(ROWS)) == 94
    assert middle([]) is None


@pytest.mark.parametrize(
    ("value", "index"), [(0, 0), (9.99, 0), (10, 1), (89.9, 8), (90, 9), (100, 9), (-1, 0), (130, 9)]
)
def test_a_total_falls_into_one_bar(value: float, index: int) -> None:
    bars = distribution([value])
    assert [bar.count for bar in bars] == [int(i == index) for i in range(10)]
    assert (bars[0].low, bars[-1].high) == (0, 100)


def test_means_by_recipe_and_of_all() -> None:
    a, b, every = means(ROWS)
    assert (a.recipe, a.graded, a.total) == ("a", 2, 97)
    assert a.criteria == (35, 30, 17, 15)
    assert (b.graded, b.total, b.criteria) == (1, 84, (35, 30, 4, 15))
    assert (every.recipe, every.graded) == ("", 3)
    assert every.criteria == pytest.approx((35, 30, 38 / 3, 15))


def test_means_of_nothing() -> None:
    [every] = means([])
    assert (every.graded, every.total, every.criteria) == (0, None, (None,) * 4)
    assert means([rejected()]) == (every,)


def test_what_each_criterion_is_worth() -> None:
    assert maxima(ROWS) == {"reproducibility": 35, "diagnostics": 30, "fix": 20, "explanation": 15}
    assert maxima([rejected()]) == {}


def test_the_check_most_often_lost_comes_first() -> None:
    first, second, *others = lost_checks(ROWS)
    assert (first.criterion, first.id, first.lost, first.judged, first.open) == ("fix", "minimal", 2, 3, 1)
    assert first.points_lost == pytest.approx(14 / 3)
    assert first.share == pytest.approx(2 / 3)
    assert (second.id, second.lost, second.judged, second.points_lost) == ("correct", 1, 4, 2)
    assert len(others) == 15
    assert {one.lost for one in others} == {0}
    assert others[0].criterion == "reproducibility"


def test_a_check_that_is_open_everywhere_has_no_share() -> None:
    [one] = [one for one in lost_checks([ROWS[3]]) if one.id == "minimal"]
    assert (one.judged, one.open, one.share, one.points_lost) == (0, 1, 0.0, 0.0)


def test_the_order_of_the_class_does_not_matter() -> None:
    rows = made_up_class(60)[0].submissions
    assert lost_checks(rows) == lost_checks(rows[::-1])
    assert means(rows) == means(rows[::-1])
