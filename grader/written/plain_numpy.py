"""Find what a derivation does that could reach the counter of its instructions, or hide a loop from it.

Such a file may be harmless, so it loses nothing by itself: its counts are not believed, and the instructor decides.
"""

import ast
import re
from collections.abc import Mapping
from functools import lru_cache
from types import ModuleType

import numpy as np

from grader.syntax.program import Unparsable, parse_experiment
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
_HARMLESS = ("__init__", "__name__")


@lru_cache(maxsize=256)
def suspicions(source: str) -> tuple[str, ...]:
    """Return a clause for each unusual thing in a source, in the order of lines; () for an ordinary derivation."""
    try:
        tree = parse_experiment(source)
    except Unparsable as error:
        return (f"the file cannot be read ({error})",)
    nodes = list(ast.walk(tree))
    modules = {
        alias.asname or alias.name.split(".")[0]: alias.name if alias.asname else alias.name.split(".")[0]
        for node in nodes
        for alias in (node.names if isinstance(node, ast.Import) else ())
    }
    held = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    found = {(line, f"imports {name[:80]}") for line, name in foreign_imports(tree)}
    for node in nodes:
        if what := _unusual(node, modules, is_held=id(node) in held):
            found.add((getattr(node, "lineno", 0), what))
    return tuple(f"line {line} {what}" for line, what in sorted(found))


def foreign_import(source: str) -> str:
    """Return where a source imports something other than NumPy, as a clause, or ""."""
    try:
        found = next(foreign_imports(parse_experiment(source)), None)
    except Unparsable:
        return ""
    return "" if found is None else f"Line {found[0]} imports {found[1][:80]}"


def _unusual(node: ast.AST, modules: Mapping[str, str], *, is_held: bool) -> str:
    """Return what is unusual in a node, or ""; `is_held` says that an attribute of a name follows."""
    match node:
        case ast.Name(id=name) if name in modules:
            if not isinstance(node.ctx, ast.Load):
                return f"gives {name} another meaning"
            return "" if is_held else f"passes the module {name} on"
        case ast.Name(id=name):
            unusual = name in _BUILTINS or (name.startswith("__") and name not in _HARMLESS)
            return f"uses {name[:80]}" if unusual else ""
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return f"keeps something between calls ({', '.join(names)[:80]})"
        case ast.Import(names=names):
            parts = (item.name.rpartition(".") for item in names)
            wrong = [f"{module}.{name}" for module, _, name in parts if _denied(module, name)]
            return f"imports {wrong[0][:80]}" if wrong else ""
        case ast.ImportFrom(module=module, names=names):
            wrong = [item.name for item in names if _denied(module or "", item.name)]
            return f"imports {wrong[0][:80]} from {(module or '')[:80]}" if wrong else ""
        case ast.Attribute(attr=name, value=value):
            module = _module_of(value, modules)
            if module and not isinstance(node.ctx, ast.Load):
                return f"changes {module}.{name[:80]}"
            if name.startswith(_INSIDES) and name not in _HARMLESS:
                return f"looks into an object ({name[:80]})"
            return f"uses {module}.{name[:80]}" if _denied(module, name) else ""
    return ""


def _denied(module: str, name: str) -> bool:
    """Say whether an ordinary derivation does not use this name of a module."""
    if module != "numpy":
        return module.startswith("numpy.") and module != "numpy.linalg"
    is_module = isinstance(getattr(np, name, None), ModuleType)
    return name == "*" or name in _NUMPY or (is_module and name != "linalg")


def _module_of(node: ast.expr, modules: Mapping[str, str]) -> str:
    """Return the module that an expression is (`np.linalg`), or "" for an ordinary object."""
    if isinstance(node, ast.Name):
        return modules.get(node.id, "")
    inner = _module_of(node.value, modules) if isinstance(node, ast.Attribute) else ""
    return "numpy.linalg" if inner == "numpy" and getattr(node, "attr", "") == "linalg" else ""
