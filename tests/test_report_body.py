import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.submission.report_body import count_words, read_body


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("The loss explodes.", 3),
        ("loss - accuracy: 0.93", 3),
        ("- * … — |", 0),
        ("word\u00a0word\tword\nword", 4),
        ("lr=10.0 [text](http://example.org)", 2),
        ("d\u00e9j\u00e0 vu", 2),
        ("\u640d\u5931 loss", 3),
    ],
)
def test_words_are_what_stands_between_spaces(text: str, words: int) -> None:
    assert count_words(text) == words


def test_code_and_tables_are_evidence_and_not_words() -> None:
    code, table = "```text\nloss 1 2 3\n```\n", "| step | loss |\n|---:|:--|\n| 1 | 2 |\n"
    text = f"# Symptom\n\nIt explodes:\n\n{code}\n{table}\nAfter.\n"
    body = read_body(text, "report.md", 1)
    assert (body.words, body.prose_words, body.snippets) == (4, 3, 2)


@pytest.mark.parametrize(
    ("text", "words", "snippets"),
    [
        ("~~~\na b\n```\nc\n~~~\nd", 1, 1),
        ("````\na\n```\nb\n````", 0, 1),
        ("```\n\n```", 0, 0),
        ("```inline``` code", 2, 0),
        ("    ```\nfour spaces", 2, 0),
        ("| prose that hides\n| behind a bar", 6, 0),
        ("|---|\n", 0, 0),
    ],
)
def test_what_counts_as_a_block(text: str, words: int, snippets: int) -> None:
    body = read_body(text, "report.md", 1)
    assert (body.words, body.snippets) == (words, snippets)


def test_pictures_are_found() -> None:
    text = "![a plot](plot.png) <IMG alt='x' src=\"data:image/png,AA\">\n```\n![no](code.png)\n```\n![open](x"
    assert read_body(text, "report.md", 1).images == ("plot.png", "data:image/png,AA", "x")


def test_a_code_block_must_end() -> None:
    with pytest.raises(
        UserError, match=r"report\.md, line 11: the code block .* put a line with ```` under it"
    ):
        read_body("text\n````\nall else", "report.md", 10)


@given(st.text(alphabet="`~|-# \nab![](<img src=)>", max_size=200))
def test_any_text_has_a_count_or_an_open_block(text: str) -> None:
    try:
        body = read_body(text, "report.md", 1)
    except UserError as error:
        assert "does not end" in str(error)
    else:
        assert 0 <= body.prose_words <= body.words <= count_words(text)
