"""Any text is parsed within limits or refused, and two layouts of one program have the same digest."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.syntax.program import Unparsable, imported_paths, parse_experiment, path_of, program_digest, tree_digest
from harness.submission.limits import EXPERIMENT_BYTES


def filled(unit: str, before: str = "", after: str = "") -> str:
    return before + unit * ((EXPERIMENT_BYTES - len(before) - len(after)) // len(unit)) + after


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
    "too long": "#" * (EXPERIMENT_BYTES + 1),
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
    ("class A:\n    x = 1", "class A:\n    'A class.'\n    x = 1\n    pass"),
]
DIFFERENT = [
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
    ("def f(x): pass", "def f(x: act()): pass"),  # Python evaluates it
    ("def f():\n    return x", "def f():\n    x: int\n    return x"),
]


@pytest.mark.parametrize(
    ("one", "other", "same"), [(*pair, True) for pair in LOOKS] + [(*pair, False) for pair in DIFFERENT]
)
def test_a_digest_depends_on_the_program_and_not_on_its_look(one: str, other: str, same: bool) -> None:
    assert (tree_digest(one) == tree_digest(other)) == same


def test_a_text_that_is_no_program_has_a_digest_of_its_own() -> None:
    assert program_digest("x = 1") == tree_digest("x = 1  # one")
    assert program_digest("def (").startswith("text ")
    assert program_digest("def (") != program_digest("def ((")


def test_a_name_stands_for_the_path_of_its_import() -> None:
    tree = ast.parse("import torch.nn as n, a.b\nfrom torch.nn import functional as F\nfrom . import x\nF.relu; y.z")
    paths = imported_paths(tree)
    assert paths == {"n": "torch.nn", "a": "a", "F": "torch.nn.functional", "x": "..x"}
    assert [path_of(item.value, paths) for item in tree.body if isinstance(item, ast.Expr)] == [
        "torch.nn.functional.relu",
        "",
    ]
