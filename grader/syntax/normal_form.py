"""Bring an edited experiment into a form that differs from the broken one only by what the edit does."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from functools import cached_property, lru_cache

from grader.syntax.calls import spell_calls_alike
from grader.syntax.edit_size import AREAS, MOST_CELLS, Budget, ComparedProgram, distance, labelled, prepare
from grader.syntax.idle_code import (
    drop_mode_restored,
    drop_other_metrics,
    drop_prints,
    drop_unread_functions,
    drop_unread_variables,
    move_clearing_first,
)
from grader.syntax.inlining import (
    inline_constants,
    inline_criteria,
    inline_helpers,
    inline_locals,
    inlined,
)
from grader.syntax.names import Names, read_names
from grader.syntax.parse import normalized
from grader.syntax.renaming import EVERY, first_values, with_numbers, with_parameters_of, with_variables_of
from grader.syntax.trees import are_equal, bindings, bound_names, functions

# Larger functions are not tried in several forms: no function of an experiment has half as many nodes.
_MOST_NODES = 200
# Functions that take arguments by name and pass none of them to a function of the file.
_LIBRARIES = ("torch.", "harness.")


class _Alike(ast.NodeTransformer):
    """Sorts the keywords of every call without `**`, and writes `name += value` as `name = name + value`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if all(keyword.arg for keyword in node.keywords):
            node.keywords.sort(key=lambda keyword: keyword.arg or "")
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        read = ast.Name(node.target.id, ast.Load())
        changed = ast.Assign([node.target], ast.BinOp(read, node.op, node.value))
        return ast.fix_missing_locations(ast.copy_location(changed, node))


def _written_alike(tree: ast.Module) -> ast.Module:
    plain = normalized(tree)
    _Alike().visit(plain)
    drop_other_metrics(plain)
    return plain


def prepare_broken(tree: ast.Module) -> ComparedProgram:
    """Prepare one of our sources: without docstrings and annotations, with equal statements written alike."""
    return prepare(spell_calls_alike(_written_alike(tree)))


def prepare_edited(tree: ast.Module, broken: ComparedProgram) -> tuple[ComparedProgram, ComparedProgram]:
    """Prepare an edited experiment and the broken one in the forms that are closest, and without what is free.

    Puts new constants, names and helpers in place, writes calls and assignments alike, and gives variables the names
    of the broken experiment. Removes prints, metrics that the trainer ignores, unused names, and setting the network
    back to training mode; moves `zero_grad` to its usual place. In the broken experiment, puts variables in place that
    the edit has put in place.
    """
    kept = {name for statement in broken.tree.body for name in bound_names(statement)}
    local: dict[str, Set[str]] = {
        name: set(bindings(function)) for name, function in functions(broken.tree).items()
    }
    plain = _written_alike(tree)
    inline_constants(plain, kept)
    inline_helpers(plain, kept)
    drop_prints(plain)
    drop_mode_restored(plain)
    drop_unread_variables(plain, local)
    drop_unread_functions(plain, kept | AREAS.keys())
    inline_criteria(plain, kept)
    plain = spell_calls_alike(plain)
    move_clearing_first(plain)
    plain, other = _closest_forms(plain, broken.tree)
    inline_locals(plain, local)
    return prepare(plain), broken if other is broken.tree else prepare(other)


class _File:
    """What renaming in a function needs to know about its file, computed on demand."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self.functions = functions(tree)

    @cached_property
    def names(self) -> Names:
        """The paths of the file's names."""
        return read_names(self._tree)

    @cached_property
    def bound(self) -> Mapping[str, int]:
        """How often the file binds each name."""
        return Counter(bindings(self._tree))

    @cached_property
    def elsewhere(self) -> Set[str]:
        """Names that do not belong to a function."""
        return self.names.paths.keys() | {name for item in self._tree.body for name in bound_names(item)}

    @cached_property
    def keywords(self) -> Set[str]:
        """Names of arguments in calls that may reach a function of the file."""
        return {
            item.arg or EVERY
            for call in ast.walk(self._tree)
            if isinstance(call, ast.Call)
            and not all(path.startswith(_LIBRARIES) for path in self.names.paths_of(call.func) or [""])
            for item in call.keywords
        }


# By the identity of the tree: the broken experiment is the same for every student.
_known_file = lru_cache(maxsize=64)(_File)


def _closest_forms(tree: ast.Module, broken: ast.Module) -> tuple[ast.Module, ast.Module]:
    """Return both experiments with functions of the same name in their closest forms."""
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
    """Return the forms of both functions with the smallest distance."""

    def size_of(forms: tuple[ast.FunctionDef, ast.FunctionDef]) -> int:
        return distance([labelled(forms[1], ours.names)], [labelled(forms[0], theirs.names)], budget)

    best = (inlined(new, set(bindings(old))), old)
    size = size_of(best)
    if not size or max(sum(1 for _ in ast.walk(item)) for item in best) > _MOST_NODES:
        return best
    for forms in _forms(new, old, theirs):
        if budget.cells <= MOST_CELLS // 2:
            break
        if (found := size_of(forms)) < size:
            best, size = forms, found
    return best


def _forms(
    new: ast.FunctionDef, old: ast.FunctionDef, theirs: _File
) -> Iterator[tuple[ast.FunctionDef, ast.FunctionDef]]:
    """Yield pairs of forms: with names matched by equal values, then also by similar values."""
    start = with_parameters_of(new, old, theirs.elsewhere, theirs.keywords)
    for also_alike in (False, True):
        named = with_variables_of(start, old, theirs.elsewhere, also_alike=also_alike)
        plain = inlined(named, set(bindings(old)))
        # Put the variables of the broken function in place that the other has in place.
        there = {ast.dump(node) for node in ast.walk(plain) if isinstance(node, ast.expr)}
        bound, values = set(bindings(plain)), first_values(old)
        gone = {name for name, value in values.items() if name not in bound and ast.dump(value) in there}
        yield plain, inlined(old, set(bindings(old)) - gone) if gone else old
