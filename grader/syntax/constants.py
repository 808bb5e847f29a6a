"""Constants of an experiment: what a number works out to, and constants moved to a name put back in their place."""

import ast
import copy
from collections import Counter
from collections.abc import Set

_LARGEST = 10**12


def number(node: ast.expr) -> float | None:
    """Return the value of a number, or of sums, differences and products of numbers; else None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and abs(node.value) <= _LARGEST:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = number(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.BinOp):
        left, right = number(node.left), number(node.right)
        if left is None or right is None or max(abs(left), abs(right)) > _LARGEST:
            return None
        match node.op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
    return None


def inline_constants(tree: ast.Module, keep: Set[str]) -> ast.Module:
    """Return a copy in which names of the module that stand for one constant are that constant.

    Names in `keep` stay, and so does one that is bound in more than one place: it may be two things.
    """
    copied = copy.deepcopy(tree)
    bound = Counter(_bindings(copied))
    values: dict[str, ast.Constant | ast.UnaryOp] = {}
    for statement in list(copied.body):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() as value):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.UnaryOp(operand=ast.Constant()) as value):
                pass
            case _:
                continue
        if name not in keep and bound[name] == 1:
            values[name] = value
            copied.body.remove(statement)
    inlined: ast.Module = _Inline(values).visit(copied)
    return inlined


def _bindings(tree: ast.Module) -> list[str]:
    names = []
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.append(name)
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.append(name)
            case ast.Global(names=several) | ast.Nonlocal(names=several):
                names += several
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names += [alias.asname or alias.name for alias in aliases]
    return names


class _Inline(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.Constant | ast.UnaryOp]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:  # noqa: N802 - the name that `ast` calls
        return self._values.get(node.id, node)
