"""Clearing gradients: moved up where that makes no difference, and nowhere else."""

import ast

import pytest

from grader.syntax.clearing_order import with_clearing_first


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            "out = model(x)\nloss = f(out)\nopt.zero_grad()\nloss.backward()",
            "opt.zero_grad()\nout = model(x)\nloss = f(out)\nloss.backward()",
        ),
        ("loss.backward()\nopt.zero_grad()\nopt.step()", None),
        ("loss.backward()\nopt.step()\nopt.zero_grad()\nreturn loss", None),
        ("if late:\n    pass\nopt.zero_grad()", None),
        (
            "if late:\n    x = 1\n    opt.zero_grad(set_to_none=True)",
            "if late:\n    opt.zero_grad(set_to_none=True)\n    x = 1",
        ),
        ("g = p.grad.clone()\nopt.zero_grad()", None),
        ("x = 1\nmake().zero_grad()", None),
    ],
)
def test_clearing_moves_up_to_what_is_about_gradients(given: str, expected: str | None) -> None:
    found = with_clearing_first(ast.parse(given))
    assert ast.unparse(found) == ast.unparse(ast.parse(expected or given))


STEP = "def train_step(model, opt, x):\n    {}\n    return loss\n"
REST = "loss = model(x)\n    with cast():\n        loss = f(loss)\n    loss.backward()\n    opt.step()"
LAST, FIRST = f"{REST}\n    opt.zero_grad()", f"opt.zero_grad()\n    {REST}"


def test_what_clears_at_the_end_of_a_step_clears_before_the_next() -> None:
    found = with_clearing_first(ast.parse(STEP.format(LAST)))
    assert ast.unparse(found) == ast.unparse(ast.parse(STEP.format(FIRST)))


@pytest.mark.parametrize(
    "text",
    [
        STEP.format(LAST).replace("train_step", "other"),
        STEP.format(LAST).replace("return loss", "return opt.state()"),
        STEP.format(LAST).replace("    opt.zero_grad()", "    other.zero_grad()"),
        STEP.format(LAST).replace("loss = model(x)\n", "opt = f(opt)\n    loss = model(x)\n"),
        STEP.format(LAST).replace(
            "with cast():\n", "if loss > 9:\n            return loss\n    with cast():\n"
        ),
        STEP.format(LAST).replace("opt.step()", "opt.step()\n    assert loss < 9"),
        STEP.format(LAST).replace("with cast():", "if late:\n        opt.zero_grad()\n    with cast():"),
        STEP.format(LAST).replace("zero_grad()", "zero_grad(loss)"),
        STEP.format(LAST) + "def evaluate(model, x):\n    model(x).backward()\n",
        STEP.format(LAST) + "model.weight.grad = x\n",
    ],
)
def test_it_stays_where_somebody_may_see_the_gradients(text: str) -> None:
    assert ast.unparse(with_clearing_first(ast.parse(text))) == ast.unparse(ast.parse(text))
