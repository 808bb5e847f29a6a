"""Which names of a function are those of another: parameters by their place, variables by what they are set to."""

import ast
from collections.abc import Mapping, Sequence, Set

from grader.syntax.local_names import inlined
from grader.syntax.renaming import first_values, likeness, parameters_of, renamed, variables_of, with_names
from grader.syntax.trees import are_equal, bindings

# Two names whose values share more than this part of their nodes are taken for the same step, changed.
_ALIKE = 0.5
# Stands for all names among those that arguments are given by: `f(**arguments)`.
EVERY = "**"


def with_parameters_of(
    new: ast.FunctionDef, old: ast.FunctionDef, elsewhere: Set[str], asked_by_name: Set[str]
) -> ast.FunctionDef:
    """Return the function with the parameters' names of the other, where nobody gives arguments by name.

    `elsewhere` are names that are no function's own, `asked_by_name` those that arguments are given by.
    """
    given, wanted = parameters_of(new), parameters_of(old)
    if given is None or wanted is None or len(given) != len(wanted) or given == wanted:
        return new
    own = variables_of(new, elsewhere)
    if not set(given) <= set(own) or {EVERY, *given, *wanted} & asked_by_name:
        return new
    names = dict(zip(given, wanted, strict=True))
    # A variable that is called what a parameter is to be called makes room.
    names |= {name: f"{name} " for name in own if name in wanted and name not in names}
    return renamed(new, names) or new


def with_variables_of(
    new: ast.FunctionDef, old: ast.FunctionDef, elsewhere: Set[str], *, also_alike: bool
) -> ast.FunctionDef:
    """Return the function with variables called as in the other where they are first set to the same.

    With `also_alike`, of those that are left also where they are first set to much the same.
    """
    parameters = parameters_of(new) or []
    here, there = first_values(new), first_values(old)
    own = [name for name in variables_of(new, elsewhere) if name in here and name not in parameters]
    missing = [name for name in there if name not in bindings(new)]
    own = [name for name in own if name not in there]
    if not own or not missing:
        return new
    flat = first_values(inlined(new, set(there)))
    names: dict[str, str] = {}
    values = {**here, **flat}
    for name in own:
        values[name] = with_names(values[name], names)
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
    """Pair off the names that are left and have similar values, the most similar first."""
    pairs = sorted(
        (-likeness(here[name], there[other]), index, place, name, other)
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


def with_numbers(new: ast.FunctionDef, old: ast.FunctionDef, elsewhere: Set[str]) -> ast.FunctionDef:
    """Return the function with numbers for names of variables that the other has not: two edits may differ in them."""
    known = {*bindings(old), *(parameters_of(new) or [])}
    own = [name for name in variables_of(new, elsewhere) if name not in known]
    # No name of a source has a space in it.
    return renamed(new, {name: f"variable {index}" for index, name in enumerate(own)}) or new
