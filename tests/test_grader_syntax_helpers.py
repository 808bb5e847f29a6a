"""Helpers of one call go back to where they are called; nothing else moves."""

import ast

import pytest

from grader.syntax.helpers import inline_helpers


@pytest.mark.parametrize(
    ("text", "inlined"),
    [
        ("def h(a):\n    a.zero_grad()\ndef f(x):\n    h(x)", "def f(x):\n    x.zero_grad()"),
        ("def h(a):\n    return a / 2\ndef f(x):\n    return g(h(x))", "def f(x):\n    return g(x / 2)"),
        ("def h(a, b):\n    c = a + b\n    return c\ndef f(x):\n    y = h(x, b=1)\n    return y",
         "def f(x):\n    c = x + 1\n    y = c\n    return y"),
        ("def i(a):\n    a.g()\ndef h(a):\n    i(a)\ndef f(x):\n    h(x)", "def f(x):\n    x.g()"),
        ("def f(x):\n    h(x)\ndef h(a):\n    i(a)\ndef i(a):\n    a.g()", "def f(x):\n    x.g()"),
        ("def h():\n    return g()\ndef f(x):\n    if x:\n        return h()",
         "def f(x):\n    if x:\n        return g()"),
        ("def g():\n    h()\ndef h():\n    g()", None),
        ("def kept(a):\n    a.g()\nkept(x)", None),
        ("def h(a):\n    a.g()\nh(x)\nh(y)", None),
        ("def h(a=1):\n    a.g()\ndef f(x):\n    h(x)", None),
        ("@d\ndef h(a):\n    a.g()\ndef f(x):\n    h(x)", None),
        ("def h(*a):\n    a.g()\ndef f(x):\n    h(x)", None),
        ("def h(a):\n    a.g()\ndef f(x):\n    h(x, y)", None),
        ("def h(a):\n    a.g()\ndef f(x):\n    h(x())", None),
        ("def h(a):\n    a = 1\n    a.g()\ndef f(x):\n    h(x)", None),
        ("def h(a):\n    if a:\n        return 1\n    return 2\ndef f(x):\n    h(x)", None),
        ("def h(a):\n    yield a\ndef f(x):\n    h(x)", None),
        ("def h():\n    h()", None),
        ("def h(a):\n    a.g()\nmap(h, x)", None),
    ],
)  # fmt: skip
def test_a_helper_stands_where_it_is_called(text: str, inlined: str | None) -> None:
    tree = ast.parse(text)
    assert ast.unparse(inline_helpers(tree, {"kept", "f"})) == ast.unparse(ast.parse(inlined or text))
    assert ast.dump(tree) == ast.dump(ast.parse(text))
