"""Constants of an experiment: what a number works out to, and constants moved to a name put back in their place."""

import ast
from collections import Counter
from collections.abc import Set

from grader.syntax.trees import bindings, copied

_LARGEST = 10**12
# `2.0**16` and `-1.5` have 4 and 3 nodes; what is larger would multiply where it is put back.
_MOST_NODES = 4


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


def is_literal(node: ast.expr) -> bool:
    """Say whether an expression is one constant, a sign before it or not."""
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def inline_constants(tree: ast.Module, keep: Set[str]) -> ast.Module:
    """Return a copy in which names of the module that stand for one constant are that constant.

    A constant is one literal, or two joined by an operator. Names in `keep` stay, and so does one that is
    bound in more than one place: it may be two things.
    """
    plain = copied(tree)
    bound = Counter(bindings(plain))
    values: dict[str, ast.expr] = {}
    kept: list[ast.stmt] = []
    for statement in plain.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
                name not in keep and bound[name] == 1 and _is_constant(value)
            ):
                values[name] = value
            case _:
                kept.append(statement)
    plain.body = kept
    inlined: ast.Module = _Inline(values).visit(plain)
    return inlined


def _is_constant(value: ast.expr) -> bool:
    nodes = list(ast.walk(value))
    plain = ast.Constant | ast.UnaryOp | ast.BinOp | ast.unaryop | ast.operator
    return len(nodes) <= _MOST_NODES and all(isinstance(node, plain) for node in nodes)


class _Inline(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._values.get(node.id, node)
