"""A print that only looks is dropped; one that may act stays."""

import ast

import pytest

from grader.syntax.prints import without_prints


def inside(statement: str) -> ast.Module:
    lines = "".join(f"    {line}\n" for line in statement.splitlines())
    return ast.parse(f"def f(x):\n{lines}    return x\n")


@pytest.mark.parametrize(
    "statement",
    [
        "print()",
        "print('loss', loss.item(), end='')",
        "print(f'{loss.mean():.3f}', len(x), x.grad[0:2])",
        "print(torch.isnan(loss).any(), x + 1 if x > 0 else [1])",
        "if DEBUG:\n    print(x)",
        "print([p.grad.norm().item() for p in model.parameters()])",
        "print({name: p.shape for name, p in model.named_parameters() if p.dim() > 1})",
        "print(max(p.abs().max() for p in zip(x, y)))",
        "if step % 10 == 0:\n    if x:\n        print(x)",
    ],
)
def test_a_print_that_looks_is_dropped(statement: str) -> None:
    assert ast.unparse(without_prints(inside(statement))) == "def f(x):\n    return x"
    shadowed = ast.parse(ast.unparse(inside(statement)) + "\ndef print(*a, **k): x()\n")
    assert ast.dump(without_prints(shadowed)) == ast.dump(shadowed)


@pytest.mark.parametrize(
    "statement",
    [
        "print(model.eval())",
        "print(torch.mean(x, out=y))",
        "print((x := 1))",
        "print([f() for f in g])",
        "print([p.grad.zero_() for p in model.parameters()])",
        "print([(y := p) for p in x])",
        "print([p for p in model.children()])",
        "print(open('file'))",
        "show(x)",
        "x = print(y)",
    ],
)
def test_what_may_act_stays(statement: str) -> None:
    tree = inside(statement)
    assert ast.dump(without_prints(tree)) == ast.dump(tree)


def test_a_test_that_may_act_stays_and_so_does_an_else() -> None:
    assert "f()" in ast.unparse(without_prints(inside("if f():\n    print(x)")))
    assert "y()" in ast.unparse(without_prints(inside("if x:\n    print(x)\nelse:\n    y()")))


def test_a_function_of_prints_alone_still_has_a_body() -> None:
    assert ast.unparse(without_prints(ast.parse("def f():\n    print(1)"))) == "def f():\n    pass"
