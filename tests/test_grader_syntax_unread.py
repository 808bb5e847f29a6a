"""Functions that nothing uses go; what defining one does stays."""

import ast

import pytest

from grader.syntax.unread import drop_unread_functions


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("def show(x):\n    print(x)\ny = 1", "y = 1"),
        ("def a(x):\n    b(x)\ndef b(x):\n    c(x)\ndef c(x):\n    pass\ny = 1", "y = 1"),
        ("def a(n):\n    return a(n - 1)\ny = 1", "y = 1"),
        ("def a(x=1, *, z=None):\n    pass\ny = 1", "y = 1"),
        ("def kept():\n    pass", None),
        ("def a():\n    pass\ny = a", None),
        ("def a(f):\n    return f\n@a\ndef b():\n    pass\ny = b()", None),
        ("@register\ndef a():\n    pass", None),
        ("def a(x=act()):\n    pass", None),
        ("def a(*, x=act()):\n    pass", None),
    ],
)
def test_an_unread_function_goes(text: str, left: str | None) -> None:
    found = drop_unread_functions(ast.parse(text), {"kept"})
    assert ast.unparse(found) == ast.unparse(ast.parse(left or text))
