"""What differs between two experiments: the size of the edit in each part, and the areas that it touches.

The size is Zhang and Shasha's distance (SIAM Journal on Computing 18(6), 1989): the least number of syntax-tree nodes
to insert, delete and relabel. The packages that compute it (zss 1.2.0, apted 1.0.3) were last released in 2018 and
2017 and need seconds for two modules, because they compare whole trees. This module compares definitions of the same
name, and first removes equal statements at both ends of a block, so that it needs some milliseconds.
"""

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.syntax.allowed_names import words
from grader.syntax.names import Names, read_names
from grader.syntax.parse import normalized, parse_experiment
from grader.syntax.trees import bound_names, names_in
from harness.recipe import Area

AREAS: dict[str, Area] = {
    "load_data": "data",
    "prepare_batch": "pipeline",
    "build_model": "model",
    "compute_loss": "loss",
    "build_optimizer": "optimizer",
    "build_scheduler": "optimizer",
    "train_step": "loop",
    "evaluate": "evaluation",
    # The training loop reads these itself.
    "EPOCHS": "loop",
    "BATCH_SIZE": "loop",
}
# Two ordinary functions of 150 nodes take 0.1 s and half of these cells. An edit that needs more cells is not small;
# its distance is estimated from its labels.
MOST_CELLS = 400_000

# Fields that may be absent, or whose nodes look like those of a neighbouring field.
_NAMED_FIELDS = words(
    """
    orelse finalbody decorator_list posonlyargs kwonlyargs vararg kwarg defaults kw_defaults lower upper step values
    cause msg guard rest kwd_patterns format_spec optional_vars
    """
)


@dataclass(frozen=True)
class Tree:
    """A labelled, ordered tree; equal trees are equal programs."""

    label: tuple[str, ...]
    children: tuple["Tree", ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", 1 + sum(child.size for child in self.children))

    size: int = 0


Parts = Mapping[str, tuple[Tree, ...]]


def edit_sizes(before: Parts, after: Parts) -> dict[str, int]:
    """Return the size of the edit in each part that differs: a function, a class, a constant; "" binds no name.

    A statement that binds several names is the part "a, b".
    """
    budget = Budget(MOST_CELLS)
    sizes = {
        # Sorted, so that the budget goes to the same parts if the two are exchanged.
        name: distance(before.get(name, ()), after.get(name, ()), budget)
        for name in sorted({*before, *after})
    }
    return {name: size for name, size in sizes.items() if size}


def module_parts(tree: ast.Module) -> Parts:
    """Return the statements of a module without its imports, as labelled trees, by the names that they bind."""
    names = read_names(tree)
    parts: dict[str, list[Tree]] = {}
    for statement in normalized(tree).body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        parts.setdefault(", ".join(bound_names(statement)), []).append(labelled(statement, names))
    return {name: tuple(trees) for name, trees in parts.items()}


def labelled(node: ast.AST, names: Names, field: str = "") -> Tree:
    """Return a syntax tree as a `Tree`, whose labels hold everything that is not a node."""
    kind = (type(node).__name__, field if field in _NAMED_FIELDS else "")
    paths = names.paths_of(node)
    if paths:
        return Tree(("Path", kind[1], *sorted(paths)))
    scalars: list[str] = []
    children: list[Tree] = []
    for name, value in ast.iter_fields(node):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.expr_context):
                continue
            if isinstance(item, ast.operator | ast.unaryop | ast.boolop | ast.cmpop):
                scalars.append(type(item).__name__)
            elif isinstance(item, ast.AST):
                children.append(labelled(item, names, name))
            elif item is not None or isinstance(node, ast.Constant):
                scalars.append(f"{name} {type(item).__name__} {item!r}")
            elif name in ("keys", "kw_defaults"):  # `**mapping`, a keyword without a default
                children.append(Tree(("None", name)))
    return Tree((*kind, *scalars), tuple(children))


@dataclass
class Budget:
    """The number of cells of distance tables that may still be computed."""

    cells: int


def distance(old: Sequence[Tree], new: Sequence[Tree], budget: Budget) -> int:
    """Return the edit distance of two forests, or an estimate once the budget is spent."""
    if old == new:
        return 0
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    if len(old) == len(new) == 1 and old[0].label == new[0].label:
        return distance(old[0].children, new[0].children, budget)
    if not old or not new:
        return sum(tree.size for tree in (*old, *new))
    first, second = _postorder(Tree((), tuple(old))), _postorder(Tree((), tuple(new)))
    cells = first.cells() * second.cells()
    if cells > budget.cells:
        return _estimate(old, new)
    budget.cells -= cells
    return _zhang_shasha(first, second)


def _estimate(old: Sequence[Tree], new: Sequence[Tree]) -> int:
    """Estimate the size of an edit: count the labels that only one of the two forests has."""
    remaining: Counter[tuple[str, ...]] = Counter()
    for forest, sign in ((old, 1), (new, -1)):
        stack = list(forest)
        while stack:
            tree = stack.pop()
            remaining[tree.label] += sign
            stack += tree.children
    return max(1, sum(abs(count) for count in remaining.values()))


