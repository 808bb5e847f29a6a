"""Functions that nothing uses: a tool for debugging that an edit left behind changes no run."""

import ast
from collections import Counter
from collections.abc import Set

from grader.syntax.trees import copied, functions

# One that only another unread one reads takes another round.
_ROUNDS = 3


def drop_unread_functions(tree: ast.Module, keep: Set[str]) -> ast.Module:
    """Return a copy without functions that no name refers to; those in `keep` stay.

    Defining one must do nothing: a decorator or a default that is computed may act.
    """
    plain = copied(tree)
    for _ in range(_ROUNDS):
        read = Counter(node.id for node in ast.walk(plain) if isinstance(node, ast.Name))
        unread = {
            name: function
            for name, function in functions(plain).items()
            if name not in keep and read[name] == _inside(function) and _is_idle(function)
        }
        if not unread:
            break
        plain.body = [item for item in plain.body if getattr(item, "name", None) not in unread]
    return plain


def _inside(function: ast.FunctionDef) -> int:
    """Return how often a function reads its own name."""
    return sum(isinstance(node, ast.Name) and node.id == function.name for node in ast.walk(function))


def _is_idle(function: ast.FunctionDef) -> bool:
    defaults = [*function.args.defaults, *(item for item in function.args.kw_defaults if item is not None)]
    return not function.decorator_list and all(isinstance(item, ast.Constant) for item in defaults)
