"""Finds what a derivation does that could reach the counter of its instructions, or hide a loop from it.

Such a file may be harmless, so it loses nothing by itself: its counts are not believed, and the instructor decides.
"""

import ast
from collections.abc import Iterator
from functools import lru_cache
from types import ModuleType

import numpy as np

from grader.syntax.parse import Unparsable, parse_experiment
from harness.written.derivation import foreign_imports

# NumPy's functions that loop without running Python instructions, call back, or reach files and settings.
_NUMPY = frozenset(
    """
    apply_along_axis apply_over_axes array2string array_repr array_str frompyfunc fromfunction fromiter ndenumerate
    ndindex nditer nested_iters piecewise vectorize fromfile fromregex genfromtxt load loadtxt memmap save savetxt savez
    savez_compressed info printoptions set_printoptions seterr seterrcall setbufsize show_config show_runtime test
    get_include
    """.split()
)
_BUILTINS = frozenset(
    """
    __import__ breakpoint compile delattr dir eval exec getattr globals input locals memoryview open setattr vars
    copyright credits exit help license quit BaseException KeyboardInterrupt SystemExit
    """.split()
)
# Ways from an object to the frame, class or memory behind it; and `imag`, with which a complex step differentiates.
_INSIDES = ("_", "f_", "gi_", "tb_", "cr_", "ag_", "co_", "ctypes", "tofile", "dump", "imag")
_HARMLESS = ("__init__", "__name__")
_Found = Iterator[tuple[int, str]]


@lru_cache(maxsize=256)
def doubts(source: str) -> tuple[str, ...]:
    """Return a clause for each unusual thing in a source, in the order of lines; () for an ordinary derivation."""
    try:
        tree = parse_experiment(source)
    except Unparsable as error:
        return (f"the file cannot be read ({error})",)
    found = {*_names(tree), *((line, f"imports {name[:80]}") for line, name in foreign_imports(tree))}
    return tuple(f"line {line} {what}" for line, what in sorted(found))


def foreign_import(source: str) -> str:
    """Return where a source imports something other than NumPy, as a clause, or ""."""
    try:
        found = next(foreign_imports(parse_experiment(source)), None)
    except Unparsable:
        return ""
    return "" if found is None else f"line {found[0]} imports {found[1][:80]}"


def _names(tree: ast.Module) -> _Found:
    modules = _modules(tree)
    held = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=module) if module != "__future__":
                for alias in node.names:
                    if _denied(module or "", alias.name):
                        yield node.lineno, f"imports {alias.name[:80]} from {(module or '')[:80]}"
            case ast.Import():
                for alias in node.names:
                    if alias.name.startswith("numpy.") and alias.name != "numpy.linalg":
                        yield node.lineno, f"imports {alias.name[:80]}"
            case ast.Global() | ast.Nonlocal():
                yield node.lineno, f"keeps something between calls ({', '.join(node.names)[:80]})"
            case ast.Name(id=name) if name in modules:
                if not isinstance(node.ctx, ast.Load):
                    yield node.lineno, f"gives {name} another meaning"
                elif id(node) not in held:
                    yield node.lineno, f"passes the module {name} on"
            case ast.Name(id=name) if name in _BUILTINS or (name.startswith("__") and name not in _HARMLESS):
                yield node.lineno, f"uses {name[:80]}"
            case ast.Attribute(attr=name):
                module = _module_of(node.value, modules)
                if module and not isinstance(node.ctx, ast.Load):
                    yield node.lineno, f"changes {module}.{name[:80]}"
                elif name.startswith(_INSIDES) and name not in _HARMLESS:
                    yield node.lineno, f"looks into an object ({name[:80]})"
                elif module and _denied(module, name):
                    yield node.lineno, f"uses {module}.{name[:80]}"


def _denied(module: str, name: str) -> bool:
    """Say whether a name of a module is one that an ordinary derivation does not use."""
    if name == "*" or (module.startswith("numpy.") and module != "numpy.linalg"):
        return True
    if module != "numpy":
        return False
    return name in _NUMPY or (name != "linalg" and isinstance(getattr(np, name, None), ModuleType))


def _modules(tree: ast.Module) -> dict[str, str]:
    """Return the names under which a source knows modules, and which module each is."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                found[alias.asname or first] = alias.name if alias.asname else first
    return found


def _module_of(node: ast.expr, modules: dict[str, str]) -> str:
    """Return the module that an expression is (`np.linalg`), or "" for an ordinary object."""
    if isinstance(node, ast.Name):
        return modules.get(node.id, "")
    if isinstance(node, ast.Attribute) and (module := _module_of(node.value, modules)):
        child = f"{module}.{node.attr}"
        return child if child == "numpy.linalg" else ""
    return ""
