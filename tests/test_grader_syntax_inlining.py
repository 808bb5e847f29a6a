"""Each way of putting names back in place: what it does, and where it must leave the code alone."""

import ast
from collections.abc import Callable

import pytest

from grader.syntax.inlining import inline_constants, inline_criteria, inline_helpers, inline_locals

IMPORTS = "import torch.nn.functional as F\nfrom torch import nn\n"
STEP = "def f(x, y):\n    return {}(x, y)\n"
# Source and result; None where nothing changes.
CONSTANTS = [
    ("RATE = 0.1\nf(RATE)", "f(0.1)"), ("SCALE = 2.0 ** 16\nf(SCALE, -SCALE)", "f(2.0 ** 16, -2.0 ** 16)"),
    ("def f():\n    return RATE\nRATE = -1", "def f():\n    return -1"), ("KEPT = 1\nf(KEPT)", None),
    ("RATE = 1\nRATE = 2\nf(RATE)", None), ("RATE = 1\ndef f(RATE):\n    return RATE", None),
    ("RATE = 1\nimport RATE.a\nf(RATE)", None),
    ("RATE = 1\ntry:\n    f()\nexcept E as RATE:\n    f(RATE)", None),
    ("RATE = 1\ndef f():\n    global RATE\n    g(RATE)", None), ("RATE = g()\nf(RATE)", None),
    ("LARGE = 1 + 2 + 3\nf(LARGE)", None), ("a, b = 1, 2\nf(a)", None),
]  # fmt: skip
CRITERIA = [
    ("criterion = nn.CrossEntropyLoss()\n" + STEP.format("criterion"), STEP.format("nn.CrossEntropyLoss()")),
    ("loss_of = nn.MSELoss(reduction='sum')\n" + STEP.format("loss_of"), STEP.format("nn.MSELoss(reduction='sum')")),
    ("loss_of = F.mse_loss\n" + STEP.format("loss_of"), STEP.format("F.mse_loss")),
    ("def f(x, y):\n    c = nn.NLLLoss()\n    s = nn.LogSoftmax(dim=1)\n    return c(s(x), y) + c(s(y), y)\n",
     "def f(x, y):\n    return nn.NLLLoss()(nn.LogSoftmax(dim=1)(x), y) + nn.NLLLoss()(nn.LogSoftmax(dim=1)(y), y)\n"),
]  # fmt: skip
OTHER_CRITERIA = [
    "kept = nn.MSELoss()\n" + STEP.format("kept"), "c = nn.MSELoss()\nc = nn.L1Loss()\n" + STEP.format("c"),
    "c = nn.MSELoss()\ndef g():\n    global c\n    c = 1\n" + STEP.format("c"),
    "c = nn.MSELoss()\nc.reduction = 'sum'\n" + STEP.format("c"),
    "c = nn.MSELoss()\nchange(c)\n" + STEP.format("c"), "c = nn.MSELoss(reduction=how())\n" + STEP.format("c"),
    "c = nn.CrossEntropyLoss(weights)\n" + STEP.format("c"),
    "c = nn.MSELoss(reduction=-how())\n" + STEP.format("c"), "c = nn.MSELoss()\n" + "c(1, 2)\n" * 30,
    "c = nn.Linear(1, 1)\n" + STEP.format("c"), "nn = other\nc = nn.MSELoss()\n" + STEP.format("c"),
    "if x:\n    c = nn.MSELoss()\n" + STEP.format("c"), "c = nn.MSELoss()\ndef f(c, x):\n    return c(x, x)\n",
    "def f(x):\n    c = nn.MSELoss()\ndef g(x):\n    return c(x, x)\n",
]  # fmt: skip
HELPERS = [
    ("def h(a):\n    a.zero_grad()\ndef f(x):\n    h(x)", "def f(x):\n    x.zero_grad()"),
    ("def h(a):\n    return a / 2\ndef f(x):\n    return g(h(x))", "def f(x):\n    return g(x / 2)"),
    ("def h(a, b):\n    c = a + b\n    return c\ndef f(x):\n    y = h(x, b=1)\n    return y",
     "def f(x):\n    c = x + 1\n    y = c\n    return y"),
    ("def i(a):\n    a.g()\ndef h(a):\n    i(a)\ndef f(x):\n    h(x)", "def f(x):\n    x.g()"),
    ("def f(x):\n    h(x)\ndef h(a):\n    i(a)\ndef i(a):\n    a.g()", "def f(x):\n    x.g()"),
    ("def h():\n    return g()\ndef f(x):\n    if x:\n        return h()", "def f(x):\n    if x:\n        return g()"),
    ("def g():\n    h()\ndef h():\n    g()", None), ("def kept(a):\n    a.g()\nkept(x)", None),
    ("def h(a):\n    a.g()\nh(x)\nh(y)", None), ("def h(a=1):\n    a.g()\ndef f(x):\n    h(x)", None),
    ("@d\ndef h(a):\n    a.g()\ndef f(x):\n    h(x)", None),
    ("def h(*a):\n    a.g()\ndef f(x):\n    h(x)", None),
    ("def h(a):\n    a.g()\ndef f(x):\n    h(x, y)", None),
    ("def h(a):\n    a.g()\ndef f(x):\n    h(x())", None),
    ("def h(a):\n    a = 1\n    a.g()\ndef f(x):\n    h(x)", None),
    ("def h(a):\n    if a:\n        return 1\n    return 2\ndef f(x):\n    h(x)", None),
    ("def h(a):\n    yield a\ndef f(x):\n    h(x)", None), ("def h():\n    h()", None),
    ("def h(a):\n    a.g()\nmap(h, x)", None),
]  # fmt: skip
LOCALS = [
    ("rate = 0.1\nreturn g(x, rate)", "return g(x, 0.1)"), ("a = g(x)\nreturn a", "return g(x)"),
    ("n = len(x)\ntotal = g(y)\nreturn total / n", "return g(y) / len(x)"),
    ("s = 2\nfor p in x:\n    p.g(s)", "for p in x:\n    p.g(2)"),
    ("if x:\n    a = 1\n    return a\nreturn 2", "if x:\n    return 1\nreturn 2"),
    ("kept = 0.1\nreturn g(kept)", None), ("a = g(x)\nx.h()\nreturn a", None), ("a = g(x)\nreturn a + a", None),
    ("a = 1\na = 2\nreturn a", None), ("x = 1\nreturn g(x)", None), ("a = g(x)\nreturn lambda: a", None),
    ("a, b = x\nreturn a", None), ("global a\na = 1\nreturn a", None),
    ("a = " + "(" * 30 + "x" + ",)" * 30 + "\nreturn a", None),
]  # fmt: skip


