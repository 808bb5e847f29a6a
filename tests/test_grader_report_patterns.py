"""The patterns that read a report, over texts at which a pattern that tries every way would never end.

There is no time in these tests: where one of the patterns is at fault, the test hangs.
"""

from collections.abc import Callable

import pytest

from grader.score.document import read_document
from grader.score.headings import _BOLD_LABEL, _BRACKETED, _LABEL, _STOPPED_LABEL, BOLD_LINE, part_of_heading
from grader.score.sentences import _SENTENCE_END, split_sentences

MANY = 10**6


@pytest.mark.parametrize(
    ("look", "text"),
    [
        (_LABEL.match, "rate" + " " * MANY + "x"),
        (_LABEL.match, " " * MANY + "x"),
        (BOLD_LINE.match, "**rate**" + " " * MANY + "x"),
        (_BOLD_LABEL.match, "**rate**" + " " * MANY),
        (_STOPPED_LABEL.match, "Rate." + " " * MANY),
        (_BRACKETED.match, "[rate]" + " " * MANY),
        (_SENTENCE_END.search, "a" + "." * MANY + "x"),
        (_SENTENCE_END.search, "a." + ")" * MANY + "x"),
    ],
    ids=["label", "spaces", "bold", "bold label", "stopped label", "bracketed label", "points", "brackets"],
)
def test_a_run_without_an_end_is_given_up(look: Callable[[str], object], text: str) -> None:
    assert look(text) is None


@pytest.mark.parametrize(
    "line",
    ["Root cause: x", "**Root cause:** x", "**Root cause**: x", "Root cause :x y", "  *Root cause* : x"],
)
def test_a_label_is_still_one(line: str) -> None:
    found = _LABEL.match(line.replace(":x", ": x"))
    assert found is not None
    assert part_of_heading(found[1]) == "root cause"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two!? Three... four.", ["One.", "Two!?", "Three...", "four."]),
        ('He said "so." Then he left.', ['He said "so."', "Then he left."]),
        ("Version 2.13.0 of it. Next", ["Version 2.13.0 of it.", "Next"]),
        ("a..b c..", ["a..b c.."]),
    ],
)
def test_sentences_still_end_where_they_do(text: str, sentences: list[str]) -> None:
    assert list(split_sentences(text)) == sentences


def test_a_line_of_one_word_and_spaces_is_read() -> None:
    document = read_document("\n".join(["rate" + " " * 4_990] * 4))
    assert document.word_count == 4
