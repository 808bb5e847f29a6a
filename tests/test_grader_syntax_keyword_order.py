"""Keywords of a call stand in the order of the other source, and everything else where it was."""

import ast

import pytest

from grader.syntax.keyword_order import keywords_as_in


@pytest.mark.parametrize(
    ("text", "ordered"),
    [
        ("f(x, b=2, a=1)", "f(x, a=1, b=2)"),
        ("f(new=0, b=2, a=1, c=3)", "f(new=0, a=1, b=2, c=3)"),
        ("f(b=2, new=0, a=1)", "f(a=1, new=0, b=2)"),
        ("g(b=2, a=1)", "g(b=2, a=1)"),
        ("f(b=2, **more, a=1)", "f(b=2, **more, a=1)"),
        ("f(b=2)", "f(b=2)"),
    ],
)
def test_keywords_stand_as_in_the_other_source(text: str, ordered: str) -> None:
    found = keywords_as_in(ast.parse(text), ast.parse("f(x, a=1, b=2)\nf(b=1, a=2)"))
    assert ast.unparse(found) == ordered
