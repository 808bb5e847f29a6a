import pytest

from harness.page.heat_map import confusion_heat_map


def test_tints_are_shares_of_the_true_class() -> None:
    heat_map = confusion_heat_map([[3, 1], [0, 0]], ["cat", "dog"])
    assert heat_map is not None
    assert heat_map.classes == ("cat", "dog")
    assert [[cell.share for cell in row] for row in heat_map.rows] == [["0.75", "0.25"], ["0.00", "0.00"]]
    assert [cell.strong for cell in heat_map.rows[0]] == [True, False]
    assert heat_map.summary == "3 of 4 on the diagonal"


@pytest.mark.parametrize("names", [None, ["only one"], "ab", [1, 2, 3]])
def test_names_that_do_not_fit_become_numbers(names: object) -> None:
    heat_map = confusion_heat_map([[1, 2], [3, 4]], names)
    assert heat_map is not None
    assert heat_map.classes == ("0", "1")


@pytest.mark.parametrize("counts", [None, [], [[1, 2]], [[1, -1], [0, 0]], [["1"]], {"a": 1}, [[1.5]]])
def test_what_is_no_table_of_counts_gives_none(counts: object) -> None:
    assert confusion_heat_map(counts, None) is None
