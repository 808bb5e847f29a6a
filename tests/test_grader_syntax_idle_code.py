"""Each way of removing idle code: what it removes, and what must stay."""

import ast
from collections.abc import Callable

import pytest

from grader.syntax.idle_code import (
    drop_mode_restored,
    drop_prints,
    drop_unread_functions,
    drop_unread_variables,
    move_clearing_first,
)

PRINTS = [
    "print()", "print('loss', loss.item(), end='')", "print(f'{loss.mean():.3f}', len(x), x.grad[0:2])",
    "print(torch.isnan(loss).any(), x + 1 if x > 0 else [1])", "if DEBUG:\n    print(x)",
    "print([p.grad.norm().item() for p in model.parameters()])",
    "print({name: p.shape for name, p in model.named_parameters() if p.dim() > 1})",
    "print(max(p.abs().max() for p in zip(x, y)))", "if step % 10 == 0:\n    if x:\n        print(x)",
]  # fmt: skip
NO_PRINTS = [
    "print(model.eval())", "print(torch.mean(x, out=y))", "print((x := 1))", "print([f() for f in g])",
    "print([p.grad.zero_() for p in model.parameters()])", "print([(y := p) for p in x])",
    "print([p for p in model.children()])", "print(open('file'))", "show(x)", "x = print(y)",
]  # fmt: skip
# Source and result; None where nothing changes.
UNREAD_VARIABLES = [
    ("before = x.training\nreturn y", "return y"),
    ("a = sum(p.norm() for p in x.parameters())\nreturn y", "return y"), ("a = x.mean()", "a = x.mean()"),
    ("kept = x\nreturn y", None), ("a = g(x)\nreturn y", None), ("a = x.zero_()\nreturn y", None),
    ("a = x.mean()\nreturn a", None), ("a = x.mean()\ndel a\nreturn y", None),
]  # fmt: skip
UNREAD_FUNCTIONS = [
    ("def show(x):\n    print(x)\ny = 1", "y = 1"),
    ("def a(x):\n    b(x)\ndef b(x):\n    c(x)\ndef c(x):\n    pass\ny = 1", "y = 1"),
    ("def a(n):\n    return a(n - 1)\ny = 1", "y = 1"), ("def a(x=1, *, z=None):\n    pass\ny = 1", "y = 1"),
    ("def kept():\n    pass", None), ("def a():\n    pass\ny = a", None),
    ("def a(f):\n    return f\n@a\ndef b():\n    pass\ny = b()", None), ("@register\ndef a():\n    pass", None),
    ("def a(x=act()):\n    pass", None), ("def a(*, x=act()):\n    pass", None),
]  # fmt: skip
EVALUATED = "model.eval()\nouts = model(inputs)"
RESTORED = [
    "model.train()", "model.train(True)", "model.train(mode=before)", "if before:\n    model.train()",
]  # fmt: skip
NOT_RESTORED = [
    "model.train()\nouts = model(inputs)\nreturn outs", "model.eval()\nmodel.train()\nreturn model(inputs)",
    "model.train()\nreturn 1", f"{EVALUATED}\nmodel.train(False)\nreturn outs",
    f"{EVALUATED}\nother.train()\nreturn outs", f"{EVALUATED}\nif act():\n    model.train()\nreturn outs",
    f"{EVALUATED}\nmodel.train(act())\nreturn outs",
]  # fmt: skip
CLEARING = [
    ("out = model(x)\nloss = f(out)\nopt.zero_grad()\nloss.backward()",
     "opt.zero_grad()\nout = model(x)\nloss = f(out)\nloss.backward()"),
    ("loss.backward()\nopt.zero_grad()\nopt.step()", None),
    ("loss.backward()\nopt.step()\nopt.zero_grad()\nreturn loss", None),
    ("if late:\n    pass\nopt.zero_grad()", None),
    ("if late:\n    x = 1\n    opt.zero_grad(set_to_none=True)",
     "if late:\n    opt.zero_grad(set_to_none=True)\n    x = 1"),
    ("g = p.grad.clone()\nopt.zero_grad()", None), ("x = 1\nmake().zero_grad()", None),
]  # fmt: skip
STEP = "def train_step(model, opt, x):\n    {}\n    return loss\n"
REST = "loss = model(x)\n    with cast():\n        loss = f(loss)\n    loss.backward()\n    opt.step()"
LAST, FIRST = f"{REST}\n    opt.zero_grad()", f"opt.zero_grad()\n    {REST}"
SEEN_GRADIENTS = [
    STEP.format(LAST).replace("train_step", "other"),
    STEP.format(LAST).replace("return loss", "return opt.state()"),
    STEP.format(LAST).replace("    opt.zero_grad()", "    other.zero_grad()"),
    STEP.format(LAST).replace("loss = model(x)\n", "opt = f(opt)\n    loss = model(x)\n"),
    STEP.format(LAST).replace( "with cast():\n", "if loss > 9:\n            return loss\n    with cast():\n" ),
    STEP.format(LAST).replace("opt.step()", "opt.step()\n    assert loss < 9"),
    STEP.format(LAST).replace("with cast():", "if late:\n        opt.zero_grad()\n    with cast():"),
    STEP.format(LAST).replace("zero_grad()", "zero_grad(loss)"),
    STEP.format(LAST) + "def evaluate(model, x):\n    model(x).backward()\n",
    STEP.format(LAST) + "model.weight.grad = x\n",
]  # fmt: skip


