"""The same program in the form that is closest to another: other names, steps in between, and order of statements."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from functools import cached_property, lru_cache

from grader.syntax.edit_size import MOST_CELLS, Budget, bound_names, distance, labelled
from grader.syntax.effects import Surroundings, read_surroundings
from grader.syntax.local_names import inlined, single_names
from grader.syntax.matching_names import EVERY, with_numbers, with_parameters_of, with_variables_of
from grader.syntax.names import Names, read_names
from grader.syntax.renaming import first_values
from grader.syntax.statement_order import in_order_of, sink
from grader.syntax.trees import are_equal, bindings, copied, functions

# Two functions of more nodes are not tried in several forms: no function of an experiment has half as many.
_MOST_NODES = 200
# What takes arguments by name and gives none of them on to a function of the file.
_NOT_ITS_OWN = ("torch.", "harness.")


class _File:
    """What rewriting a function takes of the file that it stands in, found when it is asked for."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self.functions = functions(tree)

    @cached_property
    def names(self) -> Names:
        """What the names of the file stand for."""
        return read_names(self._tree)

    @cached_property
    def bound(self) -> Mapping[str, int]:
        """How often each name is bound."""
        return Counter(bindings(self._tree))

    @cached_property
    def around(self) -> Surroundings:
        """What moving statements takes."""
        return read_surroundings(self._tree)

    @cached_property
    def elsewhere(self) -> Set[str]:
        """Names that are not a function's own."""
        return self.names.paths.keys() | {name for item in self._tree.body for name in bound_names(item)}

    @cached_property
    def asked_by_name(self) -> Set[str]:
        """Names that arguments are given by, wherever they may come to a function of the file itself."""
        return {
            item.arg or EVERY
            for call in ast.walk(self._tree)
            if isinstance(call, ast.Call)
            and not all(path.startswith(_NOT_ITS_OWN) for path in self.names.paths_of(call.func) or [""])
            for item in call.keywords
        }


# By the identity of the tree: ours is asked for every student.
_known_file = lru_cache(maxsize=64)(_File)


def closest_forms(tree: ast.Module, broken: ast.Module) -> tuple[ast.Module, ast.Module]:
    """Return an edited and the broken experiment with functions of one name as alike as may be.

    Nothing but the form differs from what is given: names of parameters and variables, names for steps in
    between, and the order of statements where it makes no difference. `broken` itself comes back where its form
    stays; neither tree is changed.
    """
    theirs, ours = _File(tree), _known_file(broken)
    budget = Budget(MOST_CELLS)
    news: dict[str, ast.FunctionDef] = {}
    olds: dict[str, ast.FunctionDef] = {}
    for name in sorted(ours.functions.keys() & theirs.functions.keys()):
        new, old = theirs.functions[name], ours.functions[name]
        if not are_equal(new, old) and theirs.bound[name] == ours.bound[name] == 1:
            new, changed = _closest(new, old, theirs, ours, budget)
            news[name] = with_numbers(new, old, theirs.elsewhere)
            if changed is not old:
                olds[name] = changed
    return _with(tree, news), _with(broken, olds) if olds else broken


def _with(tree: ast.Module, changed: Mapping[str, ast.FunctionDef]) -> ast.Module:
    body = [changed.get(item.name, item) if isinstance(item, ast.FunctionDef) else item for item in tree.body]
    return ast.Module(body=body, type_ignores=[])


def _closest(
    new: ast.FunctionDef, old: ast.FunctionDef, theirs: _File, ours: _File, budget: Budget
) -> tuple[ast.FunctionDef, ast.FunctionDef]:
    """Return both functions in the forms of which the distance is least."""
    best = (inlined(new, set(bindings(old))), old)
    size = _size(best, theirs, ours, budget)
    if not size or max(sum(1 for _ in ast.walk(item)) for item in best) > _MOST_NODES:
        return best
    for form in _forms(new, old, theirs):
        if budget.cells <= MOST_CELLS // 2:
            break
        found = _size(form, theirs, ours, budget)
        if found < size:
            best, size = form, found
    return best


def _size(forms: tuple[ast.FunctionDef, ast.FunctionDef], theirs: _File, ours: _File, budget: Budget) -> int:
    new, old = forms
    return distance([labelled(old, ours.names)], [labelled(new, theirs.names)], budget)


def _forms(
    new: ast.FunctionDef, old: ast.FunctionDef, theirs: _File
) -> Iterator[tuple[ast.FunctionDef, ast.FunctionDef]]:
    """Yield pairs of forms: names matched where their values are equal, and then also where they are alike."""
    start = with_parameters_of(new, old, theirs.elsewhere, theirs.asked_by_name)
    for also_alike in (False, True):
        named = with_variables_of(start, old, theirs.elsewhere, also_alike=also_alike)
        kept = set(bindings(old))
        plain = inlined(_sunk(named, kept, theirs.around), kept)
        plain.body = in_order_of(plain.body, old.body, theirs.around)
        yield plain, _without_steps(old, plain)


def _sunk(function: ast.FunctionDef, kept: Set[str], around: Surroundings) -> ast.FunctionDef:
    plain = copied(function)
    sink(plain.body, single_names(plain) - kept, around)
    return plain


def _without_steps(old: ast.FunctionDef, new: ast.FunctionDef) -> ast.FunctionDef:
    """Return the function without its names for steps that the other has in their place, spelled out."""
    there = {ast.dump(node) for node in ast.walk(new) if isinstance(node, ast.expr)}
    bound = set(bindings(new))
    stay = {
        name for name, value in first_values(old).items() if name in bound or ast.dump(value) not in there
    }
    gone = first_values(old).keys() - stay
    return inlined(old, set(bindings(old)) - gone) if gone else old
