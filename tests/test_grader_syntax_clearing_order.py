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
