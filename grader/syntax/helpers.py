"""Small functions that an edit added and calls once, put back where they are called."""

import ast
from collections import Counter
from collections.abc import Set

from grader.syntax.trees import bindings, blocks, copied, functions

# A helper that calls a helper takes another round.
_ROUNDS = 3
# The three cases below nest at most this much deeper each round, so that recursion stays safe.
_MOST_NODES = 60


def inline_helpers(tree: ast.Module, keep: Set[str]) -> ast.Module:
    """Return a copy in which helpers stand where they are called; to measure an edit, not to run it.

    A helper is a function of the module, not in `keep`, that is called once, with a plain argument for each
    of its plain parameters, and returns at its end or not at all.
    """
    plain = copied(tree)
    for _ in range(_ROUNDS):
        helpers = _helpers(plain, keep)
        inlined = _Inline(helpers)
        for statement in plain.body:
            inlined.visit(statement)
        if not inlined.done:
            break
        plain.body = [item for item in plain.body if getattr(item, "name", None) not in inlined.done]
    return plain


def _helpers(tree: ast.Module, keep: Set[str]) -> dict[str, ast.FunctionDef]:
    read = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    bound = Counter(bindings(tree))
    found = {
        name: function
        for name, function in functions(tree).items()
        if name not in keep and bound[name] == 1 and read[name] == 1 and _is_plain(function)
    }
    # Those that call another wait until that one is in its place; those that call themselves stay.
    calling = {
        name
        for name, function in found.items()
        if any(isinstance(node, ast.Name) and node.id in found for node in ast.walk(function))
    }
    return {name: function for name, function in found.items() if name not in calling}


def _is_plain(function: ast.FunctionDef) -> bool:
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    odd = (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs, *arguments.defaults)
    if any(odd) or function.decorator_list or sum(1 for _ in ast.walk(function)) > _MOST_NODES:
        return False
    inside = [node for statement in function.body[:-1] for node in ast.walk(statement)]
    if not isinstance(function.body[-1], ast.Return):
        inside += ast.walk(function.body[-1])
    leaves = ast.Return | ast.Yield | ast.YieldFrom | ast.FunctionDef | ast.Lambda | ast.ClassDef
    if any(isinstance(node, leaves) for node in inside):
        return False
    rebound = Counter(name for statement in function.body for name in bindings(statement))
    return not any(rebound[argument.arg] for argument in plain)


class _Inline(ast.NodeTransformer):
    """Puts helpers in place, in the tree itself; `done` are those that found one."""

    def __init__(self, helpers: dict[str, ast.FunctionDef]) -> None:
        self._helpers = helpers
        self.done: set[str] = set()

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for block in blocks(node):
            block[:] = [statement for item in block for statement in self._in_place_of(item)]
        return super().generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        found = self._body(node)
        if found is not None and len(found) == 1 and isinstance(found[0], ast.Return) and found[0].value:
            self._finish(node)
            return found[0].value
        return self.generic_visit(node)

    def _in_place_of(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return what stands where a statement is one call of a helper, its result kept or not."""
        if not isinstance(statement, ast.Expr | ast.Assign | ast.Return):
            return [statement]
        call = statement.value
        found = self._body(call) if isinstance(call, ast.Call) else None
        if found is None:
            return [statement]
        last = found[-1]
        value = None
        if isinstance(last, ast.Return):
            value = last.value
            found.pop()
        match statement:
            case ast.Expr() if value is None:
                pass
            case ast.Assign(targets=targets) if value is not None:
                found.append(ast.copy_location(ast.Assign(targets=targets, value=value), statement))
            case ast.Return() if value is not None:
                found.append(ast.copy_location(ast.Return(value=value), statement))
            case _:
                return [statement]
        self._finish(call)
        return found

    def _body(self, call: ast.Call) -> list[ast.stmt] | None:
        """Return the body of the helper that is called, with the arguments in it, or None."""
        function = self._helpers.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if function is None or function.name in self.done:
            return None
        parameters = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
        values = dict(zip(parameters, call.args, strict=False))
        values |= {item.arg: item.value for item in call.keywords if item.arg is not None}
        given = len(call.args) + len(call.keywords)
        plain = all(isinstance(value, ast.Name | ast.Constant) for value in values.values())
        if not plain or set(values) != set(parameters) or given != len(parameters):
            return None
        return [_Replace(values).visit(copied(statement)) for statement in function.body]

    def _finish(self, call: ast.expr | None) -> None:
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Name)
        self.done.add(call.func.id)


class _Replace(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._values.get(node.id, node)
