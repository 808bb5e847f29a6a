"""Mutated experiments: the parser compares or refuses them."""

import ast

from helpers.fuzzing import LARGE, examples, mutated_text, outcome
from hypothesis import given
from hypothesis import strategies as st

from grader.score.fix import judge_minimality
from grader.syntax.edit_size import changed_areas, edit_sizes
from grader.syntax.plain_edit import plain_edit
from grader.syntax.program import Unparsable, parse_experiment, program_digest
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import experiment_source

pytestmark = LARGE
_RECIPE = load_recipe("huge_lr")
_BROKEN, _REFERENCE = _RECIPE.broken_source(), _RECIPE.healthy_source()
_SOURCES = (_REFERENCE, _BROKEN, experiment_source("shapes_cnn"), experiment_source("digits_heat"))
_TOKENS = (
    "(", ")", "[", "]", "{", "}", ":", "\n", "    ", "\t", "\\\n", "#", '"', "'", '"""', "f'{", "}'", "f'{x!r:{y}}'",
    "lambda: ", "lambda x=1, /, *a, y, **k: ", "def f(self, x=1, /, *a, y=2, **k):\n    pass\n", "class A(B, c=d):\n",
    "async ", "await ", "yield ", "return\n", "match x:\n    case {'a': [1, *_], **rest} | A(b=c):\n        pass\n",
    "import a.b as c\n", "from . import *\n", "from torch import nn as n\n", "global x\n", "nonlocal y\n", "del x\n",
    "x: int = 1\n", "x := 1", "x = y = z\n", "a, *b = c\n", "with a as b, c as (d, e):\n", "try:\n",
    "except* E as e:\n",
    "except:\n", "finally:\n", "else:\n", "if 1:\n", "for x in y:\n", "while 0:\n", "break\n", "-", "not ", "1_0",
    "1e999",
    "0x" + "f" * 2000, "1j", "...", "None", "@", "@f\n", "**", "*", "%", "a.", "a.b", "\0", "\x0c", "é", "ﬁ",
    "\ufeff",
    "# coding: utf-7\n", "b'\\xff'", "u'a'", "r'\\'", "pass;", ";", "type X = int\n", "print(", "super().__init__()",
    "lr=0.1", "optimizer.step()\n", "model.train()\n", "EPOCHS = 1\n", "BATCH_SIZE = x\n", "torch.nn.Linear(1, 2)",
    "return", "->", "assert x, y\n", "raise X from Y\n", "global EPOCHS, lr\n", "__import__('os')", "\r",
)  # fmt: skip
_TEXTS = st.one_of(mutated_text(_SOURCES, _TOKENS), st.lists(st.sampled_from(_TOKENS), max_size=30).map("".join))


@given(_TEXTS)
@examples(0.5)
def test_a_source_is_parsed_or_refused(source: str) -> None:
    tree = outcome(lambda: ast.dump(parse_experiment(source)), Unparsable)
    digest = outcome(lambda: program_digest(source))
    assert digest is not None and digest.startswith("text ") == (tree is None)


@given(_TEXTS)
@examples(0.2)
def test_an_edit_is_plain_or_what_is_odd_is_said(source: str) -> None:
    found = outcome(lambda: plain_edit(_BROKEN, source))
    assert found is not None
    assert all(item.message.isprintable() and len(item.message) < 500 for item in found)


@given(_TEXTS)
@examples(0.06)
def test_an_edit_is_measured_or_refused(source: str) -> None:
    sizes = outcome(lambda: edit_sizes(_BROKEN, source), Unparsable)
    assert (sizes is None) == (outcome(lambda: changed_areas(source, _BROKEN), Unparsable) is None)
    check = outcome(lambda: judge_minimality(_BROKEN, source, _REFERENCE))
    assert check is not None
    assert check.points is None or 0 <= check.points <= check.max
    assert all(line.isprintable() for line in check.reason.split("\n"))
