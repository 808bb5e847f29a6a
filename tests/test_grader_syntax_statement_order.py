"""Statements change places where nobody can tell, and nowhere else."""

import ast

import pytest

from grader.syntax.effects import may_swap, read_surroundings
from grader.syntax.statement_order import in_order_of, sink

FILE = """
import torch
import torch.nn.functional as F

def loss_of(x, y):
    z = F.cross_entropy(x, y)
    return z

def loud(x):
    print(x)
    return x

def noted(x):
    global SEEN
    SEEN = x
    return x
"""
AROUND = read_surroundings(ast.parse(FILE))

SWAPPED = [
    ("a = 1", "loud(x)"),
    ("a = x", "b = model(y)"),
    ("a = (x, -1)", "y.step()"),
    ("a = x.mean()", "b = (x - 1).std()"),
    ("a = len(x)", "b = x.argmax(dim=1) == y"),
    ("a = loss_of(x, y)", "b = x.float()"),
]
KEPT = [
    ("a = 1", "b = a"),
    ("a = 1", "a = 2"),
    ("a = b", "b = 1"),
    ("a = b", "b += 1"),
    ("a = b", "f(b := 1)"),
    ("a = b", "b, c = x"),
    ("a = SEEN", "noted(x)"),
    ("a = x.mean()", "x.zero_()"),
    ("a = x.mean()", "b = loud(y)"),
    ("a = x.mean()", "b = model(y)"),
    ("a = model(x)", "b = model(y)"),
    ("a = torch.rand(3)", "b = torch.rand(3)"),
    ("x.eval()", "y.train()"),
    ("a = list(x)", "b = sum(x)"),  # an iterator is used up
    ("a = [p for p in x]", "b = x.mean()"),
    ("x.a = 1", "b = x.mean()"),
    ("x[0] = 1", "b = x.mean()"),
    ("a = 1", "if y:\n    b = 1"),
    ("a = 1", "return y"),
    ("import x", "a = y"),
]


def both(first: str, second: str) -> tuple[ast.stmt, ast.stmt]:
    return ast.parse(first).body[0], ast.parse(second).body[0]


@pytest.mark.parametrize(("first", "second"), SWAPPED)
def test_what_only_looks_may_swap(first: str, second: str) -> None:
    one, other = both(first, second)
    assert may_swap(one, other, AROUND)
    assert may_swap(other, one, AROUND)


@pytest.mark.parametrize(("first", "second"), KEPT)
def test_what_may_act_may_not(first: str, second: str) -> None:
    one, other = both(first, second)
    assert not may_swap(one, other, AROUND)
    assert not may_swap(other, one, AROUND)


def test_functions_that_only_look_are_quiet() -> None:
    assert AROUND.quiet == {"loss_of"}
    twice = read_surroundings(ast.parse(FILE + "\nloss_of = loud\n"))
    assert twice.quiet == set()


@pytest.mark.parametrize(
    ("given", "other", "expected"),
    [
        ("b = x.std()\na = x.mean()\nreturn a, b", "a = x.mean()\nb = x.std()\nreturn a, b",
         "a = x.mean()\nb = x.std()\nreturn (a, b)"),
        ("c = 1\nb = x.std()\na = x.mean()\nf(c)", "a = x.mean()\nb = x.std()",
         "a = x.mean()\nc = 1\nb = x.std()\nf(c)"),
        ("g()\nf()", "f()\ng()", "g()\nf()"),
        ("b = a\na = 1", "a = 1\nb = a", "b = a\na = 1"),
        ("f()\nf()", "f()", "f()\nf()"),
    ],
)  # fmt: skip
def test_statements_stand_as_in_the_other(given: str, other: str, expected: str) -> None:
    found = in_order_of(ast.parse(given).body, ast.parse(other).body, AROUND)
    assert ast.unparse(ast.Module(found, [])) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a = x.mean()\nb = x.std()\nc = b + 1\nf(a, c)", "b = x.std()\nc = b + 1\na = x.mean()\nf(a, c)"),
        ("a = x.mean()\ng()\nf(a)", None),
        ("b = x.mean()\nc = 1\nf(b)", None),  # not asked for
    ],
)
def test_a_name_sinks_to_where_it_is_read(given: str, expected: str | None) -> None:
    block = ast.parse(given).body
    sink(block, {"a"}, AROUND)
    assert ast.unparse(ast.Module(block, [])) == (expected or given)


def test_long_blocks_are_left() -> None:
    text = "\n".join(f"a{index} = {index}" for index in range(200))
    block, other = ast.parse(text).body, ast.parse(text).body[::-1]
    assert in_order_of(block, other, AROUND) == block
    sink(block, {"a0"}, AROUND)
    assert ast.unparse(ast.Module(block, [])) == text
