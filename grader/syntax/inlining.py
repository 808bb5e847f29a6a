"""Put new names back in place: constants, loss objects, helpers and local variables.

All functions change the tree that they get, so that its edit can be measured; the result is not meant to run. Names
in `keep` stay: they are names of the broken experiment. Bounds on sizes keep recursion over the result safe.
"""

import ast
from collections import Counter
from collections.abc import Mapping, Set

from grader.syntax.calls import MODULES
from grader.syntax.names import SurePaths, read_sure_paths
from grader.syntax.trees import (
    DEFINITIONS,
    assignment,
    bindings,
    blocks,
    copied,
    functions,
    is_literal,
    names_in,
    substituted,
)

# `2.0**16` and `-1.5` have 4 and 3 nodes; larger expressions would multiply where they are put in place.
_MOST_IN_A_CONSTANT = 4
_MOST_ARGUMENTS, _MOST_READS = 8, 24
# A helper that calls a helper needs another round.
_HELPER_ROUNDS, _MOST_IN_A_HELPER = 3, 60
# The deepest healthy experiment has a depth of 12.
_MOST_LOCALS, _MOST_DEPTH = 8, 12

# How often a name is read, and how often it is called.
_Uses = dict[str, tuple[int, int]]


def _drop_assignments(owner: ast.Module | ast.FunctionDef, names: Mapping[str, object]) -> None:
    kept = [item for item in owner.body if (assignment(item) or ("", None))[0] not in names]
    owner.body = kept or owner.body[:1]


def inline_constants(tree: ast.Module, keep: Set[str]) -> None:
    """Replace names of the module by the constant that they stand for: one literal, or two with an operator.

    A name that is bound in more than one place stays: it may stand for two things.
    """
    bound = Counter(bindings(tree))
    values = {
        name: value
        for name, value in filter(None, map(assignment, tree.body))
        if name not in keep and bound[name] == 1 and _is_constant(value)
    }
    _drop_assignments(tree, values)
    substituted(tree, values)


def _is_constant(value: ast.expr) -> bool:
    nodes = list(ast.walk(value))
    plain = ast.Constant | ast.UnaryOp | ast.BinOp | ast.unaryop | ast.operator
    return len(nodes) <= _MOST_IN_A_CONSTANT and all(isinstance(node, plain) for node in nodes)


def inline_criteria(tree: ast.Module, keep: Set[str]) -> None:
    """Replace `criterion(x, y)` by `nn.MSELoss()(x, y)` if the name stands for that, and `loss_of` by `F.mse_loss`.

    The name is set once, at the top of the module or of the function that uses it, to a module of
    `grader.syntax.calls.MODULES` with constant arguments, and only called; or to an imported function.
    """
    sure, everywhere = read_sure_paths(tree), _uses(tree)
    owners: list[ast.Module | ast.FunctionDef] = [tree]
    for owner in owners + [item for item in tree.body if isinstance(item, ast.FunctionDef)]:
        values = {
            name: value
            for name, value in filter(None, map(assignment, owner.body))
            if name not in keep and sure.bound.get(name) == 1 and _is_criterion(value, sure)
        }
        inside = _uses(owner) if values else {}
        for name, value in list(values.items()):
            reads, calls = inside.get(name, (0, 0))
            # An object that is passed on may change, and a name that is read elsewhere may be another one.
            passed_on = isinstance(value, ast.Call) and reads != calls
            if reads > _MOST_READS or everywhere.get(name) != (reads, calls) or passed_on:
                del values[name]
        _drop_assignments(owner, values)
        substituted(owner, values)


def _is_criterion(value: ast.expr, sure: SurePaths) -> bool:
    match value:
        case ast.Name() | ast.Attribute():
            return sure.path_of(value).startswith("torch.nn.functional.")
        case ast.Call(func=func, args=[], keywords=keywords):
            constants = len(keywords) <= _MOST_ARGUMENTS and all(is_literal(item.value) for item in keywords)
            return constants and sure.path_of(func) in MODULES
    return False


def _uses(tree: ast.AST) -> _Uses:
    read = Counter(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )
    called = Counter(
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )
    return {name: (read[name], called[name]) for name in read}


def inline_helpers(tree: ast.Module, keep: Set[str]) -> None:
    """Replace the call of a helper by its body.

    A helper is a function of the module that is called once, with a name or a constant for each of its plain
    parameters, and that returns at its end or not at all.
    """
    for _ in range(_HELPER_ROUNDS):
        inlined = _InlineHelpers(_helpers(tree, keep))
        for statement in tree.body:
            inlined.visit(statement)
        if not inlined.done:
            return
        tree.body = [item for item in tree.body if getattr(item, "name", None) not in inlined.done]


