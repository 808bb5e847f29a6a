"""Two trees are the same where their dumps are."""

import ast

import pytest

from grader.syntax.trees import are_equal

TEXTS = [
    "f(1)",
    "f(1.0)",
    "f(True)",
    "f(0.0)",
    "f(-0.0)",
    "f('1')",
    "f(b'1')",
    "g(1)",
    "f(1, 1)",
    "f(a=1)",
    "x = 1",
    "f(1)\n",
]
TEXTS += [
    "def f(): pass",
    "def f(x): pass",
    "def f(*x): pass",
    "f(None)",
    "f(1)\nf(1)",
    "del x",
    "x += 1",
    "x -= 1",
]


@pytest.mark.parametrize("first", TEXTS)
def test_trees_are_equal_where_their_dumps_are(first: str) -> None:
    one = ast.parse(first)
    for second in TEXTS:
        other = ast.parse(second)
        assert are_equal(one, other) == (ast.dump(one) == ast.dump(other))
