"""Measure an edit: the functions and constants that it changes, and the number of syntax-tree nodes that it changes.

The size of an edit is the number of nodes that are only in the old program, or the number of nodes that are only in the
new program, whichever is larger. So the order of statements and arguments does not count. If a helper function exists
only in one program, its nodes belong to the function that calls it. If code moves to another function, its nodes count
once, in the new function. Only code that affects the training counts. Such code contributes to a returned value,
changes an object that exists after the function returns, or decides whether an assert or a raise ends the function.
Prints, logging, timers, counters, additional metrics, names of variables, comments, docstrings, annotations, imports,
and stops at a non-finite number do not count.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from grader.syntax.program import does_nothing, imported_paths, parse_experiment, path_of, root_of
from harness.recipes.form import is_script
from harness.recipes.recipe import Area

AREAS: dict[str, Area] = {
    "load_data": "data",
    "prepare_batch": "pipeline",
    "build_model": "model",
    "compute_loss": "loss",
    "build_optimizer": "optimizer",
    "build_scheduler": "optimizer",
    "train_step": "loop",
    "evaluate": "evaluation",
    # The training loop reads these constants.
    "EPOCHS": "loop",
    "BATCH_SIZE": "loop",
}
# The metrics that the harness takes from `evaluate`; it ignores all others. A script logs its own.
_METRICS = ("val_loss", "val_accuracy")
# Functions and methods with a side effect. If a name ends in _, such as `add_`, the method also has a side effect.
_ACTING = frozenset({
    "add_module", "add_param_group", "append", "apply", "backward", "clear", "eval", "extend", "load_state_dict",
    "manual_seed", "register_buffer", "register_module", "register_parameter", "reset_parameters", "set_rng_state",
    "step", "train", "update", "zero_grad",
})  # fmt: skip
# Methods that change the content of their container, and functions that make a container.
_FILLING = frozenset({"add", "append", "clear", "extend", "insert", "pop", "setdefault", "update"})
_CONTAINERS = frozenset({"Counter", "defaultdict", "deque", "dict", "empty", "list", "ones", "set", "tensor", "zeros"})
# The largest number of nodes in the value of a constant that counts where it is read. Without a limit, a hostile source
# could use a large constant in many places, and measuring would take too long.
_MOST_IN_LITERAL = 9
# If code stops the program at non-finite numbers, this does not count. If it stops at other values, this counts,
# because it could prevent a check.
_FINITE = frozenset({"isfinite", "isinf", "isnan"})
_LITERAL = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)


@dataclass(frozen=True)
class _Part:
    """The statements at the top level of a file that define one name, or "" for statements that define no name.

    code: the syntax trees of the statements.
    nodes: {kind of node: count} for the nodes that affect the training.
    reads: the names that the statements read.
    literal: whether the name is a constant. The value of a constant counts in each function that reads it.
    """

    code: str
    nodes: Counter[str]
    reads: frozenset[str]
    literal: bool


def edit_sizes(before: str, after: str) -> dict[str, int]:
    """Return {name: size of the edit} for each function and constant that an edit changes. Raises `Unparsable`."""
    old, new = _parts(before), _parts(after)
    first, second = _with_helpers(old, new), _with_helpers(new, old)
    names = first.keys() | second.keys()
    lost = {name: first.get(name, Counter()) - second.get(name, Counter()) for name in names}
    gained = {name: second.get(name, Counter()) - first.get(name, Counter()) for name in names}
    for name in sorted(names & new.keys()):
        for helper in sorted(new[name].reads & first.keys() - AREAS.keys() - {name}):
            # If code moves into a helper function, it still belongs to the function that calls the helper.
            if not lost[helper] and gained[helper] <= lost[name]:
                lost[name] -= gained[helper]
                gained[helper] = Counter()
    sizes, arrived = {}, sum(gained.values(), Counter[str]())
    for name in sorted(names):
        moved = lost[name] & (arrived - gained[name])
        arrived -= moved
        if lost[name] or gained[name]:  # at least 1, because a function is also changed if it only loses code
            sizes[name] = max((lost[name] - moved).total(), gained[name].total(), 1)
    return sizes


def _with_helpers(parts: Mapping[str, _Part], other: Mapping[str, _Part]) -> dict[str, Counter[str]]:
    """Return {part: counts of its nodes}, including the helpers and constants that only this program has.

    A helper that only this program has belongs to the part that calls it. If several parts call the helper, it belongs
    to the part that lost most of the helper's nodes. A helper that is never called does not count.
    """
    helpers = {name for name in parts.keys() - other.keys() - AREAS.keys() if name}
    nodes = {name: Counter(part.nodes) for name, part in parts.items() if name not in helpers}
    lost = {name: other[name].nodes - parts[name].nodes if name in other else Counter[str]() for name in nodes}
    callers: dict[str, list[str]] = {}
    for name in sorted(parts):
        for helper in parts[name].reads & helpers:
            callers.setdefault(helper, []).append(name)
    for helper in sorted(helpers):
        if parts[helper].literal:  # the value of a constant counts where code reads it
            continue
        found, waiting = {helper}, [helper]
        while waiting:
            using = [name for name in callers.get(waiting.pop(), ()) if name not in found]
            found.update(using)
            waiting += [name for name in using if name in helpers]
        own = sorted(found - helpers, key=lambda name: -(lost[name] & parts[helper].nodes).total())
        if own:
            nodes[own[0]] += parts[helper].nodes
    return nodes


def names_defined(source: str) -> frozenset[str]:
    """Return the names of the functions and constants of an experiment. Raises `Unparsable`."""
    return frozenset(_parts(source)) - {""}


def functions_changed(before: str, after: str) -> frozenset[str]:
    """Return the functions and constants that an edit changes directly, or by changing a constant or helper they use.

    Raises `Unparsable`.
    """
    old, new = ({(name, part.code) for name, part in _parts(source).items() if name} for source in (before, after))
    changed = {name for name, _ in old ^ new}
    parts = _parts(after)
    # Repeat until no name is added: a network may be a class that uses other classes, and these may read constants.
    while using := {name for name, part in parts.items() if name and part.reads & (changed - AREAS.keys())} - changed:
        changed |= using
    return frozenset(changed)


def changed_areas(before: str, after: str) -> frozenset[Area]:
    """Return the areas in which two experiments differ; for scripts, only "model" is told. Raises `Unparsable`."""
    changed = functions_changed(before, after)
    if not is_script(after):
        return frozenset(AREAS[name] for name in changed & AREAS.keys())
    return frozenset[Area]({"model"}) if changed & (_networks(before) | _networks(after)) else frozenset()


def _networks(source: str) -> set[str]:
    """Return the names of the classes at the top level that derive from a class of `torch.nn`."""
    tree = parse_experiment(source)
    paths, found = imported_paths(tree), set[str]()
    for item in tree.body:
        bases = item.bases if isinstance(item, ast.ClassDef) else []
        if isinstance(item, ast.ClassDef) and any(
            path_of(base, paths).startswith("torch.nn.") or root_of(base) in found for base in bases
        ):
            found.add(item.name)
    return found


@lru_cache(maxsize=256)
def _parts(source: str) -> dict[str, _Part]:
    tree: ast.AST = parse_experiment(source)
    if not is_script(source):
        tree = _WithoutOwnMetrics().visit(tree)
    assert isinstance(tree, ast.Module)
    paths = imported_paths(tree)
    grouped: dict[str, list[ast.stmt]] = {}
    script = is_script(source)
    for statement in tree.body:
        if not does_nothing(statement) and not _is_import(statement) and (script or not _is_main(statement)):
            grouped.setdefault(_name(statement), []).append(statement)
    literals = {name: value for name, block in grouped.items() if (value := _literal(block))}
    containers = {name for name, block in grouped.items() if name and all(map(_makes_container, block))}
    acting = _acting_helpers([item for item in ast.walk(tree) if isinstance(item, ast.FunctionDef)], containers)
    parts = {}
    for name, statements in grouped.items():
        kept = [item for statement in statements for item in _needed_parts(statement, containers, acting)]
        if not kept:
            continue
        block = ast.Module(kept, [])
        nodes: Counter[str] = Counter()
        for statement in kept:
            nodes.update(_labels(statement, paths, set(), literals))
        parts[name] = _Part(ast.dump(block), nodes, frozenset(_read(block)), name in literals)
    return parts


def _literal(statements: list[ast.stmt]) -> ast.expr | None:
    """Return the value of a constant that is set only once, to a number or short arithmetic; otherwise return None."""
    match statements:
        case [ast.Assign(targets=[ast.Name()], value=value) | ast.AnnAssign(target=ast.Name(), value=value)]:
            nodes = [] if value is None else list(ast.walk(value))
            if len(nodes) <= _MOST_IN_LITERAL and all(isinstance(node, _LITERAL) for node in nodes):
                return value
    return None


def _name(statement: ast.stmt) -> str:
    """Return the name that a definition or a simple assignment defines, or ""."""
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


def _bound_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id


def _read(tree: ast.AST) -> set[str]:
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id for node in names if not isinstance(node.ctx, ast.Store)}


def _is_main(statement: ast.stmt) -> bool:
    """Return whether a statement is the block of `if __name__ == "__main__"`, which runs in scripts only."""
    return isinstance(statement, ast.If) and "__name__" in _read(statement.test)


def _is_import(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _makes_container(statement: ast.stmt) -> bool:
    """Return whether a statement sets a name to a new container or to a plain value."""
    value = getattr(statement, "value", None)
    if isinstance(value, ast.Call):
        return _called_name(value) in _CONTAINERS
    return isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp | ast.Constant)


def _acting_helpers(functions: Sequence[ast.FunctionDef], containers: set[str]) -> set[str]:
    """Return the functions and methods of a file that have a side effect.

    A function that calls a function with a side effect has a side effect, too. So a slice (the code that affects the
    training) is computed once for each function, and it records which names the function calls.
    """
    acting: list[str] = []
    callers: dict[str, list[str]] = {}
    for item in functions:
        asked = _RecordedLookups()
        if any(not isinstance(one, ast.Return) for one in _slice_of(item, containers, asked).block(item.body)):
            acting.append(item.name)
        for name in asked.names:
            callers.setdefault(name, []).append(item.name)
    found: set[str] = set()
    while acting:
        if (name := acting.pop()) not in found:
            found.add(name)
            acting += callers.get(name, [])
    return found


class _RecordedLookups(set[str]):
    """An empty set that records the names that were looked up in it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.names.add(str(name))
        return False


