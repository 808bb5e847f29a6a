"""Is an experiment plain: could its code reach, or change, the program that records, trains and probes it?

What a file may do is listed, not what it may not: the modules it may import, what of them it may use, the builtin
functions. Whatever else it does may be harmless and is a matter for a person. So a suspicion costs nothing by
itself; it says that what the experiment's own process measured is not proof.

What no static look can see: an experiment that behaves differently for inputs that look like a probe's.
"""

import ast
from dataclasses import dataclass
from functools import lru_cache

from grader.syntax.parse import ProgramText, Unparsable, parse_experiment
from grader.syntax.plain_counters import check_counters, check_notes
from grader.syntax.plain_definitions import check_classes, check_decorators
from grader.syntax.plain_reach import (
    check_attributes,
    check_builtins,
    check_imports,
    check_modules_as_values,
    check_texts,
)
from grader.syntax.plain_state import check_kept_state, check_stores
from grader.syntax.program import Program, read_program

# The longest literal of an experiment as handed out has 9 numbers (a stencil), the longest text is a docstring;
# a whole one has 60 numbers and 300 characters of text.
MOST_NUMBERS = 200
MOST_NUMBERS_IN_ALL = 400
MOST_CHARACTERS = 1000
MOST_CHARACTERS_IN_ALL = 4000
# Names can be read back as text: of keywords (`list(dict(abc=None))`), of the members of an enumeration. The longest
# of an experiment as handed out has 21 characters, all different ones together 700, and no call six keywords.
MOST_IN_A_NAME = 60
MOST_IN_NAMES = 4000
MOST_KEYWORDS = 40
LARGEST_INTEGER = 10**30
# A method in a class, a function in it, another in that: nobody plain goes deeper. The checks look at all that is in
# a definition, so that what nests 90 deep would be looked at 90 times, and by some of them more often.
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
    """One thing that a plain experiment does not do; `message` is a clause for an instructor, with the line."""

    line: int
    code: str
    message: str


def suspicions(source: str) -> tuple[Suspicion, ...]:
    """Return what in a source is not plain, in the order of lines; empty for an ordinary experiment."""
    # Lines are those of a text; that there is nothing to tell is so of a program, whatever its looks.
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
        what = (
            f"defines something inside more than {MOST_NESTED} other definitions; nothing else was looked at"
        )
        return (Suspicion(line, "nesting", f"line {line} {what}"),)
    program = read_program(tree)
    found = {
        Suspicion(line, code, f"line {line} {what}")
        for check in _CHECKS
        for line, code, what in check(program)
    }
    found |= {
        Suspicion(line, "data", f"line {line} holds {what}, perhaps weights") for line, what in _data(program)
    }
    return tuple(sorted(found, key=lambda item: (item.line, item.code, item.message)))


def _nested_line(tree: ast.Module) -> int | None:
    """Return the line of a definition (a class, a function, a lambda) that more than `MOST_NESTED` others hold."""
    level: list[tuple[ast.AST, int]] = [(tree, 0)]
    while level:
        node, depth = level.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            if depth > MOST_NESTED:
                return node.lineno
            depth += 1
        level += [(child, depth) for child in ast.iter_child_nodes(node)]
    return None


def _data(program: Program) -> list[tuple[int, str]]:
    """Return lines that hold more data than an experiment needs, and what."""
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
        found.append((1, f"with all that follow names of {length} characters"))
    if numbers > MOST_NUMBERS_IN_ALL:
        found.append((1, f"with all that follow {numbers} numbers"))
    if characters > MOST_CHARACTERS_IN_ALL:
        found.append((1, f"with all that follow {characters} characters of text"))
    return found


def _names(program: Program) -> dict[str, int]:
    """Return every name that a program makes or uses, with a line where it does."""
    found: dict[str, int] = {}
    for node in program.nodes:
        line = getattr(node, "lineno", 1)
        for field in ("id", "attr", "arg", "name", "asname", "rest"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                found.setdefault(name, line)
    return found


def _constants_inside(program: Program) -> dict[int, int]:
    """Return how many constants each node holds, itself included. Children come after their parents in `nodes`."""
    found: dict[int, int] = {}
    for node in reversed(program.nodes):
        inside = sum(found[id(child)] for child in ast.iter_child_nodes(node))
        found[id(node)] = inside + isinstance(node, ast.Constant)
    return found
