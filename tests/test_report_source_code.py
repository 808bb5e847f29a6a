import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_class import BROKEN, HOSTILE

from grader.report.source_code import COLUMNS, LINES, plain_lines, source_diff


@given(st.text(st.sampled_from("ab\n\t\r"), max_size=40), st.text(st.sampled_from("ab\n\t\r"), max_size=40))
def test_a_diff_holds_every_change_at_its_lines(broken: str, fixed: str) -> None:
    old, new = plain_lines(broken), plain_lines(fixed)
    lines = [line for group in source_diff(broken, fixed) for line in group]
    for line in lines:
        assert line.old is None or line.code == old[line.old - 1]
        assert line.new is None or line.code == new[line.new - 1]
        assert (line.old is None, line.new is None) == (line.kind == "added", line.kind == "removed")
    rest_old = [text for at, text in enumerate(old, start=1) if at not in {line.old for line in lines}]
    rest_new = [text for at, text in enumerate(new, start=1) if at not in {line.new for line in lines}]
    assert rest_old == rest_new


def test_equal_sources_have_no_change_and_hidden_characters_are_spelled_out() -> None:
    assert source_diff("a\nb\n", "a\r\nb") == []
    assert plain_lines("") == []
    [group] = source_diff("a", f"a\n{HOSTILE}")
    assert "<U+202E>" in group[-1].code and "\u202e" not in group[-1].code


@pytest.mark.parametrize("piece", ["\n", " \n", "a\n", "(", " "])
def test_a_page_stays_small_whatever_the_source(piece: str) -> None:
    source = piece * (1_000_000 // len(piece))
    lines = plain_lines(source)
    assert len(lines) <= LINES + 1
    assert max(map(len, lines)) <= COLUMNS + 2
    assert sum(line.kind == "added" for group in source_diff(BROKEN, source) for line in group) <= LINES + 1
