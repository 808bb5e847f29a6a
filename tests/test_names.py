"""Each name of a class or a type has one meaning, and the name of a function is a verb or a noun."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Names that two modules may define, each with the reason.
TWICE: dict[str, str] = {}
# Endings of participles. The listed words are nouns or verbs with these endings.
ENDINGS = ("ed", "ing")
NO_PARTICIPLES = {"seed", "feed", "embed", "need", "string", "ring", "bring"}


def trees() -> Iterator[tuple[str, ast.Module]]:
    """Yield each module of harness and grader, except experiments, whose names belong to the student."""
    for top in ("harness", "grader"):
        for path in sorted((ROOT / top).rglob("*.py")):
            if "experiments" not in path.parts:
                yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def defined_types(tree: ast.Module) -> Iterator[str]:
    """Yield the names of classes and type aliases, without a leading underscore."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name.lstrip("_")
        elif isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name):
            name = target.id.lstrip("_")
            if name[:1].isupper() and not name.isupper():
                yield name


def test_no_name_of_a_type_has_two_meanings() -> None:
    places = defaultdict(list)
    for path, tree in trees():
        for name in defined_types(tree):
            places[name].append(path)
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert twice.keys() == TWICE.keys(), twice
    assert len(TWICE) <= 3


def is_predicate(node: ast.FunctionDef) -> bool:
    """Return whether a function returns yes or no, or is a property. Then its name may be a participle."""
    marks = [ast.unparse(mark) for mark in node.decorator_list]
    return any("property" in mark for mark in marks) or (
        node.returns is not None and ast.unparse(node.returns) == "bool"
    )


def test_no_function_is_named_by_a_bare_participle() -> None:
    bare = [
        f"{path}: {node.name}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and "_" not in (word := node.name.strip("_"))
        and word.endswith(ENDINGS)
        and word not in NO_PARTICIPLES
        and not is_predicate(node)
    ]
    assert bare == []
