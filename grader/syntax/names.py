"""Find out what the names of an experiment stand for: dotted paths of imported modules and their members."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from grader.syntax.trees import bindings_of

# The path of a name that is too tangled to follow; no module is called this.
UNCLEAR = "?"
# Bounds for aliases of aliases in hostile text; ordinary code has none.
_ROUNDS, _MOST_PATHS, _MOST_DOTS = 12, 8, 12

Found = Iterator[tuple[int, str, str]]  # line, code, clause of a suspicion


@dataclass(frozen=True)
class Names:
    """The dotted paths, such as `torch.nn.functional`, that each name may stand for anywhere in a file."""

    paths: dict[str, frozenset[str]]

    def paths_of(self, node: ast.AST) -> frozenset[str]:
        """Return the paths that a name or a chain of attributes may stand for; none if it is not imported."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return frozenset()
        return frozenset(".".join([path, *reversed(parts)]) for path in self.paths.get(node.id, ()))


def imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield each name that an import binds with its path; a relative import begins with dots, `*` stays."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, f"{'.' * node.level}{node.module or ''}.{alias.name}"
        elif alias.asname:
            yield alias.asname, alias.name
        else:
            first = alias.name.split(".")[0]
            yield first, first


def read_names(tree: ast.Module) -> Names:
    """Return the paths of all imports in a file, under every name that a plain assignment (`g = F`) gives them.

    An import or an assignment anywhere counts for the whole file: a name that is used for two things has both paths,
    and a name that is too tangled to follow has `UNCLEAR`.
    """
    found: dict[str, set[str]] = {}
    assignments: list[tuple[str, ast.expr]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name, path in imported(node):
                known = found.setdefault(name, set())
                known.add(path if len(known) < _MOST_PATHS else UNCLEAR)
        elif isinstance(node, ast.Assign):
            assignments += [(t.id, node.value) for t in node.targets if isinstance(t, ast.Name)]
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name):
            assignments += [(node.target.id, node.value)] if node.value else []
    chains = [pair for pair in assignments if isinstance(pair[1], ast.Name | ast.Attribute)]
    for _ in range(_ROUNDS):  # an alias of an alias takes another round
        if not _follow(chains, found):
            return Names({name: frozenset(paths) for name, paths in found.items()})
    for name, _ in chains:
        found.setdefault(name, set()).add(UNCLEAR)
    return Names({name: frozenset(paths) for name, paths in found.items()})


def _follow(chains: list[tuple[str, ast.expr]], found: dict[str, set[str]]) -> bool:
    """Copy paths along assignments; return whether any name got a new path."""
    names = Names({name: frozenset(paths) for name, paths in found.items()})
    news = False
    for name, value in chains:
        paths = names.paths_of(value)
        known = found.get(name, set())
        if paths <= known or UNCLEAR in known:
            continue
        too_many = len(known | paths) > _MOST_PATHS or any(path.count(".") > _MOST_DOTS for path in paths)
        found[name] = known | ({UNCLEAR} if too_many else paths)
        news = True
    return news


@dataclass(frozen=True)
class Program:
    """A parsed experiment for the plain-code checks; `nodes` in the order of `ast.walk`, which takes long."""

    nodes: tuple[ast.AST, ...]
    names: Names


def read_program(tree: ast.Module) -> Program:
    """Return what every check of a tree needs."""
    return Program(tuple(ast.walk(tree)), read_names(tree))


@dataclass(frozen=True)
class SurePaths:
    """Paths of names that are certain: the name is imported or set once, and bound nowhere else."""

    names: Names
    bound: Mapping[str, int]

    def path_of(self, node: ast.AST) -> str:
        """Return the one path that a name or a chain of attributes stands for, or ""."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        paths = self.names.paths_of(node) if isinstance(root, ast.Name) else frozenset()
        if len(paths) != 1 or not isinstance(root, ast.Name) or self.bound.get(root.id, 0) != 1:
            return ""
        return next(iter(paths))


def read_sure_paths(tree: ast.Module) -> SurePaths:
    """Return the certain paths of a file. Several imports of one name count as one binding."""
    bound: Counter[str] = Counter()
    imports: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.update(bindings_of(node))
        else:
            bound.update(bindings_of(node))
    bound.update(imports)
    return SurePaths(read_names(tree), bound)