def _slice_of(function: ast.FunctionDef, containers: set[str], acting: set[str]) -> "_Slice":
    given = {item.arg for item in ast.walk(function) if isinstance(item, ast.arg)}
    made = {
        item.targets[0].id
        for item in ast.walk(function)
        if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name) and _makes_container(item)
    }
    return _Slice((made | containers) - given, acting)


def _needed_parts(statement: ast.stmt, containers: set[str], acting: set[str]) -> list[ast.stmt]:
    """Return the parts of a statement at the top of a file that affect the training."""
    if isinstance(statement, ast.ClassDef):
        fields = {**dict(ast.iter_fields(statement)), "body": []}
        for item in statement.body:
            fields["body"] += [] if does_nothing(item) else _needed_parts(item, containers, acting)
        return [ast.ClassDef(**fields)]
    if not isinstance(statement, ast.FunctionDef):
        return _Slice(containers, acting, {*_bound_names(statement)}).statement(statement)
    kept = _slice_of(statement, containers, acting)
    while True:
        body = kept.block(statement.body)
        read = _read(ast.Module(body, []))
        if read <= kept.read:
            fields = {**dict(ast.iter_fields(statement)), "body": body, "returns": None}
            fields["args"] = _without_annotations(statement.args)
            return [ast.FunctionDef(**fields)]
        kept.read |= read


