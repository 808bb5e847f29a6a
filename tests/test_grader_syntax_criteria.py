"""A loss that was made once stands where it is called; one that may be something else stays."""

import ast

import pytest

from grader.syntax.criteria import inline_criteria

IMPORTS = "import torch.nn.functional as F\nfrom torch import nn\n"
STEP = "def f(x, y):\n    return {}(x, y)\n"


def inlined(text: str) -> str:
    return ast.unparse(inline_criteria(ast.parse(IMPORTS + text), {"kept"}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("criterion = nn.CrossEntropyLoss()\n" + STEP.format("criterion"), STEP.format("nn.CrossEntropyLoss()")),
        ("loss_of = nn.MSELoss(reduction='sum')\n" + STEP.format("loss_of"),
         STEP.format("nn.MSELoss(reduction='sum')")),
        ("loss_of = F.mse_loss\n" + STEP.format("loss_of"), STEP.format("F.mse_loss")),
        ("def f(x, y):\n    c = nn.NLLLoss()\n    s = nn.LogSoftmax(dim=1)\n    return c(s(x), y) + c(s(y), y)\n",
         "def f(x, y):\n    return nn.NLLLoss()(nn.LogSoftmax(dim=1)(x), y)"
         " + nn.NLLLoss()(nn.LogSoftmax(dim=1)(y), y)\n"),
    ],
)  # fmt: skip
def test_a_loss_stands_where_it_is_called(text: str, expected: str) -> None:
    assert inlined(text) == ast.unparse(ast.parse(IMPORTS + expected))


@pytest.mark.parametrize(
    "text",
    [
        "kept = nn.MSELoss()\n" + STEP.format("kept"),
        "c = nn.MSELoss()\nc = nn.L1Loss()\n" + STEP.format("c"),
        "c = nn.MSELoss()\ndef g():\n    global c\n    c = 1\n" + STEP.format("c"),
        "c = nn.MSELoss()\nc.reduction = 'sum'\n" + STEP.format("c"),
        "c = nn.MSELoss()\nchange(c)\n" + STEP.format("c"),
        "c = nn.MSELoss(reduction=how())\n" + STEP.format("c"),
        "c = nn.CrossEntropyLoss(weights)\n" + STEP.format("c"),
        "c = nn.MSELoss(reduction=-how())\n" + STEP.format("c"),
        "c = nn.MSELoss()\n" + "c(1, 2)\n" * 30,
        "c = nn.Linear(1, 1)\n" + STEP.format("c"),
        "nn = other\nc = nn.MSELoss()\n" + STEP.format("c"),
        "if x:\n    c = nn.MSELoss()\n" + STEP.format("c"),
        "c = nn.MSELoss()\ndef f(c, x):\n    return c(x, x)\n",
        "def f(x):\n    c = nn.MSELoss()\ndef g(x):\n    return c(x, x)\n",
    ],
)
def test_what_may_be_another_loss_stays(text: str) -> None:
    assert inlined(text) == ast.unparse(ast.parse(IMPORTS + text))
