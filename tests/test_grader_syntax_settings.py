"""Settings in a dictionary count as the keywords that they stand for, wherever nothing else can be done with them."""

import ast

import pytest

from grader.syntax.settings import spread_settings


@pytest.mark.parametrize(
    ("text", "spread"),
    [
        ("S = {'lr': 0.1, 'momentum': -1}\nf(x, **S)", "f(x, lr=0.1, momentum=-1)"),
        ("S = dict(lr=0.1)\ndef g(x):\n    return f(x, a=1, **S)", "def g(x):\n    return f(x, a=1, lr=0.1)"),
        ("S = {'a': 1}\nT = {'b': 2}\nf(**S, **T)\ng(**S)", "f(a=1, b=2)\ng(a=1)"),
        ("KEPT = {'a': 1}\nf(**KEPT)", None),
        ("S = {'a': 1}\nS['a'] = 2\nf(**S)", None),
        ("S = {'a': 1}\nchange(S)\nf(**S)", None),
        ("S = {'a': 1}\nS = {'a': 2}\nf(**S)", None),
        ("S = {'a': 1}\ndef g(S):\n    f(**S)", None),
        ("S = {'a': 1}\nf(a=2, **S)", None),
        ("S = {'a': 1}\nT = {'a': 2}\nf(**S, **T)", None),
        ("S = {'a': 1, 'a': 2}\nf(**S)", None),
        ("S = {'a b': 1}\nf(**S)", None),
        ("S = {1: 1}\nf(**S)", None),
        ("S = {'a': g()}\nf(**S)", None),
        ("S = {**T}\nf(**S)", None),
        ("def dict(**x):\n    return {}\nS = dict(a=1)\nf(**S)", None),
        (f"S = {dict.fromkeys('abcdefghijklm', 1)}\nf(**S)", None),
        ("S = {}\nf(**S)", None),
    ],
)
def test_a_dictionary_is_put_back_where_it_can_be_nothing_else(text: str, spread: str | None) -> None:
    tree = ast.parse(text)
    found = spread_settings(tree, {"KEPT"})
    if spread is None:
        assert ast.dump(found) == ast.dump(tree)
    else:
        assert ast.unparse(found) == spread
    assert ast.dump(tree) == ast.dump(ast.parse(text))
