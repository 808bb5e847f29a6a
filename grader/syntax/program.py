"""Hash the program of an experiment without its formatting, and find blocks and names in its syntax tree."""

import ast
import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache

from harness.submission.program import Unparsable, parse_experiment

__all__ = [
    "Unparsable", "blocks", "does_nothing", "imported_paths", "parse_experiment", "path_of", "program_digest",
    "root_of", "tree_digest",
]  # fmt: skip


@lru_cache(maxsize=4096)
def tree_digest(source: str) -> str:
    """Return the SHA-256 of the program in a source text, ignoring comments, formatting and docstrings.

    Two programs with equal digests behave in the same way, unless they read their docstrings or line numbers. Raises
    `Unparsable`.
    """
    tree = parse_experiment(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.kind = None  # u"text" is "text"
        for block in blocks(node):
            kept = [item for item in block if not does_nothing(item)]
            if block and not kept and not isinstance(node, ast.Module):
                kept = [ast.Pass()]
            block[:] = kept
    return hashlib.sha256(ast.dump(tree).encode("utf-8", "surrogatepass")).hexdigest()


def program_digest(source: str) -> str:
    """Return the `tree_digest` of a source text, or a digest of the text itself if it cannot be parsed."""
    try:
        return tree_digest(source)
    except Unparsable:
        return f"text {hashlib.sha256(source.encode('utf-8', 'surrogatepass')).hexdigest()}"


def does_nothing(statement: ast.stmt) -> bool:
    """Return whether a statement has no effect, as a docstring, another constant, or `pass`."""
    bare = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return bare or isinstance(statement, ast.Pass)


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements that are directly in a node, such as its body and its `else`."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):  # the body of a lambda is one expression
            yield block


def imported_paths(tree: ast.Module) -> dict[str, str]:
    """Return {imported name: dotted path}, such as `torch.nn.functional` for `F`."""
    paths: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = f"{'.' * node.level}{node.module or ''}"
            paths.update({alias.asname or alias.name: f"{base}.{alias.name}" for alias in node.names})
        elif isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                paths[alias.asname or first] = alias.name if alias.asname else first
    return paths


def path_of(node: ast.AST, paths: Mapping[str, str]) -> str:
    """Return the dotted path of a name or of a chain of attributes, or "" if the first name is not imported."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in paths:
        return ""
    return ".".join([paths[node.id], *reversed(parts)])


def root_of(node: ast.expr) -> str:
    """Return the first name in a chain of attributes and indices, or ""."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
