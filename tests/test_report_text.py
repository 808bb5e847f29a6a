import re
from collections import Counter
from pathlib import Path

import pytest
from helpers.made_up_class import BROKEN, HOSTILE
from hypothesis import given
from hypothesis import strategies as st

from grader.private import without_folders
from grader.report.text import COLUMNS, LINES, MISSING, clip, file_stem, plain_lines, points, source_diff, tenths
from harness.recipes.recipe import ROOT


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{ROOT}/exercises/huge_lr/recipe.toml is missing.", "recipe.toml is missing."),
        ("/home/prof/.cache/train wreck/x: '/srv/a/b.npz'", "train wreck/x: 'b.npz'"),
        (f"no {Path.home()}/a b/c", "no a b/c"),
        ("see https://a.example/b/c, and/or /scratch/experiment.py, line 3", "="),
        ("exercises/huge_lr/recipe.toml, 1/2, </b/c>", "="),
    ],
)
def test_a_message_names_no_folder_of_this_machine(text: str, shown: str) -> None:
    assert without_folders(text) == (text if shown == "=" else shown)


def test_texts_and_points_are_short() -> None:
    assert clip("a\nb", 3) == "a b"
    assert clip("x" * 100, 10) == "x" * 10 + "… (90 more characters)"
    assert list(map(points, (None, 0.0, 6.5, 33.333))) == [MISSING, "0", "6.5", "33.33"]
    assert (tenths(None), tenths(87.946)) == (MISSING, "87.9")


@pytest.mark.parametrize("name", ["ada_huge_lr", "b.o-b_loss_sum", "0", "a" * 100])
def test_an_ordinary_submission_keeps_its_name(name: str) -> None:
    assert file_stem(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "../../etc/passwd", "a/b", "a\\b", "-rf", ".hidden", "index", "INDEX", "con", "CON.x", "nul",
        "COM1", "a.", "a b", "a\x00b", "Smith, Jr.", "=1+1", "<script>", "é", "\ud800", "x" * 101, "a:b", "\u202eabc",
        "Ada_x",
    ],
)  # fmt: skip
def test_an_unsafe_name_gets_a_safe_one(name: str) -> None:
    stem = file_stem(name)
    assert stem != name
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,60}-[0-9a-f]{16}", stem)


def test_nobody_can_choose_the_file_name_of_another_page() -> None:
    wanted = file_stem("../ada")
    assert file_stem(wanted) != wanted


NAMES = st.text(st.characters(codec=None), max_size=12) | st.sampled_from(["a", "A", "index", "ö", "con"])


@given(st.sets(NAMES))
def test_no_two_pages_share_a_file_name_on_any_file_system(names: set[str]) -> None:
    assert len({file_stem(name).lower() for name in names}) == len(names)


@given(st.text(st.sampled_from("ab\n\t\r"), max_size=40), st.text(st.sampled_from("ab\n\t\r"), max_size=40))
def test_a_diff_holds_every_change(broken: str, fixed: str) -> None:
    lines = source_diff(broken, fixed)
    for sign, source in (("-", broken), ("+", fixed)):
        shown = [line[1:] for line in lines if line[0] in (sign, " ")]
        assert set(plain_lines(source)) >= set(shown)
    changed = [Counter(line[1:] for line in lines if line[0] == sign) for sign in "-+"]
    old, new = Counter(plain_lines(broken)), Counter(plain_lines(fixed))
    assert old - changed[0] == new - changed[1]


def test_equal_sources_have_no_change_and_hidden_characters_are_spelled_out() -> None:
    assert source_diff("a\nb\n", "a\r\nb") == []
    assert plain_lines("") == []
    last = source_diff("a", f"a\n{HOSTILE}")[-1]
    assert "<U+202E>" in last and "\u202e" not in last


@pytest.mark.parametrize("piece", ["\n", " \n", "a\n", "(", " "])
def test_a_page_stays_small_whatever_the_source(piece: str) -> None:
    source = piece * (1_000_000 // len(piece))
    lines = plain_lines(source)
    assert len(lines) <= LINES + 1
    assert max(map(len, lines)) <= COLUMNS + 2
    assert sum(line[0] == "+" for line in source_diff(BROKEN, source)) <= LINES + 1
