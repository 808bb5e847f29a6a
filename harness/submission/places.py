"""Find the functions, classes and methods of an experiment, which a report may name as the place of a fault."""

import ast
import re
from collections.abc import Mapping
from functools import lru_cache


@lru_cache(maxsize=64)  # the grader calls this for each report, but with only a few different programs
def places_of(source: str) -> Mapping[str, str]:
    """Return {name: name of the top-level function or class that contains it} for each function, class and method.

    A method has the name `Network.forward` and, if no other class has a method `forward`, also the name `forward`. The
    result is empty for a text that is not Python.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    outers = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    found = {outer.name: outer.name for outer in outers}
    methods: dict[str, list[str]] = {}
    for outer in outers:
        for inner in outer.body:
            if isinstance(outer, ast.ClassDef) and isinstance(inner, ast.FunctionDef):
                found[f"{outer.name}.{inner.name}"] = outer.name
                methods.setdefault(inner.name, []).append(outer.name)
    return {name: owners[0] for name, owners in methods.items() if len(owners) == 1} | found


def place_named(where: str, places: Mapping[str, str]) -> str:
    """Return the function, class or method that a text names, or the text itself if it does not name exactly one.

    `load_data()`, `experiment.py, load_data`, `line 12 in load_data` and `model.py:load_data` mean `load_data`.
    """
    words = [word.strip(".") for word in re.findall(r"[\w.]+", where)]
    meant = {places[word] for word in words if word in places}
    return meant.pop() if len(meant) == 1 else where.strip("`() ")
