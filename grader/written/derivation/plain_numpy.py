"""Is a derivation plain: could its code reach, or change, the program that calls it and counts its operations?

As `grader.syntax.plain_code` does for experiments, it lists what a file may do. What else it does may be harmless and
is a matter for a person: the counts of such a file are not believed, which costs nothing by itself.
"""

import ast
import builtins
from collections.abc import Iterator
from functools import lru_cache

from grader.syntax.parse import Unparsable, parse_experiment
from grader.syntax.plain_code import Suspicion
from grader.written.derivation.plain_names import ATTRIBUTES, BUILTINS, INSIDES, LOOPS, NUMPY, OF_NUMPY
from harness.written.derivation.imports import ALLOWED, foreign_imports


@lru_cache(maxsize=256)
def derivation_suspicions(source: str) -> tuple[Suspicion, ...]:
    """Return what in a source is not plain, in the order of lines; empty for an ordinary derivation."""
    try:
        tree = parse_experiment(source)
    except Unparsable as error:
        return (Suspicion(0, "unparsable", f"the file cannot be read ({error})"),)
    found = {
        Suspicion(line, code, f"line {line} {what}")
        for check in (_imports, _names, _attributes)
        for line, code, what in check(tree)
    }
    return tuple(sorted(found, key=lambda item: (item.line, item.code, item.message)))


def imported_others(source: str) -> str:
    """Return where a source imports what is not NumPy, as a clause, or ""."""
    try:
        found = next(foreign_imports(parse_experiment(source)), None)
    except Unparsable:
        return ""
    return "" if found is None else f"line {found[0]} imports {found[1][:80]}"


_Found = Iterator[tuple[int, str, str]]


def _imports(tree: ast.Module) -> _Found:
    for line, name in foreign_imports(tree):
        yield line, "import", f"imports {name[:80]}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("numpy."):
                    yield node.lineno, "import", f"imports {alias.name[:80]}"
        elif isinstance(node, ast.ImportFrom) and node.module == "numpy":
            for alias in node.names:
                if alias.name not in NUMPY:
                    yield node.lineno, "import", f"takes {alias.name[:80]} from NumPy"
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("numpy."):
            yield node.lineno, "import", f"imports from {str(node.module)[:80]}"


def _modules(tree: ast.Module) -> dict[str, str]:
    """Return the names by which modules are known, and which module each is."""
    return {
        alias.asname or alias.name.split(".")[0]: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }


def _names(tree: ast.Module) -> _Found:
    modules = _modules(tree)
    held = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Global | ast.Nonlocal):
            yield node.lineno, "state", f"keeps something from call to call ({', '.join(node.names)[:80]})"
        if not isinstance(node, ast.Name):
            continue
        if node.id in modules:
            if not isinstance(node.ctx, ast.Load):
                yield node.lineno, "module", f"gives {node.id} another meaning"
            elif id(node) not in held:
                yield node.lineno, "module", f"hands the module {node.id} on"
        elif _is_pythons_own(node) and node.id not in BUILTINS:
            yield node.lineno, "builtin", f"uses {node.id[:80]}"


def _is_pythons_own(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load) and (node.id.startswith("__") or hasattr(builtins, node.id))


def _attributes(tree: ast.Module) -> _Found:
    modules = _modules(tree)
    own = _own_attributes(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        name, module = node.attr, _module_of(node.value, modules)
        if module is not None and not isinstance(node.ctx, ast.Load):
            yield node.lineno, "patch", f"changes {module}.{name[:80]}"
        elif name.startswith(INSIDES):
            yield node.lineno, "insides", f"looks into an object ({name[:80]})"
        elif module == "numpy" and name in LOOPS:
            yield node.lineno, "loop", f"calls np.{name}, a loop that is not counted"
        elif module == "numpy":
            if name not in NUMPY:
                yield node.lineno, "numpy", f"uses np.{name[:80]}"
        elif module is not None and module.startswith("numpy."):
            if name not in OF_NUMPY:
                yield node.lineno, "numpy", f"uses {module}.{name[:80]}"
        elif module is None and name not in ATTRIBUTES | OF_NUMPY | own:
            yield node.lineno, "attribute", f"uses .{name[:80]}"


def _module_of(node: ast.expr, modules: dict[str, str]) -> str | None:
    """Return what module an expression is, or a part of one (`np.linalg`); None for an ordinary object."""
    if isinstance(node, ast.Name):
        name = modules.get(node.id)
        return name if name is None or name.split(".")[0] in ALLOWED else None
    if isinstance(node, ast.Attribute) and (module := _module_of(node.value, modules)) is not None:
        return f"{module}.{node.attr}"
    return None


def _own_attributes(tree: ast.Module) -> frozenset[str]:
    """Return the attributes that a file makes itself: by storing them, or as fields and methods of its classes."""
    found = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    for node in ast.walk(tree):
        for item in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(item, ast.FunctionDef):
                found.add(item.name)
            elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                found.add(item.target.id)
    return frozenset(found)
