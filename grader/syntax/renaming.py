"""Give the parameters and variables of a function the names that they have in another version of the function."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

from grader.syntax.inlining import inlined
from grader.syntax.trees import DEFINITIONS, are_equal, assignment, bindings, copied, names_in

# A function that looks up names as text depends on what they are called.
_READS_NAMES = frozenset(["dir", "eval", "exec", "globals", "locals", "vars"])
_OTHER_SCOPES = (*DEFINITIONS, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# If the first values of two names share more than this part of their nodes, they are the same step, changed.
_ALIKE = 0.5
# Stands for any name of an argument: `f(**arguments)`.
EVERY = "**"


def parameters_of(function: ast.FunctionDef) -> list[str] | None:
    """Return the parameters of a function that has only plain parameters without defaults, else None."""
    arguments = function.args
    odd = (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs, *arguments.defaults)
    return None if any(odd) else [item.arg for item in (*arguments.posonlyargs, *arguments.args)]


def variables_of(function: ast.FunctionDef, elsewhere: Set[str]) -> list[str]:
    """Return the names that belong to a function alone, parameters first, in order of their first assignment.

    `elsewhere` are names that the file imports or binds outside of functions. A function has none if its parameters
    are not plain, if it defines a function or a class, or if it looks up names as text. A name that a lambda or a
    comprehension inside binds too is left out.
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
    assigned = [node.id for node in inner if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    plainly = Counter(assigned)
    bound = Counter(name for statement in function.body for name in bindings(statement))
    return [
        name
        for name in dict.fromkeys([*parameters, *assigned])
        if name not in deeper and name not in elsewhere and bound[name] == plainly[name]
    ]


def renamed(function: ast.FunctionDef, names: Mapping[str, str]) -> ast.FunctionDef | None:
    """Return a copy with all names exchanged at once; None if a new name already means something else there.

    The names must be `variables_of` the function.
    """
    taken = {*names_in(function), *bindings(function)}
    after = [names.get(name, name) for name in taken]
    if len(set(after)) < len(after):
        return None
    plain = copied(function)
    plain.args = _Rename(names).visit(plain.args)
    plain.body = [_Rename(names).visit(statement) for statement in plain.body]
    return plain


class _Rename(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(id=self._names.get(node.id, node.id), ctx=node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self._names.get(node.arg, node.arg)
        return node


def first_values(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Return the value of the first plain assignment to each name, in order."""
    found: dict[str, ast.expr] = {}
    for statement in _statements(function.body):
        if (pair := assignment(statement)) is not None:
            found.setdefault(*pair)
    return found


def _statements(block: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in block:
        yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, name, []))


def with_parameters_of(
    new: ast.FunctionDef, old: ast.FunctionDef, elsewhere: Set[str], keywords: Set[str]
) -> ast.FunctionDef:
    """Return the function with the other's parameter names, unless a call may give one of them as a keyword.

    `elsewhere` as in `variables_of`; `keywords` are the names of arguments in calls of the file's functions.
    """
    given, wanted = parameters_of(new), parameters_of(old)
    if given is None or wanted is None or len(given) != len(wanted) or given == wanted:
        return new
    own = variables_of(new, elsewhere)
    if not set(given) <= set(own) or {EVERY, *given, *wanted} & keywords:
        return new
    names = dict(zip(given, wanted, strict=True))
    # A variable with the new name of a parameter makes room. No name in a source has a space in it.
    names |= {name: f"{name} " for name in own if name in wanted and name not in names}
    return renamed(new, names) or new


def with_variables_of(
    new: ast.FunctionDef, old: ast.FunctionDef, elsewhere: Set[str], *, also_alike: bool
) -> ast.FunctionDef:
    """Return the function with the other's names for variables whose first values are equal.

    With `also_alike`, the variables that are left get names by similar first values.
    """
    parameters = parameters_of(new) or []
    here, there = first_values(new), first_values(old)
    own = [
        name
        for name in variables_of(new, elsewhere)
        if name in here and name not in parameters and name not in there
    ]
    missing = [name for name in there if name not in bindings(new)]
    if not own or not missing:
        return new
    names: dict[str, str] = {}
    values = {**here, **first_values(inlined(new, set(there)))}
    for name in own:
        values[name] = _Rename(names).visit(copied(values[name]))
        for other in missing:
            if other not in names.values() and are_equal(values[name], there[other]):
                names[name] = other
                break
    if also_alike:
        names |= _alike(own, missing, names, values, there)
    return renamed(new, names) or new


def _alike(
    own: Sequence[str],
    missing: Sequence[str],
    known: Mapping[str, str],
    here: Mapping[str, ast.expr],
    there: Mapping[str, ast.expr],
) -> dict[str, str]:
    """Pair the names that are left and have similar values, the most similar first."""
    pairs = sorted(
        (-_likeness(here[name], there[other]), index, place, name, other)
        for index, name in enumerate(own)
        if name not in known
        for place, other in enumerate(missing)
        if other not in known.values()
    )
    found: dict[str, str] = {}
    for unlike, _, _, name, other in pairs:
        if unlike < -_ALIKE and name not in found and other not in found.values():
            found[name] = other
    return found


def _likeness(first: ast.AST, second: ast.AST) -> float:
    """Return the share of nodes, 0 to 1, that two expressions have in common at any place."""
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


def with_numbers(new: ast.FunctionDef, old: ast.FunctionDef, elsewhere: Set[str]) -> ast.FunctionDef:
    """Return the function with numbers for variables that the other lacks, so that two edits may differ in them."""
    known = {*bindings(old), *(parameters_of(new) or [])}
    own = [name for name in variables_of(new, elsewhere) if name not in known]
    # No name in a source has a space in it.
    return renamed(new, {name: f"variable {index}" for index, name in enumerate(own)}) or new
