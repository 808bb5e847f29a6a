"""Whatever a text is, it parses within bounds or is refused; and two looks of one program have one digest."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.syntax.parse import MAX_BYTES, Unparsable, normalized, parse_experiment, tree_digest
from grader.syntax.trees import are_equal
from harness.recipe import experiment_source

SOURCE = experiment_source("shapes_cnn")


def filled(unit: str, before: str = "", after: str = "") -> str:
    return before + unit * ((MAX_BYTES - len(before) - len(after)) // len(unit)) + after


HOSTILE = {
    "parentheses": filled("("),
    "closed parentheses": "(" * 30_000 + ")" * 30_000,
    "brackets": filled("["),
    "dicts": filled("{1:"),
    "minus": filled("-", after="1"),
    "not": filled("not ", after="x"),
    "lambda": filled("lambda:", after="1"),
    "attributes": filled(".x", before="x"),
    "calls": filled("()", before="x"),
    "subscripts": filled("[0]", before="x"),
    "conditionals": filled("a if b else ", after="c"),
    "sums": filled("1+", after="1"),
    "powers": filled("1**", after="1"),
    "elif": "if a:0\n" + "elif a:0\n" * 7000,
    "f-string": "f'" + "{x}" * 21_000 + "'",
    "f-string of parentheses": "f'{" + "(" * 30_000 + ")" * 30_000 + "}'",
    "f-string of formats": "f'" + "{x:" * 15_000 + "}" * 15_000 + "'",
    "import": filled("a.", before="import ", after="a"),
    "import over lines": filled("a.\\\n", before="import ", after="a"),
    "statements": filled("a;"),
    "decimal integer": "x = " + "9" * 60_000,
    "hexadecimal integer": "x = 0x" + "f" * 60_000,
    "null byte": "x = 1\0",
    "surrogate": "x = '\ud800'",
    "unknown character": "x = '\\N{NO SUCH CHARACTER}'",
    "too long": "#" * (MAX_BYTES + 1),
    "indentation": "\n".join(" " * depth + "if a:" for depth in range(120)),
    "no Python": "def (",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(Unparsable) as error:
        parse_experiment(HOSTILE[name])
    assert 10 < len(str(error.value)) <= 200
    assert "\n" not in str(error.value)
    with pytest.raises(Unparsable):
        tree_digest(HOSTILE[name])


def test_a_warning_of_the_parser_is_no_error_of_ours() -> None:
    parse_experiment("x = '\\d'\ny = 1 is 1\n")


@given(st.text(max_size=200))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        digest = tree_digest(text)
    except Unparsable:
        return
    assert tree_digest(text) == digest


LOOKS = [
    ("x = 'a'", 'x = "a"  # said otherwise'),
    ("x = 'ab'", "x = ('a'\n     u'b')"),
    ("x = 255", "x = 0xff"),
    ("def f():\n    pass\n", 'def f():\n\n    """Do nothing."""\n'),
    ("def f(x):\n    return x\n", "def f(x: int) -> 'Tensor': return x"),
    ("import torch\ndef f(x): return x", "import torch\ndef f(x: torch.Tensor) -> torch.Tensor: return x"),
    ("x = 1", "x: int = 1\ny: float"),
    ("def f():\n    x = 1", "def f():\n    x: anything() = 1"),
    ("class A:\n    x = 1", "class A:\n    'A class.'\n    x = 1\n    pass"),
]


@pytest.mark.parametrize(("one", "other"), LOOKS)
def test_another_look_of_a_program_has_its_digest(one: str, other: str) -> None:
    assert tree_digest(one) == tree_digest(other)


DIFFERENT = [
    ("x = 1", "x = 2"),
    ("x = 1", "x = 1.0"),
    ("x = 1", "x = True"),
    ("x = 0.0", "x = -0.0"),
    ("x = 1", "y = 1"),
    ("x = 'a'", "x = b'a'"),
    ("x = 'a'", "x = f'{a}'"),
    ("a; b", "b; a"),
    ("f(x)", "f(*x)"),
    ("f(x=1)", "f(1)"),
    ("def f(x): return x", "def f(*, x): return x"),
    ("def f(): x", "async def f(): x"),
    ("import a", "import a as b"),
    # An annotation that is evaluated may raise or act.
    ("def f(x): pass", "def f(x: act()): pass"),
    ("def f(x): pass", "def f(x: Tensor): pass"),
    ("def f(x): pass", "def f(x: torch.Tensor): pass"),
    ("int = act\ndef f(x): pass", "int = act\ndef f(x: int): pass"),
    ("x = 1", "x: act() = 1"),
    # Fields of a class, and a name made local.
    ("class A:\n    x = 1", "class A:\n    x: int = 1"),
    ("def f():\n    return x", "def f():\n    x: int\n    return x"),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_another_program_has_another_digest(one: str, other: str) -> None:
    assert tree_digest(one) != tree_digest(other)


def test_normalizing_leaves_the_tree_that_it_was_given_alone() -> None:
    tree = parse_experiment(SOURCE)
    before = ast.dump(tree)
    assert ast.dump(normalized(tree)) != before
    assert ast.dump(tree) == before


TEXTS = [
    "f(1)", "f(1.0)", "f(True)", "f(0.0)", "f(-0.0)", "f('1')", "f(b'1')", "g(1)", "f(1, 1)", "f(a=1)", "x = 1",
    "f(1)\n", "def f(): pass", "def f(x): pass", "def f(*x): pass", "f(None)", "f(1)\nf(1)", "del x", "x += 1",
    "x -= 1",
]  # fmt: skip


@pytest.mark.parametrize("first", TEXTS)
def test_trees_are_equal_if_their_dumps_are(first: str) -> None:
    one = ast.parse(first)
    for second in TEXTS:
        other = ast.parse(second)
        assert are_equal(one, other) == (ast.dump(one) == ast.dump(other))