def check(change: Callable[[ast.Module], None], text: str, expected: str | None) -> None:
    tree = ast.parse(text)
    change(tree)
    assert ast.unparse(tree) == ast.unparse(ast.parse(text if expected is None else expected))


@pytest.mark.parametrize(("text", "expected"), CONSTANTS)
def test_a_constant_is_put_in_place_of_its_only_name(text: str, expected: str | None) -> None:
    tree = ast.parse(text)
    inline_constants(tree, {"KEPT"})
    assert ast.unparse(tree).replace("(2.0 ** 16)", "2.0 ** 16") == ast.unparse(ast.parse(expected or text))


@pytest.mark.parametrize(("text", "expected"), CRITERIA)
def test_a_loss_is_put_where_it_is_called(text: str, expected: str) -> None:
    check(lambda tree: inline_criteria(tree, {"kept"}), IMPORTS + text, IMPORTS + expected)


@pytest.mark.parametrize("text", OTHER_CRITERIA)
def test_a_name_that_may_be_another_loss_stays(text: str) -> None:
    check(lambda tree: inline_criteria(tree, {"kept"}), IMPORTS + text, None)


@pytest.mark.parametrize(("text", "expected"), HELPERS)
def test_a_helper_is_put_where_it_is_called(text: str, expected: str | None) -> None:
    check(lambda tree: inline_helpers(tree, {"kept", "f"}), text, expected)


def inside(text: str) -> str:
    body = "\n".join(f"    {line}" for line in text.splitlines())
    return f"def f(x, y):\n{body}\n"


@pytest.mark.parametrize(("text", "expected"), LOCALS)
def test_a_variable_is_put_where_it_is_read(text: str, expected: str | None) -> None:
    check(lambda tree: inline_locals(tree, {"f": {"kept"}}), inside(text), inside(expected or text))


def test_a_chain_of_variables_is_inlined_within_bounds() -> None:
    lines = ["a0 = x", *(f"a{index} = [a{index - 1}]" for index in range(1, 400)), "return a399"]
    tree = ast.parse(inside("\n".join(lines)))
    inline_locals(tree, {})
    assert len(tree.body[0].body) == 401 - 8  # type: ignore[attr-defined]
