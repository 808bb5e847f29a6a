"""Type annotations: left out of a tree, all of them or those of which Python makes nothing."""

import ast
from collections import Counter

from grader.syntax.names import Names, read_names
from grader.syntax.trees import bindings, blocks

_BUILTIN_TYPES = frozenset(["bool", "bytes", "dict", "float", "int", "list", "object", "set", "str", "tuple"])
_TORCH_TYPES = frozenset(
    ["torch.Tensor", "torch.Generator", "torch.nn.Module", "torch.nn.Sequential", "torch.optim.Optimizer"]
)


def drop_annotations(tree: ast.Module) -> None:
    """Take every annotation out of a tree, in place; a bare `name: int` leaves a `pass`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        for block in blocks(node):
            block[:] = [_assignment(item) if isinstance(item, ast.AnnAssign) else item for item in block]


def drop_idle_annotations(tree: ast.Module) -> None:
    """Take out, in place, the annotations without which the program runs the same.

    Those of a function's own variables are never evaluated. Of those that are (parameters, results, the
    module), constants and well-known types go; anything else may raise or act, and stays. A class keeps its
    own: they can be its fields.
    """
    nodes = list(ast.walk(tree))
    if not any(map(_is_annotated, nodes)):  # as most experiments are: what names stand for need not be read
        return
    names, bound = read_names(tree), Counter(bindings(tree))
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.returns is not None and _is_idle(node.returns, names, bound):
                node.returns = None
            _drop_of_variables(node)
        elif isinstance(node, ast.arg) and node.annotation and _is_idle(node.annotation, names, bound):
            node.annotation = None
    tree.body[:] = [
        _assignment(item)
        if isinstance(item, ast.AnnAssign) and item.simple and _is_idle(item.annotation, names, bound)
        else item
        for item in tree.body
    ]


def _is_annotated(node: ast.AST) -> bool:
    return isinstance(node, ast.AnnAssign) or any(
        getattr(node, name, None) is not None for name in ("annotation", "returns")
    )


def _drop_of_variables(function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    waiting: list[ast.AST] = [function]
    while waiting:
        node = waiting.pop()
        for block in blocks(node):
            # Without a value the statement still makes the name a local one.
            block[:] = [
                _assignment(item)
                if isinstance(item, ast.AnnAssign) and item.simple and item.value is not None
                else item
                for item in block
            ]
            waiting += [
                item
                for item in block
                if not isinstance(item, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            ]
        waiting += getattr(node, "handlers", []) + getattr(node, "cases", [])


def _is_idle(annotation: ast.expr, names: Names, bound: Counter[str]) -> bool:
    if isinstance(annotation, ast.Constant):
        return True
    if isinstance(annotation, ast.Name) and annotation.id in _BUILTIN_TYPES:
        return not bound[annotation.id]
    root = annotation
    while isinstance(root, ast.Attribute):
        root = root.value
    paths = names.paths_of(annotation)
    return isinstance(root, ast.Name) and bound[root.id] == 1 and len(paths) == 1 and paths <= _TORCH_TYPES


def _assignment(statement: ast.AnnAssign) -> ast.stmt:
    if statement.value is None:
        return ast.copy_location(ast.Pass(), statement)
    return ast.copy_location(ast.Assign(targets=[statement.target], value=statement.value), statement)