def _helpers(tree: ast.Module, keep: Set[str]) -> dict[str, ast.FunctionDef]:
    read, bound = Counter(names_in(tree)), Counter(bindings(tree))
    found = {
        name: function
        for name, function in functions(tree).items()
        if name not in keep and bound[name] == 1 and read[name] == 1 and _is_helper(function)
    }
    # A helper that calls another waits for the next round; one that calls itself stays.
    return {name: function for name, function in found.items() if not set(names_in(function)) & found.keys()}


def _is_helper(function: ast.FunctionDef) -> bool:
    arguments = function.args
    odd = (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs, *arguments.defaults)
    if any(odd) or function.decorator_list or sum(1 for _ in ast.walk(function)) > _MOST_IN_A_HELPER:
        return False
    last = function.body[-1]
    inside = [node for statement in function.body[:-1] for node in ast.walk(statement)]
    inside += [] if isinstance(last, ast.Return) else ast.walk(last)
    if any(isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom, *DEFINITIONS)) for node in inside):
        return False
    rebound = {name for statement in function.body for name in bindings(statement)}
    return not any(argument.arg in rebound for argument in (*arguments.posonlyargs, *arguments.args))


class _InlineHelpers(ast.NodeTransformer):
    """Puts helpers in place; `done` has the names of those that it has put in place."""

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
        """Return the statements for one that consists of a helper's call, with or without using its result."""
        if not isinstance(statement, ast.Expr | ast.Assign | ast.Return):
            return [statement]
        call = statement.value
        found = self._body(call) if isinstance(call, ast.Call) else None
        if found is None:
            return [statement]
        last = found[-1]
        value = last.value if isinstance(last, ast.Return) else None
        if isinstance(last, ast.Return):
            found.pop()
        if isinstance(statement, ast.Expr) != (value is None):
            return [statement]
        if not isinstance(statement, ast.Expr):
            twin = copied(statement)
            twin.value = value
            found.append(twin)
        self._finish(call)
        return found

    def _body(self, call: ast.Call) -> list[ast.stmt] | None:
        """Return the body of the helper that is called, with the arguments in place, or None."""
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
        return [substituted(copied(statement), values) for statement in function.body]

    def _finish(self, call: ast.expr | None) -> None:
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Name)
        self.done.add(call.func.id)


def inline_locals(tree: ast.Module, kept: Mapping[str, Set[str]]) -> None:
    """Replace local variables by their value if they are bound once and read once, in the next statement.

    `kept` has names to keep by function.
    """
    for name, function in functions(tree).items():
        _inline_locals_of(function, kept.get(name, frozenset()))


def inlined(function: ast.FunctionDef, kept: Set[str]) -> ast.FunctionDef:
    """Return a copy of one function as `inline_locals` makes it."""
    plain = copied(function)
    _inline_locals_of(plain, kept)
    return plain


def _inline_locals_of(function: ast.FunctionDef, kept: Set[str]) -> None:
    bound, read = Counter(bindings(function)), reads_in(function)
    single = {name for name in bound if bound[name] == read[name] == 1} - kept
    left = _MOST_LOCALS
    for node in list(ast.walk(function)):
        for block in blocks(node):
            left -= _inline_in_block(block, single, left)


def reads_in(function: ast.FunctionDef) -> Counter[str]:
    """Return how often a function reads each name."""
    return Counter(
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)
    )


def _inline_in_block(block: list[ast.stmt], single: Set[str], most: int) -> int:
    """Inline at most so many names, from the end of the block, so that three lines become one; return their number."""
    done = 0
    for index in range(len(block) - 2, -1, -1):
        name, value = assignment(block[index]) or ("", None)
        following = block[index + 1]
        if value is None or name not in single or done == most or name not in names_in(following):
            continue
        # The body of a definition runs later.
        runs_now = not any(isinstance(node, DEFINITIONS) for node in ast.walk(following))
        if runs_now and _depth(value) <= _MOST_DEPTH:
            block[index : index + 2] = [substituted(following, {name: value})]
            done += 1
    return done


def _depth(node: ast.AST) -> int:
    depth, level = 0, [node]
    while level and depth <= _MOST_DEPTH:
        depth, level = depth + 1, [child for item in level for child in ast.iter_child_nodes(item)]
    return depth
