"""What an edit changes: the functions and constants that differ, and by how many syntax-tree nodes.

The size of an edit is the number of nodes that only one of the two programs has, whichever has more of them. So the
order of statements and of arguments does not count. Names of variables and constants, comments, docstrings,
annotations, imports, prints, asserts, values that nothing reads and further metrics do not count either.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from grader.syntax.program import Program, blocks, does_nothing, imported_paths, parse_experiment, path_of
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
# The trainer ignores all other metrics.
_METRICS = ("val_loss", "val_accuracy")
# Calls that change something besides their result, as all whose names end in _ do.
_ACTING = ("append", "backward", "clear", "eval", "step", "train", "update", "zero_grad")
# Bounds for hostile text: values that only unread values read, and constants that stand in many places.
_ROUNDS, _MOST_IN_LITERAL = 8, 9
_LITERAL = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)


@dataclass(frozen=True)
class _Part:
    """The statements that bind one name at the top of a file; "" for those that bind none.

    code: their syntax trees. nodes: how often each kind of node occurs in what matters. reads: the names read there.
    literal: a constant, whose value counts where it is read.
    """

    code: str
    nodes: Counter[str]
    reads: frozenset[str]
    literal: bool


def edit_sizes(before: str, after: str) -> dict[str, int]:
    """Return the size of an edit in each function and constant that it changes. Raises `Unparsable`."""
    old, new = _parts(before), _parts(after)
    read = {name for part in new.values() for name in part.reads} | AREAS.keys() | {""}
    counted = old.keys() | {name for name, part in new.items() if name in read and not part.literal}
    sizes = {}
    for name in counted:
        first, second = (parts[name].nodes if name in parts else Counter() for parts in (old, new))
        sizes[name] = max((first - second).total(), (second - first).total())
    return {name: size for name, size in sorted(sizes.items()) if size}


def names_defined(source: str) -> frozenset[str]:
    """Return the names of the functions and constants of an experiment. Raises `Unparsable`."""
    return frozenset(_parts(source)) - {""}


def functions_changed(before: str, after: str) -> frozenset[str]:
    """Return the functions and constants that an edit changes, with those that use a constant or a helper of these.

    Raises `Unparsable`.
    """
    old, new = (
        {(name, part.code) for name, part in _parts(source).items() if name} for source in (before, after)
    )
    changed = {name for name, _ in old ^ new}
    shared = changed - AREAS.keys()
    return frozenset(changed | {name for name, part in _parts(after).items() if name and part.reads & shared})


def changed_areas(before: str, after: str) -> frozenset[Area]:
    """Return the areas in which two experiments differ. Raises `Unparsable`."""
    return frozenset(AREAS[name] for name in functions_changed(before, after) & AREAS.keys())


def _parts(source: str) -> dict[str, _Part]:
    return _parts_of(Program.of(source))


@lru_cache(maxsize=256)
def _parts_of(program: Program) -> dict[str, _Part]:
    tree = parse_experiment(program.source)
    paths = imported_paths(tree)
    grouped: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        if not does_nothing(statement) and not isinstance(statement, ast.Import | ast.ImportFrom):
            grouped.setdefault(_name(statement), []).append(statement)
    literals = {name: value for name, block in grouped.items() if (value := _literal(block))}
    parts = {}
    for name, statements in grouped.items():
        block = ast.Module(statements, [])
        _drop_annotations(block)
        code = ast.dump(block)
        _drop_other_metrics(block)
        for _ in range(_ROUNDS):
            if not _drop_idle(block):
                break
        nodes: Counter[str] = Counter()
        for statement in block.body:
            local = {item for item in _bound(statement) if isinstance(statement, ast.FunctionDef)}
            values = {item: value for item, value in literals.items() if item not in local}
            nodes.update(_labels(statement, paths, local, values))
        parts[name] = _Part(code, nodes, frozenset(_read(block)), name in literals)
    return parts


def _literal(statements: list[ast.stmt]) -> ast.expr | None:
    """Return the value of a constant that is set once and is a number or short arithmetic."""
    match statements:
        case [ast.Assign(targets=[ast.Name()], value=value) | ast.AnnAssign(target=ast.Name(), value=value)]:
            nodes = [] if value is None else list(ast.walk(value))
            if len(nodes) <= _MOST_IN_LITERAL and all(isinstance(node, _LITERAL) for node in nodes):
                return value
    return None


def _name(statement: ast.stmt) -> str:
    """Return the name of a definition or of a simple assignment, or ""."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case (
            ast.Assign(targets=[ast.Name(id=name)])
            | ast.AnnAssign(target=ast.Name(id=name))
            | ast.AugAssign(target=ast.Name(id=name))
        ):
            return name
    return ""


def _bound(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id


def _read(tree: ast.AST) -> set[str]:
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id for node in names if not isinstance(node.ctx, ast.Store)}


def _drop_annotations(tree: ast.AST) -> None:
    """Remove docstrings and annotations."""
    for node in ast.walk(tree):
        for field in ("returns", "annotation"):
            if hasattr(node, field) and not isinstance(node, ast.AnnAssign):
                setattr(node, field, None)
        for block in blocks(node):
            block[:] = [
                ast.Assign([item.target], item.value or ast.Constant(None))
                if isinstance(item, ast.AnnAssign)
                else item
                for item in block
                if not does_nothing(item)
            ]


def _drop_other_metrics(tree: ast.AST) -> None:
    for node in ast.walk(tree):
        keys = [getattr(key, "value", None) for key in node.keys] if isinstance(node, ast.Dict) else []
        if isinstance(node, ast.Dict) and _METRICS[0] in keys:
            kept = [index for index, key in enumerate(keys) if key in _METRICS]
            node.keys, node.values = [node.keys[i] for i in kept], [node.values[i] for i in kept]


def _drop_idle(tree: ast.Module) -> bool:
    """Remove statements in functions that change nothing; return whether there were any."""
    found = False
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            read = _read(function)
            for node in ast.walk(function):
                for block in blocks(node):
                    kept = [item for item in block if not _is_idle(item, read)]
                    found |= len(kept) < len(block)
                    block[:] = kept
    return found


def _is_idle(statement: ast.stmt, read: set[str]) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
            return not _acts(statement)
        case ast.Assert() | ast.Pass() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name)):
            return name not in read and not _acts(statement)
        case ast.If() | ast.For() | ast.With():
            return not any(blocks(statement))
    return False


def _acts(statement: ast.stmt) -> bool:
    called = [getattr(node.func, "attr", "") for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return any(name.endswith("_") or name in _ACTING for name in called)


def _labels(
    node: ast.AST, paths: Mapping[str, str], local: set[str], literals: Mapping[str, ast.expr]
) -> Iterator[str]:
    """Yield a label for each node: its kind and everything in it that is not a node, except names of variables."""
    if path := path_of(node, paths):
        yield path
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        node = literals.get(node.id, node)
    scalars: list[object] = []
    for name, value in ast.iter_fields(node):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.operator | ast.unaryop | ast.boolop | ast.cmpop):
                scalars.append(type(item).__name__)
            elif isinstance(item, ast.AST) and not isinstance(item, ast.expr_context):
                yield from _labels(item, paths, local, literals)
            elif not isinstance(item, ast.AST) and name not in ("kind", "type_comment") and item not in local:
                scalars.append(item)
    yield f"{type(node).__name__} {scalars!r}"