def _without_annotations(arguments: ast.arguments) -> ast.arguments:
    fields = dict(ast.iter_fields(arguments))
    for name in ("posonlyargs", "args", "kwonlyargs"):
        fields[name] = [ast.arg(item.arg) for item in fields[name]]
    return ast.arguments(**fields)


class _Slice:
    """The statements of a function that affect the training.

    read: the names that are read by the statements found so far.
    containers: names of lists and dictionaries that the program makes. Filling a container matters only if it is read.
    """

    def __init__(self, containers: set[str], acting: set[str], read: set[str] | None = None) -> None:
        self.read = read or set()
        self._containers = containers
        self._acting = acting

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return the parts of these statements that affect the training."""
        return [kept for statement in statements for kept in self.statement(statement)]

    def statement(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the parts of one statement that affect the training."""
        match statement:
            case ast.Expr(value=value):
                return [statement] if self._acts(value) else []
            case ast.AnnAssign(target=target, value=value):
                return self.statement(ast.Assign([target], value or ast.Constant(None)))
            case ast.Assign(targets=targets, value=value):
                wanted = any(map(self._is_wanted, targets)) or self._acts(value)
                return [ast.Assign(targets, value)] if wanted else []
            case ast.AugAssign(target=target, value=value):
                return [statement] if self._is_wanted(target) or self._acts(value) else []
            case ast.Return(value=value):
                return [ast.Return(value)]
            case ast.FunctionDef(name=name):
                return [statement] if name in self.read else []
            case ast.Try(body=body, handlers=handlers, finalbody=final):
                return [
                    *self.block(body),
                    *(one for item in handlers for one in self.block(item.body)),
                    *self.block(final),
                ]
            case ast.Assert(test=test):
                return [] if _looks_for_non_finite(test) else [ast.Assert(test)]
            case ast.Raise(exc=error):  # a `raise` without an exception only passes the current exception on
                return [ast.Raise()] if error else []
            case ast.If(test=test, body=[ast.Raise()], orelse=[]) if _looks_for_non_finite(test):
                return []
            case ast.If() | ast.For() | ast.While() | ast.With():
                fields = dict(ast.iter_fields(statement))
                fields.update((name, self.block(fields[name])) for name in ("body", "orelse") if name in fields)
                return [type(statement)(**fields)] if fields["body"] or fields.get("orelse") else []
            case ast.Pass() | ast.Global() | ast.Nonlocal():
                return []
        return [] if _is_import(statement) else [statement]

    def _is_wanted(self, target: ast.expr) -> bool:
        """Return whether an assignment to this target affects the training."""
        if isinstance(target, ast.Tuple | ast.List):
            return any(map(self._is_wanted, target.elts))
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            key = target.slice.value
            if isinstance(key, str) and root_of(target) in self._containers and key not in _METRICS:
                return False
        root = root_of(target)
        return root in self.read or not (isinstance(target, ast.Name) or root in self._containers)

    def _acts(self, value: ast.expr) -> bool:
        """Return whether evaluating this expression has a side effect that affects the training."""
        return any(self._call_acts(node) for node in ast.walk(value) if isinstance(node, ast.Call))

    def _call_acts(self, call: ast.Call) -> bool:
        name, root = _called_name(call), root_of(call.func)
        if isinstance(call.func, ast.Attribute) and root in self._containers and name in _FILLING:
            return root in self.read
        return (
            name in self._acting
            or name in ("setattr", "delattr")
            or (isinstance(call.func, ast.Attribute) and (name.endswith("_") or name in _ACTING))
        )


