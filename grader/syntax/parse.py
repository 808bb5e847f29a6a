"""Parses the text of an experiment within bounds, and says which program it is whatever its looks."""

import ast
import copy
import hashlib
import warnings
from collections.abc import Iterator

# The longest healthy experiment has 3 KiB, 500 nodes and a depth of 12. In CPython 3.11 the worst texts of this
# size that we know take 1.3 s (one import of 32,000 dotted names; 60,000 nodes of an f-string) and end in an
# ordinary exception where they nest too deep: the parser counts its own stack.
MAX_BYTES = 64 * 1024
MAX_NODES = 20_000
MAX_DEPTH = 100

_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Unparsable(Exception):
    """A text that is no experiment: why, as the end of a sentence about it."""


def parse_experiment(source: str) -> ast.Module:
    """Return the syntax tree of an experiment, at most `MAX_NODES` nodes and `MAX_DEPTH` deep.

    Raises `Unparsable` for anything else, however it was made to hurt: nothing is run or imported, and
    recursion over the tree that comes back is safe.
    """
    try:
        size = len(source.encode("utf-8"))
    except UnicodeEncodeError:
        raise Unparsable("it holds characters that no text file can") from None
    if size > MAX_BYTES:
        raise Unparsable(f"it has {size} bytes, more than {MAX_BYTES}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # "\d" is a warning, and whoever runs us may have made those errors
            tree = ast.parse(source)
    except SyntaxError as error:
        raise Unparsable(f"line {error.lineno or '?'} is not Python: {error.msg}"[:200]) from None
    except (RecursionError, MemoryError):
        raise Unparsable("it is nested too deeply") from None
    except ValueError as error:  # a null byte
        raise Unparsable(f"it is not Python: {error}"[:200]) from None
    _refuse_excess(tree)
    return tree


def _refuse_excess(tree: ast.Module) -> None:
    # Level by level: recursing into a tree that is too deep is what this is to prevent.
    nodes, depth, level = 0, 0, [tree]
    while level:
        nodes, depth = nodes + len(level), depth + 1
        if depth > MAX_DEPTH:
            raise Unparsable(f"it is nested more than {MAX_DEPTH} deep")
        if nodes > MAX_NODES:
            raise Unparsable(f"its syntax tree has more than {MAX_NODES} nodes")
        level = [child for node in level for child in ast.iter_child_nodes(node)]  # type: ignore[misc]


def normalized(tree: ast.Module) -> ast.Module:
    """Return a copy without what does not make the program: docstrings, `pass`, and type annotations.

    Comments, formatting and the style of quotes are not in a syntax tree to begin with.
    """
    copied = copy.deepcopy(tree)
    for node in ast.walk(copied):
        _drop_annotations(node)
    return _normalize_blocks(copied)


def tree_digest(source: str) -> str:
    """Return the SHA-256 of the program that a text is: equal for two that run alike, however they look.

    Annotations that Python evaluates (of parameters, results, classes and the module) are part of it, as they
    can raise. A text that reads its own docstrings or line numbers can still tell two looks apart; for that
    it needs what `plain_code.suspicions` reports. Raises `Unparsable`.
    """
    tree = _normalize_blocks(parse_experiment(source))
    return hashlib.sha256(ast.dump(tree).encode("utf-8", "surrogatepass")).hexdigest()


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements that hang directly under a node: body, else, finally."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):  # a lambda's body is one expression
            yield block


def is_bare_constant(statement: ast.stmt) -> bool:
    """Say whether a statement is a docstring, or another constant of which nothing is made."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _normalize_blocks(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.kind = None  # u"text" is "text"
        for block in blocks(node):
            kept = [item for item in block if not is_bare_constant(item) and not isinstance(item, ast.Pass)]
            if block and not kept and not isinstance(node, ast.Module):
                kept = [ast.Pass()]
            block[:] = kept
    return tree


def _drop_annotations(node: ast.AST) -> None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        node.returns = None
    elif isinstance(node, ast.arg):
        node.annotation = None
    for block in blocks(node):
        block[:] = [_without_annotation(item) for item in block]


def _without_annotation(statement: ast.stmt) -> ast.stmt:
    if not isinstance(statement, ast.AnnAssign):
        return statement
    if statement.value is None:  # `name: int` alone binds nothing
        return ast.copy_location(ast.Pass(), statement)
    return ast.copy_location(ast.Assign(targets=[statement.target], value=statement.value), statement)
