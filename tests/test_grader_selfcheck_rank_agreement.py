import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.selfcheck.rank_agreement import spearman

NUMBERS = st.lists(st.tuples(st.integers(0, 15), st.integers(1, 6)), min_size=2, max_size=40)


def test_order_alone_counts() -> None:
    assert spearman([1, 2, 3], [10, 20, 1000]) == pytest.approx(1.0)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1.0)


def test_equal_values_share_their_mean_rank() -> None:
    # By hand: ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5.
    assert spearman([0, 7, 7, 15], [1, 2, 3, 4]) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)


def test_what_does_not_vary_has_no_rank() -> None:
    assert spearman([1, 1], [1, 2]) is None
    assert spearman([1, 2], [1, 1]) is None
    assert spearman([], []) is None


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="2 values cannot be ranked against 3"):
        spearman([1, 2], [1, 2, 3])


@given(NUMBERS)
def test_it_is_what_scipy_finds(pairs: list[tuple[int, int]]) -> None:
    stats = pytest.importorskip("scipy.stats")
    first, second = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    found = spearman(first, second)
    if found is not None:
        assert found == pytest.approx(stats.spearmanr(first, second).statistic)
