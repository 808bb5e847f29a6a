"""Losses made once as an object, and functions called by another name, put back where they are called."""

import ast
from collections.abc import Set

from grader.syntax.constants import is_literal
from grader.syntax.names import SurePaths, read_sure_paths
from grader.syntax.signatures import MODULES
from grader.syntax.trees import copied

# What is larger, or read more often, would multiply where it is put back.
_MOST_ARGUMENTS, _MOST_READS = 8, 24
_Uses = dict[str, tuple[int, int]]


def inline_criteria(tree: ast.Module, keep: Set[str]) -> ast.Module:
    """Return a copy in which `criterion(x, y)` is `nn.MSELoss()(x, y)` where that is what the name stands for.

    The name is set once, at the top of the module or of the function that uses it, to a module of
    `grader.syntax.signatures.MODULES` made of constants, and only called; or to an imported function (`loss_of =
    F.mse_loss`). Names in `keep` stay.
    """
    plain = copied(tree)
    sure, everywhere = read_sure_paths(plain), _uses(plain)
    _inline_in(plain, everywhere, sure, keep)
    for function in plain.body:
        if isinstance(function, ast.FunctionDef):
            _inline_in(function, everywhere, sure, keep)
    return plain


def _inline_in(
    owner: ast.Module | ast.FunctionDef, everywhere: _Uses, sure: SurePaths, keep: Set[str]
) -> None:
    values: dict[str, ast.expr] = {}
    for statement in owner.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in keep:
                if sure.bound.get(name) == 1 and _stands_for_itself(value, sure):
                    values[name] = value
    if not values:
        return
    inside = _uses(owner)
    for name, value in list(values.items()):
        reads, calls = inside.get(name, (0, 0))
        # Read elsewhere it is not this one, and an object that is handed on may be changed.
        if (
            reads > _MOST_READS
            or everywhere.get(name) != (reads, calls)
            or (isinstance(value, ast.Call) and reads != calls)
        ):
            del values[name]
    owner.body = [item for item in owner.body if not _sets_one_of(item, values)] or owner.body[:1]
    _Inline(values).visit(owner)


def _stands_for_itself(value: ast.expr, sure: SurePaths) -> bool:
    match value:
        case ast.Name() | ast.Attribute():
            return sure.path_of(value).startswith("torch.nn.functional.")
        case ast.Call(func=func, args=[], keywords=keywords):
            constants = len(keywords) <= _MOST_ARGUMENTS and all(is_literal(item.value) for item in keywords)
            return constants and sure.path_of(func) in MODULES
    return False


def _uses(tree: ast.AST) -> _Uses:
    """Return how often each name is read, and how often of these it is called."""
    found: _Uses = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            reads, calls = found.get(node.id, (0, 0))
            found[node.id] = (reads + 1, calls)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            reads, calls = found.get(node.func.id, (0, 0))
            found[node.func.id] = (reads, calls + 1)
    return found


def _sets_one_of(statement: ast.stmt, values: dict[str, ast.expr]) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in values
    return False


class _Inline(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and node.id in self._values:
            return copied(self._values[node.id])
        return node
