from typing import get_args

import pytest

from grader.score.solutions import Label
from grader.score.verdict import Check, full, lost, open_check
from grader.selfcheck.labels import BANDS, HOLLOW, RIGHT, complaint, points_of

MOST = {"parts": 2.0, "cause": 6.0, "chain": 4.0, "numbers": 3.0}


def checks(**points: float | None) -> tuple[Check, ...]:
    """All four checks with all their points but for those given; None is open."""

    def check(name: str, most: float) -> Check:
        given = points.get(name, most)
        if given is None:
            return open_check(name, name, most, "unclear")
        return (
            full(name, name, most, "right")
            if given == most
            else lost(name, name, most, "no", "do", points=given)
        )

    return tuple(check(name, most) for name, most in MOST.items())


NOTHING = checks(parts=0, cause=0, chain=0, numbers=0)


def test_every_label_but_open_has_its_band() -> None:
    assert set(get_args(Label)) == {*BANDS, "open"}
    assert {*RIGHT, *HOLLOW} < set(BANDS)


def test_the_order_of_the_labels() -> None:
    places = {label: band.place for label, band in BANDS.items()}
    assert sorted(places, key=lambda label: -places[label]) == [
        "excellent", "terse", "clumsy", "rival beside", "false numbers", "vague", "wrong cause", "keyword list",
        "every bug", "prompt", "empty",
    ]  # fmt: skip
    assert len({places[label] for label in RIGHT}) == 1
    assert places["rival beside"] == places["false numbers"]
    assert len({places[label] for label in ("keyword list", "every bug", "prompt", "empty")}) == 1


@pytest.mark.parametrize(
    ("label", "given", "said"),
    [
        ("excellent", checks(), ""),
        ("excellent", checks(numbers=1), "13 points, not 15"),
        ("clumsy", checks(numbers=1, parts=1), ""),
        ("terse", checks(numbers=0, parts=1), "11 points, not 12 to 15"),
        ("terse", checks(chain=3), "9 points for cause and chain, not 10"),
        ("rival beside", checks(cause=2), ""),
        ("rival beside", checks(cause=3), "12 points, not 0 to 11"),
        ("false numbers", checks(numbers=0), ""),
        ("false numbers", checks(parts=0, numbers=1), "1 points for its numbers, not 0"),
        ("vague", checks(cause=2, chain=0), ""),
        ("vague", checks(cause=3, chain=0), "8 points, not 0 to 7"),
        ("wrong cause", checks(cause=0, chain=0), ""),
        ("wrong cause", checks(cause=1, chain=0, parts=0), "1 points for cause and chain, not 0"),
        ("keyword list", NOTHING, ""),
        ("every bug", checks(cause=0, chain=0), "5 points, not 0 to 2"),
        ("empty", NOTHING, ""),
        ("empty", checks(parts=1, cause=0, chain=0, numbers=0), "1 points, not 0"),
        ("open", checks(cause=None), ""),
        ("open", checks(), "15 points, and it should wait for the instructor"),
        ("excellent", checks(cause=None), ""),
    ],
)
def test_a_label_complains_of_points_that_are_not_its_own(
    label: Label, given: tuple[Check, ...], said: str
) -> None:
    assert complaint(label, given) == said


def test_points_are_none_while_a_check_is_open() -> None:
    assert points_of(checks()) == 15
    assert points_of(checks(), "cause", "chain") == 10
    assert points_of(checks(cause=None)) is None
    assert points_of(checks(cause=None), "parts", "numbers") == 5
