"""Parameters and variables of a function under other names, where that makes no difference."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

from grader.syntax.trees import bindings, copied

# A function that asks for names by their text knows what they are called.
_READS_NAMES = frozenset(["dir", "eval", "exec", "globals", "locals", "vars"])
_OTHER_SCOPES = (
    ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp
    | ast.GeneratorExp
)  # fmt: skip


def parameters_of(function: ast.FunctionDef) -> list[str] | None:
    """Return the parameters of a function that has only plain ones, without defaults; else None."""
    arguments = function.args
    odd = (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs, *arguments.defaults)
    return None if any(odd) else [item.arg for item in (*arguments.posonlyargs, *arguments.args)]


def variables_of(function: ast.FunctionDef, elsewhere: Set[str]) -> list[str]:
    """Return the names that are a function's own and nobody else's, parameters first, in order of their first use.

    `elsewhere` are names that the file binds outside of its functions, or imports. There are none in a function
    with other than plain parameters, with a function or a class inside, or one that reads names as text. What a
    lambda or a comprehension inside binds as well is not one of them.
    """
    parameters = parameters_of(function)
    inner = [node for statement in function.body for node in ast.walk(statement)]
    if parameters is None or any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in inner
    ):
        return []
    if any(isinstance(node, ast.Name) and node.id in _READS_NAMES for node in inner):
        return []
    deeper = {name for node in inner if isinstance(node, _OTHER_SCOPES) for name in bindings(node)}
    set_plainly = [
        node.id for node in inner if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    plainly = Counter(set_plainly)
    bound = Counter(name for statement in function.body for name in bindings(statement))
    return [
        name
        for name in dict.fromkeys([*parameters, *set_plainly])
        if name not in deeper and name not in elsewhere and bound[name] == plainly[name]
    ]


def renamed(function: ast.FunctionDef, names: Mapping[str, str]) -> ast.FunctionDef | None:
    """Return a copy with other names, all at once; None where a new name is read there and means something else.

    The names must be `variables_of` the function.
    """
    taken = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} | set(bindings(function))
    after = [names.get(name, name) for name in taken]
    if len(set(after)) < len(after):
        return None
    plain = copied(function)
    plain.args = _Rename(names).visit(plain.args)
    plain.body = [_Rename(names).visit(statement) for statement in plain.body]
    return plain


def with_names(value: ast.expr, names: Mapping[str, str]) -> ast.expr:
    """Return a copy of an expression with other names."""
    found = _Rename(names).visit(copied(value))
    assert isinstance(found, ast.expr)
    return found


class _Rename(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(id=self._names.get(node.id, node.id), ctx=node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self._names.get(node.arg, node.arg)
        return node


def first_values(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Return what each name is first set to by a plain assignment, in order."""
    found: dict[str, ast.expr] = {}
    for statement in _statements(function.body):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found.setdefault(name, value)
    return found


def _statements(block: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in block:
        yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, name, []))


def likeness(first: ast.AST, second: ast.AST) -> float:
    """Return how many of the nodes of two expressions are in both, 0 to 1, wherever they stand."""
    one, other = _tokens(first), _tokens(second)
    return (one & other).total() / max((one | other).total(), 1)


def _tokens(node: ast.AST) -> Counter[object]:
    return Counter(
        (type(item), getattr(item, "id", getattr(item, "attr", getattr(item, "value", None))))
        if isinstance(item, ast.Name | ast.Attribute | ast.Constant)
        else type(item)
        for item in ast.walk(node)
        if not isinstance(item, ast.expr_context)
    )
