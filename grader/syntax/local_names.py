"""Names of a function that an edit added and that make no difference: put back in their place, or left out."""

import ast
from collections import Counter
from collections.abc import Mapping, Set

from grader.syntax.prints import only_looks
from grader.syntax.trees import bindings, blocks, copied, functions

# The deepest healthy experiment has a depth of 12: with these bounds recursion over the result stays safe.
_MOST_NAMES, _MOST_DEPTH = 8, 12

Kept = Mapping[str, Set[str]]


def names_by_function(tree: ast.Module) -> dict[str, Set[str]]:
    """Return the names that each function of a module binds anywhere in it."""
    return {name: set(bindings(function)) for name, function in functions(tree).items()}


def inline_locals(tree: ast.Module, kept: Kept) -> ast.Module:
    """Return a copy in which a name bound once and read once, in the next statement, is what it stands for.

    Names in `kept`, by function, stay. A function loses at most eight: what is nested deeper than a repair is
    no repair with a name to it.
    """
    plain = copied(tree)
    for name, function in functions(plain).items():
        single = single_names(function) - kept.get(name, frozenset())
        left = _MOST_NAMES
        for node in list(ast.walk(function)):
            for block in blocks(node):
                left -= _inline_in(block, single, left)
    return plain


def inlined(function: ast.FunctionDef, kept: Set[str]) -> ast.FunctionDef:
    """Return one function as `inline_locals` has it; names in `kept` stay."""
    module = inline_locals(ast.Module(body=[function], type_ignores=[]), {function.name: kept})
    found = module.body[0]
    assert isinstance(found, ast.FunctionDef)
    return found


def single_names(function: ast.FunctionDef) -> Set[str]:
    """Return the names that a function binds once and reads once."""
    bound, read = _counts(function)
    return {item for item in bound if bound[item] == read[item] == 1}


def _inline_in(block: list[ast.stmt], single: Set[str], most: int) -> int:
    """Inline in one block, from its end: three lines of names become one. Return how many names went."""
    done = 0
    for index in range(len(block) - 2, -1, -1):
        match block[index]:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in single and done < most:
                following = block[index + 1]
                reads = any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(following))
                if reads and not _holds_more(following) and _depth(value) <= _MOST_DEPTH:
                    block[index : index + 2] = [_Replace(name, value).visit(following)]
                    done += 1
    return done


def _holds_more(statement: ast.stmt) -> bool:
    """Say whether it defines something: what is inside runs later."""
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda)
        for node in ast.walk(statement)
    )


def _depth(node: ast.AST) -> int:
    depth, level = 0, [node]
    while level and depth <= _MOST_DEPTH:
        depth, level = depth + 1, [child for item in level for child in ast.iter_child_nodes(item)]
    return depth


class _Replace(ast.NodeTransformer):
    def __init__(self, name: str, value: ast.expr) -> None:
        self._name, self._value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._value if node.id == self._name else node


def drop_unread(tree: ast.Module, kept: Kept) -> ast.Module:
    """Return a copy without names of functions that are never read, where finding their value only looks."""
    plain = copied(tree)
    everywhere = set(bindings(plain))
    for name, function in functions(plain).items():
        bound, read = _counts(function)
        stay = kept.get(name, frozenset())
        unread = {item for item in bound if bound[item] == 1 and not read[item] and item not in stay}
        for node in list(ast.walk(function)):
            for block in blocks(node):
                rest = [item for item in block if not _is_unread(item, unread, everywhere)]
                block[:] = rest or block[:1]
    return plain


def _is_unread(statement: ast.stmt, unread: Set[str], own: Set[str]) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name in unread and only_looks(value, own)
    return False


def _counts(function: ast.FunctionDef) -> tuple[Counter[str], Counter[str]]:
    read = Counter(
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)
    )
    return Counter(bindings(function)), read
