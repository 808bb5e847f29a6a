"""Find what a derivation does that could reach the counter of its instructions, or hide a loop from it.

Such a file may be harmless, so it loses nothing by itself: its counts are not believed, and the instructor decides.
Names decide, wherever they come from: who cannot write `vectorize` cannot call it.
"""

import ast
import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from types import ModuleType

import numpy as np

from grader.intake.program import Unparsable, parse_experiment
from harness.written.derivation import foreign_imports


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


# NumPy's functions that loop without running Python instructions, call back, or reach files and settings.
_NUMPY = _words(
    """
    apply_along_axis apply_over_axes array2string array_repr array_str frompyfunc fromfunction fromiter ndenumerate
    ndindex nditer nested_iters piecewise vectorize fromfile fromregex genfromtxt load loadtxt memmap save savetxt savez
    savez_compressed info printoptions set_printoptions seterr seterrcall setbufsize show_config show_runtime test
    get_include
    """
)
_BUILTINS = _words(
    """
    __import__ breakpoint compile delattr dir eval exec getattr globals input locals memoryview open setattr vars
    copyright credits exit help license quit BaseException KeyboardInterrupt SystemExit
    """
)
# Ways from an object to the frame, class or memory behind it; and `imag`, with which a complex step differentiates.
_INSIDES = ("_", "f_", "gi_", "tb_", "cr_", "ag_", "co_", "ctypes", "tofile", "dump", "imag")
_HARMLESS = ("__init__", "__name__", "linalg", "typing")


@lru_cache(maxsize=256)
def suspicions(source: str) -> tuple[str, ...]:
    """Return a clause for each unusual thing in a source, in the order of lines; () for an ordinary derivation."""
    try:
        tree = parse_experiment(source)
    except Unparsable as error:
        return (f"the file cannot be read ({error})",)
    found = {(line, f"imports {name[:80]}") for line, name in foreign_imports(tree)}
    nodes = list(ast.walk(tree))
    modules = {
        alias.asname or alias.name.split(".")[0]
        for node in nodes
        for alias in (node.names if isinstance(node, ast.Import) else ())
    }
    held = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        found |= {(getattr(node, "lineno", 0), what) for what in _unusual(node, modules)}
        if isinstance(node, ast.Name) and node.id in modules and id(node) not in held:
            found.add((node.lineno, f"passes the module {node.id} on"))
    return tuple(f"line {line} {what}" for line, what in sorted(found))


def foreign_import(source: str) -> str:
    """Return where a source imports something other than NumPy, as a clause, or ""."""
    try:
        found = next(foreign_imports(parse_experiment(source)), None)
    except Unparsable:
        return ""
    return "" if found is None else f"Line {found[0]} imports {found[1][:80]}"


def _unusual(node: ast.AST, modules: Collection[str]) -> Iterator[str]:
    """Yield what is unusual in a node; `modules` are the names of imported modules."""
    attributes: list[str] = []
    match node:
        case ast.Name(id=name) if name in _BUILTINS or (name.startswith("__") and name not in _HARMLESS):
            yield f"uses {name[:80]}"
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield f"keeps something between calls ({', '.join(names)[:80]})"
        case ast.Import(names=aliases):
            attributes = [part for alias in aliases for part in alias.name.split(".")[1:]]
        case ast.ImportFrom(module=module, names=aliases):
            attributes = [*(module or "").split(".")[1:], *(alias.name for alias in aliases)]
        case ast.Attribute(attr=name, value=value, ctx=context):
            attributes = [name]
            is_ours = isinstance(value, ast.Name) and value.id not in modules
            if not isinstance(context, ast.Load) and not is_ours:
                yield f"changes a module ({name[:80]})"
        case ast.MatchClass(kwd_attrs=names):
            attributes = names
    yield from (f"uses {name[:80]}" for name in attributes if _is_denied(name))


def _is_denied(attribute: str) -> bool:
    """Say whether an ordinary derivation does not use an attribute of this name."""
    is_module = isinstance(getattr(np, attribute, None), ModuleType)
    denied = attribute == "*" or attribute in _NUMPY or is_module or attribute.startswith(_INSIDES)
    return denied and attribute not in _HARMLESS
