"""Puts `zero_grad()` where an experiment as handed out has it: as early as it may stand with the same effect."""

import ast

from grader.syntax.trees import bindings, blocks, functions

# What reads or makes gradients: clearing them cannot be moved past it.
_ABOUT_GRADIENTS = frozenset(
    {
        *("grad", "backward", "step", "zero_grad", "unscale_", "scale", "update"),
        *("clip_grad_norm_", "clip_grad_value_", "requires_grad_", "autograd"),
    }
)


def with_clearing_first(tree: ast.Module) -> ast.Module:
    """Move every `<name>.zero_grad(...)` up past statements that are not about gradients; changes the tree.

    What clears them at the end of the training step goes to its beginning: nothing is left there by the step before,
    nor before the first.
    """
    step = functions(tree).get("train_step")
    if step is not None:
        _from_the_end(step, tree)
    for node in ast.walk(tree):
        for block in blocks(node):
            for index, statement in enumerate(block):
                if _clears(statement):
                    place = index
                    while place and not _about_gradients(block[place - 1]):
                        place -= 1
                    block.insert(place, block.pop(index))
    return tree


def _from_the_end(step: ast.FunctionDef, tree: ast.Module) -> None:
    """Move the clearing at the end of a step, where every step gets to its end and nothing else has gradients."""
    rest = [item for item in tree.body if item is not step]
    leaves = (
        ast.Return | ast.Raise | ast.Try | ast.TryStar | ast.Yield | ast.YieldFrom | ast.Assert | ast.Match
    )
    match step.body:
        case [*before, clear, ast.Return(value=ast.Name() | None)] if before and _clears(clear):
            named = {node.id for node in ast.walk(clear) if isinstance(node, ast.Name)}
            if len(named) > 1 or not named <= {item.arg for item in step.args.args}:
                return
            inside = [node for item in before for node in ast.walk(item)]
            if any(isinstance(node, leaves) or _calls_zero_grad(node) for node in inside):
                return
            if any(named & set(bindings(item)) for item in before) or any(map(_names_gradients, rest)):
                return
            step.body = [clear, *before, step.body[-1]]


def _calls_zero_grad(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "zero_grad"


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
    return _names_gradients(statement)


def _names_gradients(statement: ast.stmt) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr in _ABOUT_GRADIENTS for node in ast.walk(statement)
    )