def _looks_for_non_finite(test: ast.expr) -> bool:
    """Return whether a condition is a constant, or depends only on whether numbers are finite."""
    match test:
        case ast.Constant():
            return True
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return _looks_for_non_finite(part)
        case ast.BoolOp(values=parts):
            return all(map(_looks_for_non_finite, parts))
        case ast.Call(func=ast.Attribute(value=owner, attr="all" | "any" | "item"), args=[]):
            return _looks_for_non_finite(owner)
        case ast.Call():
            return _called_name(test) in _FINITE
    return False


class _WithoutOwnMetrics(ast.NodeTransformer):
    """Removes those metrics from dictionaries of metrics that the harness ignores."""

    def visit_Dict(self, node: ast.Dict) -> ast.Dict:
        self.generic_visit(node)
        keys = [getattr(key, "value", None) for key in node.keys]
        if _METRICS[0] not in keys:
            return node
        kept = [index for index, key in enumerate(keys) if key in _METRICS]
        return ast.copy_location(ast.Dict([node.keys[i] for i in kept], [node.values[i] for i in kept]), node)


def _called_name(call: ast.Call) -> str:
    """Return the last part of the dotted name that is called, or "" if the called object has no name."""
    return getattr(call.func, "attr", "") or getattr(call.func, "id", "")


def _labels(
    node: ast.AST, paths: Mapping[str, str], local: set[str], literals: Mapping[str, ast.expr]
) -> Iterator[str]:
    """Yield a label for each node, which consists of its kind and the fields that are not nodes.

    Variables, and assignments to them, get no label. So the size of an edit that only gives a value a name is 0.
    """
    if path := path_of(node, paths):
        yield path
        return
    if isinstance(node, ast.FunctionDef):
        local = local | {*_bound_names(node)}
        literals = {name: value for name, value in literals.items() if name not in local}
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        node = literals.get(node.id, node)
    if isinstance(node, ast.Name) and node.id in local:
        return
    scalars: list[object] = []
    for name, value in ast.iter_fields(node):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.operator | ast.unaryop | ast.boolop | ast.cmpop):
                scalars.append(type(item).__name__)
            elif isinstance(item, ast.AST) and not isinstance(item, ast.expr_context):
                yield from _labels(item, paths, local, literals)
            elif isinstance(item, ast.AST) or name in ("kind", "type_comment"):
                continue
            elif isinstance(node, ast.Constant) or item not in local:
                scalars.append(item)
    if not isinstance(node, ast.Assign):
        yield f"{type(node).__name__} {scalars!r}"
