"""Numbers are worked out within bounds, and constants with a name go back to their place."""

import ast

import pytest

from grader.syntax.constants import inline_constants, number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("64 * 4 * 4", 1024),
        ("-(1 + 2) - 0.5", -3.5),
        ("10 ** 3", None),
        ("1 / 0", None),
        ("1e400", None),
        ("f(1)", None),
        ("'1'", None),
        ("1j", None),
        ("9" * 20, None),
        ("*".join(["999999999999"] * 80), None),
    ],
)
def test_a_number_is_worked_out_or_left(text: str, value: float | None) -> None:
    assert number(ast.parse(text, mode="eval").body) == value


@pytest.mark.parametrize(
    ("text", "inlined"),
    [
        ("RATE = 0.1\nf(RATE)", "f(0.1)"),
        ("SCALE = 2.0 ** 16\nf(SCALE, -SCALE)", "f(2.0 ** 16, -2.0 ** 16)"),
        ("def f():\n    return RATE\nRATE = -1", "def f():\n    return -1"),
        ("KEPT = 1\nf(KEPT)", None),
        ("RATE = 1\nRATE = 2\nf(RATE)", None),
        ("RATE = 1\ndef f(RATE):\n    return RATE", None),
        ("RATE = 1\nimport RATE.a\nf(RATE)", None),
        ("RATE = 1\ntry:\n    f()\nexcept E as RATE:\n    f(RATE)", None),
        ("RATE = 1\ndef f():\n    global RATE\n    g(RATE)", None),
        ("RATE = g()\nf(RATE)", None),
        ("LARGE = 1 + 2 + 3\nf(LARGE)", None),
        ("a, b = 1, 2\nf(a)", None),
    ],
)
def test_a_constant_is_put_back_where_it_can_be_no_other(text: str, inlined: str | None) -> None:
    tree = ast.parse(text)
    found = inline_constants(tree, {"KEPT"})
    if inlined is None:
        assert ast.dump(found) == ast.dump(tree)
    else:
        assert ast.unparse(found).replace("(2.0 ** 16)", "2.0 ** 16") == inlined
    assert ast.dump(tree) == ast.dump(ast.parse(text))
