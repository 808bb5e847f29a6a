"""Which statements of a function may change places: those that only look, and do not bind what the other reads."""

import ast
from collections import Counter
from collections.abc import Set
from dataclasses import dataclass

from grader.syntax.prints import only_looks
from grader.syntax.trees import bindings, functions

_SIMPLE = ast.Expr | ast.Assign | ast.AugAssign
# What has no value that anything else could change.
_STILL = ast.Name | ast.Constant | ast.Tuple | ast.UnaryOp | ast.unaryop | ast.expr_context
# Functions that use up nothing.
_KEEPS = frozenset(["abs", "bool", "float", "int", "len", "round"])
# A quiet function that calls a quiet function takes another round.
_ROUNDS = 2


@dataclass(frozen=True)
class Surroundings:
    """The names that a file binds, those that functions share, and its functions that change nothing."""

    own: Set[str]
    shared: Set[str]
    quiet: Set[str]


def read_surroundings(tree: ast.Module) -> Surroundings:
    """Return what `may_swap` has to know of a file."""
    bound = Counter(bindings(tree))
    shared = {
        name for node in ast.walk(tree) if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names
    }
    around = Surroundings(set(bound), shared, frozenset())
    for _ in range(_ROUNDS):
        quiet = {
            name
            for name, function in functions(tree).items()
            if bound[name] == 1 and not function.decorator_list and _is_quiet(function, around)
        }
        around = Surroundings(around.own, shared, quiet)
    return around


def _is_quiet(function: ast.FunctionDef, around: Surroundings) -> bool:
    for statement in function.body:
        match statement:
            case ast.Assign(targets=[ast.Name()], value=value) | ast.Return(value=ast.expr() as value):
                if not _looks(value, around):
                    return False
            case _:
                return False
    return True


def may_swap(first: ast.stmt, second: ast.stmt, around: Surroundings) -> bool:
    """Say whether two statements next to each other may change places.

    Either both set a name, and find its value by looking alone; or one sets a name to a name or a constant,
    whatever the other does.
    """
    ours, theirs = _named(first), _named(second)
    if (ours | theirs) & around.shared or ours & set(bindings(second)) or theirs & set(bindings(first)):
        return False
    if not isinstance(first, _SIMPLE) or not isinstance(second, _SIMPLE):
        return False
    if _is_still(first) or _is_still(second):
        return True
    values = (_sets(first), _sets(second))
    return all(value is not None and _looks(value, around) for value in values)


def _sets(statement: ast.stmt) -> ast.expr | None:
    """Return the value of a statement that sets one name."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=value):
            return value
    return None


def _named(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def _is_still(statement: ast.stmt) -> bool:
    value = _sets(statement)
    return value is not None and all(isinstance(node, _STILL) for node in ast.walk(value))


def _looks(value: ast.AST, around: Surroundings) -> bool:
    """Say whether finding a value changes nothing: not even an iterator, which a `sum` uses up."""
    for node in ast.walk(value):
        match node:
            case ast.comprehension():
                return False
            case ast.Call(func=ast.Name(id=name)) if name not in _KEEPS and name not in around.quiet:
                return False
    return only_looks(value, around.own, around.quiet)
