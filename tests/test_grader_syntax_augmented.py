"""Counting up a number is written in one way; what may be a tensor keeps its own."""

import ast

import pytest

from grader.syntax.augmented import with_sums_augmented


def function(*lines: str) -> str:
    return "def f(x):\n" + "".join(f"    {line}\n" for text in lines for line in text.splitlines())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n = 0\nfor i in x:\n    n = n + 1", "n = 0\nfor i in x:\n    n += 1"),
        ("n = len(x)\nn = n * 2 - 1\nn = n / 2", "n = len(x)\nn = n * 2 - 1\nn /= 2"),
        ("n = 0\nm = 1\nn = n + m", "n = 0\nm = 1\nn += m"),
    ],
)
def test_a_number_is_counted_up_in_place(text: str, expected: str) -> None:
    found = with_sums_augmented(ast.parse(function(text)))
    assert ast.unparse(found) == ast.unparse(ast.parse(function(expected)))


@pytest.mark.parametrize(
    "text",
    [
        "x = x + 1",  # a parameter: `+=` would change the caller's tensor
        "n = x.sum()\nn = n + 1",
        "n = 0\nn = n + x",
        "n = 0\nn = 1 + n",
        "n = 0\nfor n in x:\n    n = n + 1",
        "x.grad = x.grad / 2",
        "global n\nn = 0\nn = n + 1",
    ],
)
def test_what_may_be_no_number_stays(text: str) -> None:
    tree = ast.parse(function(text))
    assert ast.dump(with_sums_augmented(tree)) == ast.dump(tree)


def test_a_len_of_the_files_own_makes_no_numbers() -> None:
    tree = ast.parse("def len(x):\n    return x\n" + function("n = len(x)\nn = n + 1"))
    assert ast.dump(with_sums_augmented(tree)) == ast.dump(tree)


def test_a_long_chain_of_names_is_given_up() -> None:
    chain = "".join(f"a{index} = a{index + 1}\n" for index in range(600))
    tree = ast.parse(function(chain + "a600 = x\nn = 0\nn = n + 1"))
    assert ast.dump(with_sums_augmented(tree)) == ast.dump(tree)
