"""Names that an edit added inside a function: put back where they are read, or left out where nothing reads them."""

import ast

import pytest

from grader.syntax.local_names import drop_unread, inline_locals, names_by_function


def inside(*lines: str) -> ast.Module:
    body = "\n".join(f"    {line}" for text in lines for line in text.splitlines())
    return ast.parse(f"def f(x, y):\n{body}\n")


@pytest.mark.parametrize(
    ("text", "inlined"),
    [
        ("rate = 0.1\nreturn g(x, rate)", "return g(x, 0.1)"),
        ("a = g(x)\nreturn a", "return g(x)"),
        ("n = len(x)\ntotal = g(y)\nreturn total / n", "return g(y) / len(x)"),
        ("s = 2\nfor p in x:\n    p.g(s)", "for p in x:\n    p.g(2)"),
        ("if x:\n    a = 1\n    return a\nreturn 2", "if x:\n    return 1\nreturn 2"),
        ("kept = 0.1\nreturn g(kept)", None),
        ("a = g(x)\nx.h()\nreturn a", None),  # in another order it may be another program
        ("a = g(x)\nreturn a + a", None),
        ("a = 1\na = 2\nreturn a", None),
        ("x = 1\nreturn g(x)", None),
        ("a = g(x)\nreturn lambda: a", None),
        ("a, b = x\nreturn a", None),
        ("global a\na = 1\nreturn a", None),
        ("a = " + "(" * 30 + "x" + ",)" * 30 + "\nreturn a", None),
    ],
)
def test_a_name_is_put_back_in_its_place(text: str, inlined: str | None) -> None:
    tree = inside(text)
    found = inline_locals(tree, {"f": {"kept"}})
    assert ast.unparse(found) == ast.unparse(inside(inlined or text))
    assert ast.dump(tree) == ast.dump(inside(text))


def test_a_chain_of_names_is_put_back_within_bounds() -> None:
    lines = ["a0 = x", *(f"a{index} = [a{index - 1}]" for index in range(1, 400)), "return a399"]
    found = inline_locals(inside("\n".join(lines)), {})
    assert len(found.body[0].body) == 401 - 8  # type: ignore[attr-defined]
    assert ast.unparse(found)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("before = x.training\nreturn y", "return y"),
        ("a = sum(p.norm() for p in x.parameters())\nreturn y", "return y"),
        ("a = x.mean()", "a = x.mean()"),  # a body needs a statement
        ("kept = x\nreturn y", None),
        ("a = g(x)\nreturn y", None),
        ("a = x.zero_()\nreturn y", None),
        ("a = x.mean()\nreturn a", None),
        ("a = x.mean()\ndel a\nreturn y", None),
    ],
)
def test_a_look_that_nothing_reads_is_left_out(text: str, left: str | None) -> None:
    found = drop_unread(inside(text), {"f": {"kept"}})
    assert ast.unparse(found) == ast.unparse(inside(left or text))


def test_the_names_of_a_function_are_those_that_it_binds_anywhere() -> None:
    tree = ast.parse("a = 1\ndef f(x):\n    y = x\n    for z in y:\n        pass\n")
    assert names_by_function(tree) == {"f": {"f", "x", "y", "z"}}
