"""Is an experiment plain, or could its code reach or change the program that records, trains and examines it?

The checks list what a file may do: the modules that it may import, which of their names it may use, the builtin
functions. Anything else may be harmless, and a person decides. So a suspicion costs no points by itself; it says that
measurements in the experiment's own process prove nothing.

No static check can see that an experiment behaves differently for inputs that look like a check's.
"""

import ast
from dataclasses import dataclass
from functools import lru_cache

from grader.syntax.names import Program, read_program
from grader.syntax.parse import ProgramText, Unparsable, parse_experiment
from grader.syntax.plain_reach import (
    check_attributes,
    check_builtins,
    check_classes,
    check_decorators,
    check_imports,
    check_modules_as_values,
    check_texts,
)
from grader.syntax.plain_state import check_counters, check_kept_state, check_notes, check_stores
from grader.syntax.trees import DEFINITIONS

# In our experiments the longest literal has 9 numbers (a stencil), and the longest text is a docstring; a whole
# experiment has 60 numbers and 300 characters of text.
MOST_NUMBERS = 200
MOST_NUMBERS_IN_ALL = 400
MOST_CHARACTERS = 1000
MOST_CHARACTERS_IN_ALL = 4000
# Names can carry data, because code can read them as text: keywords (`list(dict(abc=None))`), members of an
# enumeration. In our experiments the longest name has 21 characters, all names together 700, and no call six keywords.
MOST_IN_A_NAME = 60
MOST_IN_NAMES = 4000
MOST_KEYWORDS = 40
LARGEST_INTEGER = 10**30
# A method in a class, a function in it, another in that: ordinary code does not go deeper. The checks walk through
# every definition, so they would walk through code that nests 90 deep 90 times.
MOST_NESTED = 4

_CHECKS = (
    check_imports,
    check_modules_as_values,
    check_attributes,
    check_builtins,
    check_texts,
    check_stores,
    check_kept_state,
    check_counters,
    check_notes,
    check_classes,
    check_decorators,
)


@dataclass(frozen=True)
class Suspicion:
    """One thing that a plain experiment does not do; `message` is a clause for the instructor, with the line."""

    line: int
    code: str
    message: str


def suspicions(source: str) -> tuple[Suspicion, ...]:
    """Return what is not plain in a source, in the order of lines; empty for an ordinary experiment."""
    # Lines depend on the text, so the cache by program only holds whether there are any suspicions.
    return () if _is_plain(ProgramText.of(source)) else _suspicions(source)


@lru_cache(maxsize=256)
def _is_plain(program: ProgramText) -> bool:
    return not _suspicions(program.source)


@lru_cache(maxsize=256)
def _suspicions(source: str) -> tuple[Suspicion, ...]:
    try:
        tree = parse_experiment(source)
    except Unparsable as error:
        return (Suspicion(0, "unparsable", f"the file cannot be read ({error})"),)
    line = _nested_line(tree)
    if line is not None:
        what = f"defines something inside more than {MOST_NESTED} other definitions; nothing else was checked"
        return (Suspicion(line, "nesting", f"line {line} {what}"),)
    program = read_program(tree)
    found = {
        Suspicion(line, code, f"line {line} {what}")
        for check in _CHECKS
        for line, code, what in check(program)
    }
    found |= {
        Suspicion(line, "data", f"line {line} contains {what}, perhaps weights")
        for line, what in _data(program)
    }
    return tuple(sorted(found, key=lambda item: (item.line, item.code, item.message)))


def _nested_line(tree: ast.Module) -> int | None:
    """Return the line of a definition (a class, a function, a lambda) inside more than `MOST_NESTED` others."""
    level: list[tuple[ast.AST, int]] = [(tree, 0)]
    while level:
        node, depth = level.pop()
        if isinstance(node, DEFINITIONS):
            if depth > MOST_NESTED:
                return node.lineno
            depth += 1
        level += [(child, depth) for child in ast.iter_child_nodes(node)]
    return None


def _data(program: Program) -> list[tuple[int, str]]:
    """Return the lines with more data than an experiment needs, and descriptions."""
    docstrings = {id(node.value) for node in program.nodes if isinstance(node, ast.Expr)}
    constants = _constants_inside(program)
    found: list[tuple[int, str]] = []
    numbers = characters = 0
    for node in program.nodes:
        if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            count = constants[id(node)]
            if count > MOST_NUMBERS:
                found.append((node.lineno, f"{count} constants in one place"))
        elif isinstance(node, ast.Call) and len(node.keywords) > MOST_KEYWORDS:
            found.append((node.lineno, f"a call with {len(node.keywords)} named arguments"))
        if not isinstance(node, ast.Constant) or id(node) in docstrings:
            continue
        if isinstance(node.value, str | bytes):
            characters += len(node.value)
            if len(node.value) > MOST_CHARACTERS:
                found.append((node.lineno, f"a text of {len(node.value)} characters"))
        elif isinstance(node.value, int | float | complex):
            numbers += 1
            if isinstance(node.value, int) and abs(node.value) >= LARGEST_INTEGER:
                found.append((node.lineno, "a number of more than 30 digits"))
    names = _names(program)
    found += [
        (line, f"a name of {len(name)} characters")
        for name, line in names.items()
        if len(name) > MOST_IN_A_NAME
    ]
    if (length := sum(map(len, names))) > MOST_IN_NAMES:
        found.append((1, f"together with later lines names of {length} characters"))
    if numbers > MOST_NUMBERS_IN_ALL:
        found.append((1, f"together with later lines {numbers} numbers"))
    if characters > MOST_CHARACTERS_IN_ALL:
        found.append((1, f"together with later lines {characters} characters of text"))
    return found


def _names(program: Program) -> dict[str, int]:
    """Return every name in a program, with the line of its first use."""
    found: dict[str, int] = {}
    for node in program.nodes:
        line = getattr(node, "lineno", 1)
        for field in ("id", "attr", "arg", "name", "asname", "rest"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                found.setdefault(name, line)
    return found


def _constants_inside(program: Program) -> dict[int, int]:
    """Return the number of constants in each node, itself included. In `nodes` children follow their parents."""
    found: dict[int, int] = {}
    for node in reversed(program.nodes):
        inside = sum(found[id(child)] for child in ast.iter_child_nodes(node))
        found[id(node)] = inside + isinstance(node, ast.Constant)
    return found
