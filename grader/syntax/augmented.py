"""`count = count + 1` as `count += 1`, where the name holds numbers: a tensor would be changed in place."""

import ast
from collections import Counter
from collections.abc import Set

from grader.syntax.constants import number
from grader.syntax.trees import bindings, copied, functions

# What a name that is no number spoils takes another round.
_ROUNDS = 8
_MAKE_NUMBERS = frozenset(["float", "int", "len"])


def with_sums_augmented(tree: ast.Module) -> ast.Module:
    """Return a copy in which a function's numbers are counted up by `+=` and its like; the tree itself if none are."""
    if not any(map(_counts_up, ast.walk(tree))):
        return tree
    plain = copied(tree)
    calls = _MAKE_NUMBERS - set(bindings(plain))
    for function in functions(plain).values():
        numbers = _numbers(function, calls)
        if numbers:
            _Augment(numbers).visit(function)
    return plain


def _counts_up(node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(left=ast.Name(id=read))):
            return name == read
    return False


def _numbers(function: ast.FunctionDef, calls: Set[str]) -> set[str]:
    """Return the names that a function sets to numbers and to nothing else, by assignments alone."""
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values.setdefault(name, []).append(value)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                values.setdefault(name, []).append(value)
    bound = Counter(bindings(function))
    found = {name for name in values if bound[name] == len(values[name])}
    for _ in range(_ROUNDS):
        wrong = {name for name in found if not all(_is_number(value, found, calls) for value in values[name])}
        if not wrong:
            return found
        found -= wrong
    return set()


def _is_number(value: ast.expr, numbers: Set[str], calls: Set[str]) -> bool:
    match value:
        case ast.Name(id=name):
            return name in numbers
        case ast.Call(func=ast.Name(id=name)):
            return name in calls
        case ast.BinOp(left=left, right=right):
            return _is_number(left, numbers, calls) and _is_number(right, numbers, calls)
    return number(value) is not None


class _Augment(ast.NodeTransformer):
    def __init__(self, numbers: Set[str]) -> None:
        self._numbers = numbers

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        match node:
            case ast.Assign(targets=[ast.Name(id=name) as target], value=ast.BinOp(op=op, right=right)) if (
                _counts_up(node) and name in self._numbers
            ):
                return ast.AugAssign(target=target, op=op, value=right)
        return node