def check(change: Callable[[ast.Module], None], text: str, expected: str | None) -> None:
    tree = ast.parse(text)
    change(tree)
    assert ast.unparse(tree) == ast.unparse(ast.parse(text if expected is None else expected))


def inside(text: str, head: str = "def f(x, y):") -> str:
    body = "\n".join(f"    {line}" for line in text.splitlines())
    return f"{head}\n{body}\n"


@pytest.mark.parametrize("statement", PRINTS)
def test_a_print_without_effects_is_dropped(statement: str) -> None:
    check(drop_prints, inside(f"{statement}\nreturn x"), inside("return x"))
    check(drop_prints, inside(f"{statement}\nreturn x") + "def print(*a, **k): x()\n", None)


@pytest.mark.parametrize("statement", NO_PRINTS)
def test_a_statement_that_may_act_stays(statement: str) -> None:
    check(drop_prints, inside(f"{statement}\nreturn x"), None)


def test_what_is_around_a_print_stays() -> None:
    check(drop_prints, inside("if f():\n    print(x)\nreturn x"), inside("if f():\n    pass\nreturn x"))
    check(
        drop_prints, inside("if x:\n    print(x)\nelse:\n    y()"), inside("if x:\n    pass\nelse:\n    y()")
    )
    check(drop_prints, inside("print(1)"), inside("pass"))


@pytest.mark.parametrize(("text", "expected"), UNREAD_VARIABLES)
def test_an_unread_variable_is_dropped(text: str, expected: str | None) -> None:
    check(lambda tree: drop_unread_variables(tree, {"f": {"kept"}}), inside(text), inside(expected or text))


@pytest.mark.parametrize(("text", "expected"), UNREAD_FUNCTIONS)
def test_an_unread_function_is_dropped(text: str, expected: str | None) -> None:
    check(lambda tree: drop_unread_functions(tree, {"kept"}), text, expected)


def evaluate(*texts: str) -> str:
    return inside("\n".join(texts), "def evaluate(model, inputs, labels):")


@pytest.mark.parametrize("restored", RESTORED)
def test_restoring_the_mode_is_dropped(restored: str) -> None:
    check(
        drop_mode_restored, evaluate(EVALUATED, restored, "return outs"), evaluate(EVALUATED, "return outs")
    )


@pytest.mark.parametrize("text", [*map(evaluate, NOT_RESTORED), "x = 1", "def evaluate():\n    return 1"])
def test_a_mode_that_the_evaluation_may_use_stays(text: str) -> None:
    check(drop_mode_restored, text, None)


@pytest.mark.parametrize(("text", "expected"), [*CLEARING, (STEP.format(LAST), STEP.format(FIRST))])
def test_clearing_moves_up_to_a_statement_about_gradients(text: str, expected: str | None) -> None:
    check(move_clearing_first, text, expected)


@pytest.mark.parametrize("text", SEEN_GRADIENTS)
def test_clearing_stays_if_other_code_may_see_the_gradients(text: str) -> None:
    check(move_clearing_first, text, None)
