"""Find patterns of code that are plain (provably harmless) as a whole, although their single nodes are not.

Each function looks for one pattern, and returns the nodes or names in this pattern that are plain.
"""

import ast
from collections.abc import Mapping

from grader.syntax.grammar import MANAGER
from grader.syntax.program import does_nothing, path_of


def yields_of_managers(tree: ast.Module, paths: Mapping[str, str]) -> set[int]:
    """Return the ids of the `yield` nodes in context managers: functions with `@contextmanager` and only one `yield`.

    A `with` statement runs such a function up to the `yield`, then the block, then the rest of the function. So the
    function has the same effect as its statements before and after the block. The `yield` must be a statement in the
    function's body, or in the body of a `try` that has only a `finally`, so that it runs once and catches no exception.
    No other code can use the generator, because only `with` may call the function (`_StatementJudge._check_Name`).
    """
    found = set()
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and [path_of(it, paths) for it in function.decorator_list] == [
            MANAGER
        ]:
            yields = [node for node in ast.walk(function) if isinstance(node, ast.Yield | ast.YieldFrom)]
            tried = [item for item in function.body if isinstance(item, ast.Try) and not item.handlers]
            places = [item for block in (function.body, *(part.body for part in tried)) for item in block]
            statements = {id(item.value) for item in places if isinstance(item, ast.Expr)}
            if len(yields) == 1 and id(yields[0]) in statements:
                found.add(id(yields[0]))
    return found


def keeps_parts_in_eval_mode(tree: ast.Module, name: str) -> bool:
    """Return whether the method `train` of a class only keeps some parts of a network in eval mode.

    Such a method calls `super().train(mode)`, then `eval()` on attributes of `self`, and returns `self`. It is
    harmless, because `forward` may put a part of the network into eval mode as well. The mode of the network itself
    does not change.
    """
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    methods = [item for node in classes for item in node.body if isinstance(item, ast.FunctionDef)]
    found = [item for item in methods if item.name == "train"]
    if len(classes) != 1 or len(found) != 1 or found[0].decorator_list:
        return False
    arguments = found[0].args
    match arguments:
        case ast.arguments(
            posonlyargs=[], args=[ast.arg(arg="self"), ast.arg(arg=mode)], vararg=None, kwonlyargs=[], kwarg=None,
            defaults=[ast.Constant(value=True)],
        ):  # fmt: skip
            pass
        case _:
            return False
    statements = [ast.unparse(item) for item in found[0].body if not does_nothing(item)]
    if len(statements) < 2:
        return False
    first, *others, last = statements
    parts = [other.removeprefix("self.").removesuffix(".eval()") for other in others]
    rest = all(
        other == f"self.{part}.eval()" and part.isidentifier() for other, part in zip(others, parts, strict=True)
    )
    return first == f"super().train({mode})" and last == "return self" and rest and mode != "self"


def layer_lists(tree: ast.Module, name: str, holders: frozenset[str], paths: Mapping[str, str]) -> set[str]:
    """Return the attributes of a class to which it assigns only lists of layers that the class itself makes."""
    values: dict[str, list[ast.expr]] = {}
    for node in tree.body:
        for part in ast.walk(node) if isinstance(node, ast.ClassDef) and node.name == name else ():
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store | ast.Del):
                values.setdefault(part.attr, [])
                values[part.attr].append(part)
    made = {
        id(part.targets[0])
        for part in ast.walk(tree)
        if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.value, ast.Call)
        and path_of(part.value.func, paths) in holders
    }  # fmt: skip
    return {attribute for attribute, targets in values.items() if all(id(target) in made for target in targets)}