@dataclass(frozen=True)
class _Postorder:
    """The nodes of a tree in postorder: labels, each node's leftmost leaf, and the key roots."""

    labels: list[tuple[str, ...]]
    leftmost: list[int]
    key_roots: list[int]

    def cells(self) -> int:
        """Return the number of rows in all tables; multiplied by the other tree's number, it gives the cells."""
        return sum(root - self.leftmost[root] + 1 for root in self.key_roots)


def _postorder(tree: Tree) -> _Postorder:
    labels: list[tuple[str, ...]] = []
    leftmost: list[int] = []

    def visit(node: Tree) -> int:
        firsts = [visit(child) for child in node.children]
        labels.append(node.label)
        leftmost.append(firsts[0] if firsts else len(labels) - 1)
        return leftmost[-1]

    visit(tree)
    return _Postorder(labels, leftmost, sorted({leaf: index for index, leaf in enumerate(leftmost)}.values()))


def _zhang_shasha(first: _Postorder, second: _Postorder) -> int:
    distances = [[0] * len(second.labels) for _ in first.labels]
    for i in first.key_roots:
        for j in second.key_roots:
            _fill(first, second, i, j, distances)
    return distances[-1][-1]


def _fill(first: _Postorder, second: _Postorder, i: int, j: int, distances: list[list[int]]) -> None:
    """Compute the distances of all subtrees on the left paths of two key roots (`treedist` in the paper)."""
    left_i, left_j = first.leftmost[i], second.leftmost[j]
    width = j - left_j + 2
    forests = [list(range(width))]
    for x in range(left_i, i + 1):
        above, row = forests[-1], [forests[-1][0] + 1]
        leaf_x, label_x, to_x = first.leftmost[x], first.labels[x], distances[x]
        before_x = forests[leaf_x - left_i]
        for y in range(left_j, j + 1):
            column = y - left_j + 1
            leaf_y = second.leftmost[y]
            if leaf_x == left_i and leaf_y == left_j:
                best = above[column - 1] + (label_x != second.labels[y])
                best = min(best, above[column] + 1, row[column - 1] + 1)
                to_x[y] = best
            else:
                best = before_x[leaf_y - left_j] + to_x[y]
                best = min(best, above[column] + 1, row[column - 1] + 1)
            row.append(best)
        forests.append(row)


@dataclass(frozen=True)
class Changes:
    """The difference between two sources.

    `sizes` maps parts to the number of nodes inserted, deleted or relabelled; a part is the name of a function, a
    class or a constant, or "" for statements that bind no name. `areas` are those whose functions differ, or use
    something that differs.
    """

    sizes: dict[str, int]
    areas: frozenset[Area]

    @property
    def total(self) -> int:
        """The size of the whole edit."""
        return sum(self.sizes.values())


@dataclass(frozen=True)
class ComparedProgram:
    """An experiment, prepared to be compared with others.

    `binding` maps names to the indices of the statements that bind them; `read` has the module's names that each
    statement uses.
    """

    tree: ast.Module
    parts: Parts
    binding: dict[str, list[int]]
    read: list[set[str]]


def prepare(tree: ast.Module) -> ComparedProgram:
    """Prepare a parsed experiment to be compared with others."""
    binding: dict[str, list[int]] = {}
    for index, statement in enumerate(tree.body):
        for name in bound_names(statement):
            binding.setdefault(name, []).append(index)
    read = [set(names_in(statement)) & binding.keys() for statement in tree.body]
    return ComparedProgram(tree, module_parts(tree), binding, read)


def compare(old: str, new: str) -> Changes:
    """Return the difference between two experiments. Raises `grader.syntax.parse.Unparsable`."""
    return compare_programs(prepare(parse_experiment(old)), prepare(parse_experiment(new)))


def compare_programs(old: ComparedProgram, new: ComparedProgram) -> Changes:
    """Return the difference between two prepared experiments."""
    sizes = edit_sizes(old.parts, new.parts)
    changed = {name for part in sizes for name in part.split(", ")}
    areas = {area for name, area in AREAS.items() if changed & (_used_by(old, name) | _used_by(new, name))}
    return Changes(sizes, frozenset(areas))


def changed_areas(old: str, new: str) -> frozenset[Area]:
    """Return the areas in which two experiments differ. Raises `grader.syntax.parse.Unparsable`."""
    return compare(old, new).areas


def _used_by(program: ComparedProgram, start: str) -> set[str]:
    """Return a function of an area and the names that it uses, except functions of other areas."""
    reached, waiting, seen = {start}, [start], set()
    while waiting:
        for index in program.binding.get(waiting.pop(), ()):
            if index not in seen:
                seen.add(index)
                news = program.read[index] - reached - AREAS.keys()
                reached |= news
                waiting += news
    return reached
