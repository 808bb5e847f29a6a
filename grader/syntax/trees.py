"""Small steps over syntax trees: copy and compare them, find the names that they bind, put expressions in place."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)

_BINDING = (
    ast.Name, ast.arg, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Global, ast.Nonlocal, ast.Import,
    ast.ImportFrom, ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping,
)  # fmt: skip


def copied(node: Node) -> Node:
    """Return a copy of a tree of bounded depth; ten times as fast as `copy.deepcopy`."""
    twin = type(node)()
    vars(twin).update({name: _copied(value) for name, value in vars(node).items()})
    return twin


def _copied(value: object) -> object:
    if isinstance(value, ast.AST):
        return copied(value)
    return [_copied(item) for item in value] if isinstance(value, list) else value


def are_equal(first: object, second: object) -> bool:
    """Return whether two trees of bounded depth, or lists of trees, are the same; faster than comparing dumps."""
    if type(first) is not type(second):
        return False
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(are_equal, first, second))
    if isinstance(first, ast.AST) and isinstance(second, ast.AST):
        return all(
            are_equal(getattr(first, name, None), getattr(second, name, None)) for name in first._fields
        )
    return repr(first) == repr(second)  # tells 0.0 from -0.0, and finds nan equal to nan


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements directly under a node: body, else, finally."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):  # the body of a lambda is one expression
            yield block


def bindings(tree: ast.AST) -> Iterator[str]:
    """Yield every name that a tree binds, once for each binding."""
    for node in ast.walk(tree):
        if isinstance(node, _BINDING):
            yield from bindings_of(node)


def bindings_of(node: ast.AST) -> Sequence[str]:
    """Return the names that a node itself binds, without those of its children."""
    if not isinstance(node, _BINDING):  # most nodes bind nothing, and patterns are slow
        return []
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Global(names=several) | ast.Nonlocal(names=several):
            return several
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return [alias.asname or alias.name.split(".")[0] for alias in aliases]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.MatchMapping(rest=str(name)):
            return [name]
    return []


def bound_names(statement: ast.stmt) -> tuple[str, ...]:
    """Return the names that a statement of a module binds, sorted; for a definition, only its own name."""
    found: set[str] = set()
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        found.update(bindings_of(node))
        if not isinstance(node, DEFINITIONS):
            waiting += ast.iter_child_nodes(node)
    return tuple(sorted(found))


def functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Return the functions at the top level of a module; of one name, the last."""
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def assignment(statement: ast.AST) -> tuple[str, ast.expr] | None:
    """Return the name and the value of a statement such as `name = value`, else None."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, value
    return None


def names_in(tree: ast.AST) -> list[str]:
    """Return every name in a tree, bound or read, once for each time it stands there."""
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]


def attributes_in(tree: ast.AST) -> set[str]:
    """Return every attribute in a tree, such as `grad` of `p.grad`."""
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def substituted(tree: Node, values: Mapping[str, ast.expr]) -> Node:
    """Replace the names by a copy of their values wherever a tree reads them; changes the tree."""
    result: Node = _Substitute(values).visit(tree)
    return result


class _Substitute(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and node.id in self._values:
            return copied(self._values[node.id])
        return node


def is_literal(node: ast.expr) -> bool:
    """Return whether an expression is one constant, with or without a sign."""
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)
