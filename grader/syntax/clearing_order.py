"""Puts `zero_grad()` where an experiment as handed out has it: as early as it may stand with the same effect."""

import ast

from grader.syntax.trees import blocks

# What reads or makes gradients: clearing them cannot be moved past it.
_ABOUT_GRADIENTS = frozenset(
    {
        *("grad", "backward", "step", "zero_grad", "unscale_", "scale", "update"),
        *("clip_grad_norm_", "clip_grad_value_", "requires_grad_", "autograd"),
    }
)


def with_clearing_first(tree: ast.Module) -> ast.Module:
    """Move every `<name>.zero_grad(...)` up past statements that are not about gradients; changes the tree."""
    for node in ast.walk(tree):
        for block in blocks(node):
            for index, statement in enumerate(block):
                if _clears(statement):
                    place = index
                    while place and not _about_gradients(block[place - 1]):
                        place -= 1
                    block.insert(place, block.pop(index))
    return tree


def _clears(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Attribute)
        and statement.value.func.attr == "zero_grad"
        and isinstance(statement.value.func.value, ast.Name)
    )


def _about_gradients(statement: ast.stmt) -> bool:
    """Say whether a statement is about gradients, or more than an expression or an assignment."""
    if not isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign):
        return True
    return any(
        isinstance(node, ast.Attribute) and node.attr in _ABOUT_GRADIENTS for node in ast.walk(statement)
    )
