"""Which modules an answer imports, by its text alone."""

import ast
from collections.abc import Iterator

# What can be used without computing anything in its place.
ALLOWED = ("numpy", "math", "typing", "__future__")


def foreign_imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each import of a module that an answer may not use."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        else:
            continue
        for name in names:
            if name.split(".")[0] not in ALLOWED:
                yield node.lineno, name
