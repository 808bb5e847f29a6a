import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.report.page_names import is_page_name, page_stems


def test_an_ordinary_submission_keeps_its_name() -> None:
    assert page_stems(["ada_huge_lr", "b.o-b_loss_sum"]) == {
        "ada_huge_lr": "ada_huge_lr",
        "b.o-b_loss_sum": "b.o-b_loss_sum",
    }


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../../etc/passwd",
        "a/b",
        "a\\b",
        "-rf",
        ".hidden",
        "index",
        "INDEX",
        "con",
        "CON.x",
        "nul",
        "COM1",
        "a.",
        "a b",
        "a\x00b",
        "Smith, Jr.",
        "=1+1",
        "<script>",
        "é",
        "\ud800",
        "x" * 101,
        "a:b",
        "\u202eabc",
    ],
)
def test_an_unsafe_name_gets_a_safe_one(name: str) -> None:
    stem = page_stems([name])[name]
    assert stem != name
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,60}-[0-9a-f]{16}", stem)


def test_names_that_differ_in_case_alone_are_told_apart() -> None:
    stems = page_stems(["Ada_x", "ada_x", "bob_x"])
    assert stems["bob_x"] == "bob_x"
    assert len({stem.lower() for stem in stems.values()}) == 3


def test_nobody_can_choose_the_name_of_another_page() -> None:
    wanted = page_stems(["../ada"])["../ada"]
    stems = page_stems(["../ada", wanted])
    assert stems["../ada"] == wanted
    assert stems[wanted] != wanted


@given(
    st.lists(
        st.text(st.characters(codec=None), max_size=12) | st.sampled_from(["a", "A", "index", "ö", "con"])
    )
)
def test_no_two_pages_share_a_name_and_order_does_not_matter(names: list[str]) -> None:
    stems = page_stems(names)
    assert stems == page_stems(reversed(names))
    assert set(stems) == set(names)
    assert len({stem.lower() for stem in stems.values()}) == len(set(names))
    assert all(is_page_name(f"{stem}.html") for stem in stems.values())


@pytest.mark.parametrize("name", ["index.html", "notes.txt", ".html", "a b.html", "ada"])
def test_what_is_not_a_page_of_a_submission(name: str) -> None:
    assert not is_page_name(name)
