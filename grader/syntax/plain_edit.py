"""Decide whether an edit is plain, which means that the inserted code can only train and cannot forge the records.

Student code runs in the same process as the recorder, so it could change what is recorded about the run. The broken
experiment comes from the suite, so only the statements that the student *inserted* must be checked. An inserted
statement is plain if each node in its syntax tree has a row in the table of syntax (`grammar.py`) and passes the check
of this row. A plain statement may use names in the file, listed library functions, and attributes that are allowed for
the kind of object (`kinds.py`). It may store values only where they do not outlive the call. All code that Python
evaluates is checked, including annotations, defaults, decorators, targets and conditions. Code without a row is not
plain. In an experiment with functions, the block of `if __name__ == "__main__"` never runs, so it is not checked; in a
script, it is checked.

An edit that is not plain loses no points only for this. If its run has the same bytes as the run of the reference fix,
it trains like the reference fix. Otherwise, the instructor decides. Plain code can still recognize a check by its
inputs and behave differently, but a student who can write such code knows the cause.
"""

import ast
import string
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from grader.syntax import grammar, shapes
from grader.syntax.allowed import (
    BARE,
    CHANGING,
    COMPUTING,
    CONSTANT,
    GROUP_KEYS,
    HARMLESS_ATTRIBUTES,
    HARMLESS_METHODS,
    KINDS,
    MODULE,
    NUMBERS,
    OF_GROUPS,
    OF_TRAINING,
    OF_TYPES,
    PROTOCOL,
    READS_GROUPS,
    REPORTS,
    STORABLE,
    TAKES_SETTINGS,
    WEIGHTS,
    ObjectKind,
)
from grader.syntax.grammar import is_listed
from grader.syntax.kinds import Kinds, base, holds, is_storable, item_of, names_bound_by
from grader.syntax.program import Unparsable, blocks, does_nothing, imported_paths, parse_experiment, path_of
from harness.recipes.form import has_functions, is_script

# A plain edit inserts at most this number of syntax-tree nodes. Among 90 honest fixes in different styles, half insert
# at most 28 nodes. The largest fix, which adds a metric, inserts 88. The largest experiment of the suite has 1328
# nodes.
MOST_NODES = 300
_LONGEST_TEXT, _LONGEST_NAME, _LARGEST_INTEGER = 100, 60, 10**12

_MAIN = ("__name__ == '__main__'", "'__main__' == __name__")
_Where = Literal["top", "class", "function"]


@dataclass(frozen=True)
class Suspicion:
    """A piece of code that is not plain. `message` tells the instructor the line and the code."""

    line: int
    message: str


@dataclass(frozen=True)
class _Context:
    """The position of a statement: at the top of the file, directly in a class, or in a function.

    inside: the names of the classes and functions around the statement.
    """

    where: _Where
    inside: tuple[str, ...] = ()

    @property
    def is_init(self) -> bool:
        return self.where == "function" and self.inside[1:] == ("__init__",)


@lru_cache(maxsize=256)
def plain_edit(broken: str, submitted: str) -> tuple[Suspicion, ...]:
    """Return the suspicions about an edit of a broken experiment, sorted by line. The result is () for a plain edit.

    Raises `Unparsable` if `broken` does not parse.
    """
    ours = _own_names(broken)
    try:
        tree = parse_experiment(submitted)
    except Unparsable as error:
        return (Suspicion(0, f"the file cannot be read ({error})"),)
    if is_script(submitted) != is_script(broken):
        return (Suspicion(0, "the file is no longer a script, or has become one"),)
    own = _statements(tree)
    inserted = [(node, place) for node, place in own if _key(node, place) not in ours.statements]
    size = sum(1 for node, _ in inserted for _ in ast.walk(node))
    judge = _StatementJudge(tree, ours)
    if size > MOST_NODES:
        judge.odd(inserted[0][0], f"an edit of {size} syntax-tree nodes, more than {MOST_NODES}")
    elif inserted:
        judge.names_have_one_meaning()
        for node, place in inserted:
            judge.statement(node, place)
    return tuple(sorted(judge.found, key=lambda item: (item.line, item.message)))


@dataclass(frozen=True)
class _Ours:
    """The code of the broken experiment: its statements, its dotted paths, and the attributes that it uses.

    spreads: for each call of a function with `**value`, the function and the value.
    """

    statements: frozenset[tuple[str, ...]]
    paths: frozenset[str]
    attributes: frozenset[tuple[str, str]]
    stores: frozenset[tuple[str, ...]]
    bound: frozenset[str]
    spreads: frozenset[tuple[str, str]]


@lru_cache(maxsize=256)
def _own_names(broken: str) -> _Ours:
    tree = parse_experiment(broken)
    paths = imported_paths(tree)
    kinds = Kinds(tree, paths)
    public = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and not node.attr.startswith("_")]
    owners = {id(node.value) for node in public}
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return _Ours(
        frozenset(_key(node, place) for node, place in _statements(tree)),
        frozenset(path_of(node, paths) for node in public if id(node) not in owners) - {""},
        frozenset(
            (_word(kinds.of(node.value)), node.attr + "()" * (id(node) in called))
            for node in public
            if node.attr != "register_buffer" and not path_of(node, paths)
        ),
        frozenset(
            (*place.inside, part.attr)
            for node, place in _statements(tree)
            for part in ast.walk(node)
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)
        ),
        frozenset(name for node in ast.walk(tree) for name in (*names_bound_by(node), getattr(node, "attr", ""))),
        frozenset(
            (ast.dump(node.func), ast.dump(item.value))
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            for item in node.keywords
            if item.arg is None
        ),
    )


def _word(kind: ObjectKind) -> str:
    return base(kind).removeprefix("new ")


def _key(node: ast.stmt, place: _Context) -> tuple[str, ...]:
    """Return a key for comparing statements. If a statement changes an object, the key includes its function's name."""
    stores = isinstance(node, ast.AugAssign) or any(
        isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store) for part in ast.walk(node)
    )
    return (ast.dump(node), place.where, str(place.is_init), *(place.inside if stores else ()))


def _statements(tree: ast.Module) -> list[tuple[ast.stmt, _Context]]:
    """Return (statement, position) for every statement that runs, also for nested statements."""
    body = [node for node in tree.body if not has_functions(tree) or not _is_main(node)]
    return list(_walk_block(body, _Context("top")))


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and not node.orelse and ast.unparse(node.test) in _MAIN


def _walk_block(block: list[ast.stmt], place: _Context) -> Iterator[tuple[ast.stmt, _Context]]:
    for node in block:
        if does_nothing(node):
            continue
        fields = dict(ast.iter_fields(node))
        handlers = fields.get("handlers", [])
        fields.update((name, []) for name in ("body", "orelse", "finalbody") if name in fields)
        if handlers:
            fields["handlers"] = [
                ast.copy_location(ast.ExceptHandler(item.type, item.name, []), item) for item in handlers
            ]
        yield ast.copy_location(type(node)(**fields), node), place
        inner = place
        if isinstance(node, ast.ClassDef):
            inner = _Context("class", (*place.inside, node.name))
        elif isinstance(node, ast.FunctionDef):
            inner = _Context("function", (*place.inside, node.name))
        for inside in (*blocks(node), *(item.body for item in handlers)):
            yield from _walk_block(inside, inner)


class _StatementJudge:
    """Collects the code that is not plain in the inserted statements of one file.

    `_visit` compares every node of a statement with the table of syntax. For some classes of nodes, a method
    `_check_<class>` makes further checks. It runs before the parts of the node are visited, and may approve parts that
    are plain only in this position.
    """

    def __init__(self, tree: ast.Module, ours: _Ours) -> None:
        """Judge inserted statements of `tree`. They may use all code of the broken experiment."""
        self.found: set[Suspicion] = set()
        self._ours = ours
        self._tree = tree
        self._paths = imported_paths(tree)
        self._kinds = Kinds(tree, self._paths)
        # Dataclasses and NamedTuples, whose methods cannot change the objects.
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        self._records = {node.name for node in classes if self._is_record(node)}
        self._approved = shapes.yields_of_managers(tree, self._paths)
        self._made: set[int] = set()
        self._place = _Context("top")
        self._line = 0

    def odd(self, node: ast.AST, what: str) -> None:
        """Add a suspicion about a node. `what` describes it: a noun with an article, or a piece of code."""
        line = getattr(node, "lineno", self._line)
        self.found.add(Suspicion(line, f"line {line}: the automatic check does not cover {what}"))

    def names_have_one_meaning(self) -> None:
        """Add a suspicion for each imported name to which the file assigns another value."""
        bound = {name for node in ast.walk(self._tree) for name in names_bound_by(node)}
        imported: dict[str, str] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for name, path in imported_paths(ast.Module([node], [])).items():
                    if imported.setdefault(name, path) != path or name in bound:
                        self.odd(node, f"a second value for the imported name {name[:60]}")
        defined = {node.name for node in self._tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        seen: set[str] = set()
        for node in self._tree.body:
            is_definition = isinstance(node, ast.FunctionDef | ast.ClassDef)
            names = {name for part in ([node] if is_definition else ast.walk(node)) for name in names_bound_by(part)}
            for name in names & seen & defined:
                self.odd(node, f"a second value for {name[:60]}")
            seen |= names

    def statement(self, node: ast.stmt, place: _Context) -> None:
        """Judge a statement, but not the statements nested in it."""
        self._place, self._line = place, node.lineno
        name = type(node).__name__
        if name in grammar.SYNTAX and name not in grammar.PLACES[place.where]:
            here = {"top": "at the top of the file", "class": "directly in a class", "function": "in a function"}
            self.odd(node, f"{_spell_name(name)} {here[place.where]}".removesuffix(" in a function"))
        elif name in ("Assign", "AnnAssign") and place.where != "function":
            self._lasting_assignment(node)
        elif name == "Expr" and place.where == "top" and self._check_call(node) != "logging.basicConfig":
            self.odd(node, "a call at the top of the file")
        self._visit(node)

    def _visit(self, node: ast.AST) -> None:
        name = type(node).__name__
        rules = grammar.SYNTAX.get(name)
        if rules is None:
            self.odd(node, _spell_name(name))
            return
        getattr(self, f"_check_{name}", lambda _: None)(node)
        for field, value in ast.iter_fields(node):
            parts = value if isinstance(value, list) else [value]
            match rules.get(field, "empty"):
                case "visit":
                    for part in parts:
                        if isinstance(part, ast.AST):
                            self._visit(part)
                case "name" if value is not None:
                    self._binds(node, value)
                case "empty" if value:
                    self.odd(node, _spell_name(field))

    # --- Names and constants ---

    def _binds(self, node: ast.AST, name: str) -> None:
        is_init = self._place.where == "class" and name == "__init__" and isinstance(node, ast.FunctionDef)
        if (name in grammar.PYTHON or name.startswith("__") or len(name) > _LONGEST_NAME) and not is_init:
            self.odd(node, f"{name[:60]} as a name, because it has another meaning or is too long")
        self._asks(node, name)

    def _asks(self, node: ast.AST, name: str) -> None:
        """Add a suspicion if the harness looks up this name to decide what its checks expect."""
        if name == "FROZEN" or (name in grammar.ASKED and name not in self._ours.bound):
            self.odd(node, f"{name}, which tells the checks what to expect")

    def _check_Constant(self, node: ast.Constant) -> None:
        if not _is_plain_constant(node.value):
            self.odd(node, "data in the source code, such as long texts, bytes or huge numbers")

    def _check_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._binds(node, node.id)
            return
        kind = self._kinds.of(node)
        if id(node) in self._approved:
            return
        if node.id in self._paths:
            self._path(node, self._paths[node.id])
        elif kind in ("function", "manager"):
            self.odd(node, f"the function {node.id[:60]} as a value, without calling it")
        elif kind == "slice":
            self.odd(node, f"the slice object {node.id[:60]} outside an index")
        elif kind == "builtin":
            if node.id not in grammar.TYPES | grammar.ERRORS:
                self.odd(node, f"{node.id} as a value")
        elif not self._kinds.is_bound(node) and node.id != "__name__":
            self.odd(node, f"the name {node.id[:60]}")

    def _path(self, node: ast.AST, path: str) -> None:
        """Judge a dotted path that is used as a value."""
        only_called = path in grammar.ARGUMENTS
        if only_called or not (path in self._ours.paths or is_listed(path)):
            self.odd(node, f"{path[:60]}{' as a value' if only_called else ''}")

    # --- Attributes and stores ---

    def _check_Attribute(self, node: ast.Attribute) -> None:
        path = path_of(node, self._paths)
        if not isinstance(node.ctx, ast.Load):
            self._attribute_store(node)
        elif path:
            self._approve_chain(node)
            if id(node) not in self._approved:
                self._path(node, path)
        elif id(node) not in self._approved and not self._may_ask(self._kinds.of(node.value), node.attr):
            self.odd(node, f"the attribute .{node.attr[:60]} of this object")

    def _approve_chain(self, node: ast.expr) -> None:
        """Approve the parts of a dotted path, because the path is judged as a whole."""
        while isinstance(node, ast.Attribute):
            node = node.value
            self._approved.add(id(node))

    def _may_ask(self, kind: ObjectKind, name: str) -> bool:
        """Return whether an attribute, or a method "name()", is allowed for an object of this kind."""
        word = _word(kind)
        if name.startswith("_") and not (word == "super" and name == "__init__()"):
            return self._is_own(word, name) and not name.startswith("__") and name.removesuffix("()") not in MODULE
        if name == "load_state_dict()" and word in ("network", "optimizer"):
            return any(other == name for _, other in self._ours.attributes)
        if (word, name) in self._ours.attributes or name in KINDS.get(word, {}) or name in KINDS.get(base(kind), {}):
            return True
        if self._is_own(word, name):
            return True
        harmless = HARMLESS_METHODS if name.endswith("()") else HARMLESS_ATTRIBUTES
        return word not in BARE and name.removesuffix("()") in harmless

    def _is_own(self, word: str, name: str) -> bool:
        """Return whether a class of the file defines this attribute or method for such an object."""
        plain = name.removesuffix("()")
        return (word, plain) in self._kinds.attributes or (plain != name and self._kinds.is_method(word, plain))

    def _attribute_store(self, node: ast.Attribute) -> None:
        self._asks(node, node.attr)
        kind = self._kinds.of(node.value)
        if id(node) in self._made:
            return
        if kind == "parameter" and node.attr in ("grad", "requires_grad", "data"):
            return
        is_self = isinstance(node.value, ast.Name) and node.value.id == "self" and _word(kind) in ("own", "network")
        may_set = self._place.is_init or (*self._place.inside, node.attr) in self._ours.stores
        if kind == "own" and ("own", node.attr) in self._kinds.attributes and self._place.where == "function":
            # If the broken experiment already counts calls in this method, a fix may count something, too.
            counts = any(store[:-1] == self._place.inside for store in self._ours.stores)
            may_set = may_set or (counts and not self._kinds.is_method("own", node.attr))
        if (
            not (is_self and may_set and id(node) in self._approved)
            or node.attr.startswith("__")
            or node.attr in MODULE
        ):
            self.odd(node, f"setting .{node.attr[:60]}, whose value could outlive the call")

    def _check_Subscript(self, node: ast.Subscript) -> None:
        kind = self._kinds.of(node.value)
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            if self._kinds.of(part) == "slice":
                self._approved.add(id(part))
        if id(node) in self._made:
            return
        if kind == "group":
            if key not in GROUP_KEYS or (key != "lr" and not isinstance(node.ctx, ast.Load)):
                self.odd(node, "a use of a parameter group other than its lr and reading its params")
        elif not isinstance(node.ctx, ast.Load) and kind != "new tensor" and base(kind) not in ("list", "dict"):
            self.odd(node, f"setting {ast.unparse(node)[:60]}, whose value could outlive the call")

    def _check_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._check_store(target, node.value)
        # The name always refers to a slice, so `Kinds` knows the result of an index expression that uses it.
        match node.targets:
            case [ast.Name() as name] if self._kinds.of(name) == "slice":
                self._approved.add(id(node.value))

    def _check_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)
        if node.value is not None:
            self._check_store(node.target, node.value)

    def _check_AugAssign(self, node: ast.AugAssign) -> None:
        kind = self._kinds.of(node.target)
        if isinstance(node.target, ast.Name):
            if base(kind) in ("list", "dict", "set"):
                self._fills(node.target, [node.value])
            elif _word(kind) not in ("number", "text", "tensor", "parameter", "pair"):
                self.odd(node, f"an in-place change of {node.target.id[:60]}, which could outlive the call")
        self._check_store(node.target, node.value)
        self._visit(node.target)

    def _check_store(self, target: ast.expr, value: ast.expr) -> None:
        """Judge an assignment to a target that is not a name. Only assignments may set attributes of `self`."""
        kind = self._kinds.of(value)
        if self._changes_what_is_new(target, value):
            self._made.add(id(target))
        match target:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self._check_store(part, value)
            case ast.Starred(value=part):
                self._check_store(part, value)
            case ast.Subscript(value=owner) if base(self._kinds.of(owner)) in ("list", "dict"):
                self._fills(owner, [value, target.slice])
            case ast.Attribute(value=ast.Name(id="self")) if self._place.is_init:
                self._approved.add(id(target))
                if _word(kind) not in ("network", "parameter") and not self._is_lasting(value):
                    self.odd(value, "storing something other than a layer or a constant in a network")
            case ast.Attribute(value=ast.Name(id="self")):
                self._approved.add(id(target))
                if _word(kind) not in OF_TRAINING:
                    self.odd(target, "storing something other than a number or a tensor")
            case ast.Subscript(value=owner) if self._kinds.of(owner) == "group" and _word(kind) not in OF_TRAINING:
                self.odd(target, "a learning rate that is not a number")

    def _changes_what_is_new(self, target: ast.expr, value: ast.expr) -> bool:
        """Return whether an assignment is harmless because it changes only new objects or a schedule's base rates.

        A new object is a tensor that `__init__` has made for `self`, or a network that this call has made with all its
        layers (`Kinds.is_whole`). Such a network may get another new layer.
        """
        kind = self._kinds.of(value)
        match target:
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id="self"), attr=name)) if self._place.is_init:
                return _word(kind) in STORABLE and name in self._own_tensors(self._place.inside[0])
            case ast.Subscript(value=owner, slice=place):
                is_layer = _word(self._kinds.of(owner)) == "network" and self._kinds.of(place) == "number"
                return is_layer and self._kinds.is_whole(value) and self._kinds.is_whole(_first_name(owner))
            case ast.Attribute(value=owner, attr="base_lrs") if self._kinds.of(owner) == "scheduler":
                # This is as harmless as setting the `lr` of a group, because it stores only numbers in a list that no
                # code can change.
                return kind in (("list", "number"), ("kept", "number"))
            case ast.Attribute(value=ast.Name() as owner, attr=name) if self._kinds.is_whole(owner):
                is_layer = self._kinds.attributes.get(("network", name)) == "network" and name not in MODULE
                return is_layer and self._kinds.is_whole(value)
        return False

    def _own_tensors(self, name: str) -> set[str]:
        """Return the attributes of a class to which it assigns only tensors that the class itself makes."""
        found: dict[str, bool] = {}
        nodes = [part for node in self._tree.body for part in ast.walk(node) if getattr(node, "name", "") == name]
        made = {
            id(node.targets[0]): self._kinds.of(node.value) == "new tensor"
            for node in nodes
            if isinstance(node, ast.Assign) and len(node.targets) == 1
        }
        for node in nodes:
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                found[node.attr] = found.get(node.attr, True) and made.get(id(node), False)
        return {attribute for attribute, is_made in found.items() if is_made}

    def _fills(self, owner: ast.expr, values: list[ast.expr]) -> None:
        """Judge a call that puts values into a container."""
        kinds = [self._kinds.of(value) for value in values]
        if any(holds(kind, word) for kind in kinds for word in ("group", "iterator")):
            self.odd(owner, "storing an iterator or a parameter group in a container")
        if not self._kinds.makes(owner) and not all(map(is_storable, kinds)):
            self.odd(owner, f"changing {ast.unparse(owner)[:60]}, which other code may have made")

    # --- Calls ---

    def _check_Call(self, node: ast.Call) -> None:
        path, kind = path_of(node.func, self._paths), self._kinds.of(node.func)
        if path:
            self._library_call(node, path)
        elif isinstance(node.func, ast.Attribute):
            self._method_call(node, node.func)
        elif kind == "function" or (kind == "builtin" and isinstance(node.func, ast.Name)):
            self._approved.add(id(node.func))
        name = node.func.id if kind == "builtin" and isinstance(node.func, ast.Name) else path
        if name == "super":
            self._super(node)
        if name in ("id", "slice") and id(node) not in self._approved:
            self.odd(node, f"{name}() here")
        if name == "next" and not all(base(self._kinds.of(item)) == "iterator" for item in node.args[:1]):
            self.odd(node, "`next` on an iterator that this call has not made")
        if self._kinds.of(node) == "own":
            self._keeps_no_iterator([*node.args, *node.keywords])
        self._arguments(node, name, own=kind in ("function", "class", "manager"))
        self._passed_functions(node, name)

    def _library_call(self, node: ast.Call, path: str) -> None:
        if not (path in self._ours.paths or is_listed(path)) or path.startswith(grammar.NEVER_CALLED):
            self.odd(node, path[:60])
        elif path in grammar.CONTEXTS and id(node) not in self._approved:
            self.odd(node, f"{path} outside `with`")
        elif path == grammar.UNPREFIX and not (node.args and self._kinds.makes(node.args[0])):
            self.odd(node, "new keys in a dictionary that this call has not made")
        elif path == "dataclasses.dataclass" and id(node) not in self._approved:
            self.odd(node, f"{path} as a function")
        if path.startswith("torch.") and any(item.arg == "out" for item in node.keywords):
            self.odd(node, "the argument `out`")
        self._approved.add(id(node.func))
        made = self._kinds.of(node)
        if made == "new network" and path not in grammar.HOLDS_LAYERS:
            self._keeps_no_iterator([*node.args, *node.keywords])
        elif made in ("optimizer", "scheduler"):
            self._keeps_no_iterator([*node.args[1:], *(item for item in node.keywords if item.arg != "params")])

    def _keeps_no_iterator(self, arguments: list[ast.expr | ast.keyword]) -> None:
        for item in arguments:
            kind = self._kinds.of(item.value if isinstance(item, ast.keyword) else item)
            kind = item_of(kind) if isinstance(item, ast.Starred) else kind
            if holds(kind, "iterator") or holds(kind, "group"):
                self.odd(item, "an object that keeps an iterator or a parameter group")

    def _method_call(self, node: ast.Call, function: ast.Attribute) -> None:
        kind, name = self._kinds.of(function.value), function.attr
        word, values = _word(kind), _arguments_of(node)
        is_covered = self._may_ask(kind, f"{name}()") or self._registers(node) or id(node) in self._approved
        # A generator that the experiment seeds may also be saved and restored.
        seeds = (word, "manual_seed()") in self._ours.attributes
        restores = (name, len(values)) in (("get_state", 0), ("set_state", 1)) and seeds
        if not (is_covered or restores or self._copies_weights(node, word) or self._gives_bytes(node)):
            self.odd(node, f"the method .{name[:60]}() of this object")
        self._approved.add(id(function))
        own = word in ("own", "network") and self._kinds.is_method(word, name)
        # A scaler gets the optimizer, and a schedule such as ReduceLROnPlateau gets the metric.
        takes_one = word in ("scaler", "scheduler") and len(values) == 1 and node.args
        if name == "step" and values and not own and not takes_one:
            self.odd(node, ".step() with a closure or another argument")
        if name == "update" and values and not own and word not in ("dict", "set"):
            self.odd(node, ".update() with arguments")
        if name == "load_state_dict" and word in ("scheduler", "part"):
            self.odd(node, "loading the state of a schedule")
        if name == "format" and not self._is_simple_format(node):
            self.odd(node, ".format() with fields other than simple ones")
        if word == "logger" and node.keywords:
            self.odd(node, "keyword arguments of a log message")
        if word in ("list", "dict", "set") and name in CHANGING:
            self._fills(function.value, values)

    def _registers(self, node: ast.Call) -> bool:
        """Return whether a call registers a buffer or a layer of a network in the network's `__init__`.

        This is as safe as assigning the buffer or layer to an attribute of `self` in `__init__`. A layer may be added
        to a list only if the class has made the list, because a list from outside may belong to an older network.
        """
        if not self._place.is_init:
            return False
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr="register_buffer"), args=[name, _]):
                return isinstance(name, ast.Constant) and self._names_a_layer(name)
            case ast.Call(keywords=[_, *_]):
                return False
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr="add_module"), args=[name, layer]):
                return self._names_a_layer(name) and _word(self._kinds.of(layer)) == "network"
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=name), attr="append"),
                args=[layer],
            ):
                own = shapes.layer_lists(self._tree, self._place.inside[0], grammar.HOLDS_LAYERS, self._paths)
                return name in own and _word(self._kinds.of(layer)) == "network"
        return False

    def _names_a_layer(self, node: ast.expr) -> bool:
        """Return whether a text, or an f-string with a number, is a name that networks do not use."""
        match node:
            case ast.Constant(value=str(name)):
                return name.isidentifier() and not name.startswith("_") and name not in MODULE
            case ast.JoinedStr(values=[ast.Constant(value=str(start)), *others]):
                numbers = [
                    isinstance(part, ast.FormattedValue) and part.format_spec is None
                    and self._kinds.of(part.value) == "number"
                    for part in others
                ]  # fmt: skip
                is_new = not any(name.startswith(start) for name in MODULE)
                return start.isidentifier() and not start.startswith("_") and is_new and all(numbers)
        return False

    def _copies_weights(self, node: ast.Call, word: str) -> bool:
        """Return whether a call only copies tensors into a network, as `p.copy_(...)` for each parameter would."""
        is_named = isinstance(node.func, ast.Attribute) and node.func.attr == "load_state_dict" and word == "network"
        kinds = [self._kinds.of(value) for value in node.args]
        of_tensors = [isinstance(kind, tuple) and kind[0] == "dict" and _word(kind[1]) in WEIGHTS for kind in kinds]
        return is_named and of_tensors == [True] and all(item.arg == "strict" for item in node.keywords)

    def _gives_bytes(self, node: ast.Call) -> bool:
        """Return whether a call is `tensor.numpy().tobytes()`. No other code gets the array that shares its memory."""
        match node:
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Call(func=ast.Attribute(value=owner, attr="numpy"), args=[], keywords=[]) as array,
                    attr="tobytes",
                ),
                args=[],
                keywords=[],
            ):
                self._approved.add(id(array))
                return _word(self._kinds.of(owner)) in WEIGHTS
        return False

    def _is_simple_format(self, node: ast.Call) -> bool:
        text = node.func.value if isinstance(node.func, ast.Attribute) else None
        if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
            return False
        try:
            return all(
                (field or "x").isalnum() and "{" not in (form or "")
                for _, field, form, _ in string.Formatter().parse(text.value)
            )
        except ValueError:
            return False

    def _super(self, node: ast.Call) -> None:
        match node.args:
            case []:
                return
            case [ast.Name(id=name), ast.Name(id="self")] if self._place.inside[:1] == (name,):
                return
        self.odd(node, "super() of another class")

    def _arguments(self, node: ast.Call, name: str, *, own: bool) -> None:
        most, keywords = grammar.ARGUMENTS.get(name, (0, None))
        spread = 100 * any(isinstance(item, ast.Starred) for item in node.args)
        if keywords is not None and len(node.args) + spread > most:
            self.odd(node, f"additional arguments of {name}")
        for item in node.keywords:
            if item.arg is None:
                if own and (ast.dump(node.func), ast.dump(item.value)) in self._ours.spreads:
                    continue
                # Settings in a dictionary must satisfy the same rules as keyword arguments, see `_keeps_no_iterator`.
                takes = name.startswith("torch.") and _word(self._kinds.of(node)) in TAKES_SETTINGS
                tables = ("table", "dict") if takes else ("table",)
                if base(self._kinds.of(item.value)) not in tables or keywords is not None:
                    self.odd(node, "`**` with a value that is not a dictionary of constants")
            elif len(item.arg) > _LONGEST_NAME or (keywords is not None and item.arg not in keywords):
                self.odd(node, f"the argument {item.arg[:60]} here")
        keeps_track = own or name in READS_GROUPS
        if not keeps_track and any(holds(self._kinds.of(value), "group") for value in _arguments_of(node)):
            self.odd(node, "passing a parameter group to a function")

    def _passed_functions(self, node: ast.Call, name: str) -> None:
        """Approve functions as arguments if the call uses them immediately; judge functions that a schedule keeps."""
        place, keyword = grammar.USES_FUNCTION.get(name, (-1, ""))
        usable = ["function", "builtin"]
        if isinstance(node.func, ast.Attribute) and node.func.attr == "apply" and not name:
            place, usable = 0, ["function"]
        used = [item for index, item in enumerate(node.args) if index == place]
        used += [item.value for item in node.keywords if item.arg and item.arg == keyword]
        for item in used:
            if isinstance(item, ast.Lambda) or self._kinds.of(item) in usable:
                self._approved.add(id(item))
        if name in grammar.LAMBDA_SCHEDULES:
            given = [*node.args[1:2], *(item.value for item in node.keywords if item.arg == "lr_lambda")]
            for item in given:
                self._schedule(item)

    def _schedule(self, node: ast.expr) -> None:
        """Judge the function of a learning-rate schedule. It may only compute with the step, because it runs later."""
        function = node if isinstance(node, ast.Lambda) else self._kinds.function(node)
        if function is None:
            self.odd(node, "a schedule that is not a function in this file")
            return
        self._approved.add(id(node))
        own = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
        body = [function.body] if isinstance(function, ast.Lambda) else function.body
        for part in (inner for item in body for inner in ast.walk(item)):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                # Numbers in the surrounding function do not change any more, because only this function can assign
                # them.
                plain = part.id in own | NUMBERS or part.id in self._paths or self._kinds.of(part) == "number"
            elif isinstance(part, ast.Call):
                plain = getattr(part.func, "id", "") in NUMBERS or self._in_math(part.func)
            else:
                plain = isinstance(part, COMPUTING) or self._in_math(part)
            if not plain:
                self.odd(node, "a schedule that does more than compute with the step number")
        if function.args.defaults or function.args.kw_defaults:
            self.odd(node, "a schedule function with default arguments")

    def _in_math(self, node: ast.AST) -> bool:
        return path_of(node, self._paths).startswith("math.")

    def _check_call(self, node: ast.AST) -> str:
        value = getattr(node, "value", None)
        return path_of(value.func, self._paths) if isinstance(value, ast.Call) else ""

    # --- Other parts of expressions and statements ---

    def _check_Lambda(self, node: ast.Lambda) -> None:
        if id(node) not in self._approved:
            self.odd(node, _spell_name("Lambda"))

    def _check_Yield(self, node: ast.Yield) -> None:
        if id(node) not in self._approved:
            self.odd(node, _spell_name("Yield"))

    def _check_Expr(self, node: ast.Expr) -> None:
        """Allow the number of an optimizer's states in a print or a log message, because it changes only the text."""
        call = node.value
        is_report = isinstance(call, ast.Call) and (
            path_of(call.func, self._paths) in REPORTS
            or (isinstance(call.func, ast.Name) and call.func.id == "print")
            or (isinstance(call.func, ast.Attribute) and self._kinds.of(call.func.value) == "logger")
        )
        for argument in call.args if is_report and isinstance(call, ast.Call) else ():
            parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
            for part in parts:
                match part.value if isinstance(part, ast.FormattedValue) else part:
                    case ast.Call(func=ast.Name(id="len"), args=[ast.Attribute(value=owner, attr="state") as states]):
                        if self._kinds.of(owner) == "optimizer":
                            self._approved.add(id(states))

    def _check_Compare(self, node: ast.Compare) -> None:
        if all(isinstance(operator, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for operator in node.ops):
            self._approve_identities([node.left, *node.comparators])

    def _check_Set(self, node: ast.Set) -> None:
        self._approve_identities(node.elts)

    def _check_SetComp(self, node: ast.SetComp) -> None:
        self._approve_identities([node.elt])

    def _approve_identities(self, nodes: list[ast.expr]) -> None:
        """Approve calls of `id` in comparisons of two objects. Elsewhere, the number could serve as a random number."""
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "id":
                self._approved.add(id(node))

    def _check_NamedExpr(self, node: ast.NamedExpr) -> None:
        if self._place.where != "function":
            self.odd(node, "`:=` outside functions")

    def _check_Dict(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None and holds(self._kinds.of(value), "group"):
                self.odd(node, "a copy of a parameter group")
        keys = [getattr(key, "value", None) for key in node.keys]
        for key, value in zip(keys, node.values, strict=True) if "params" in keys else ():
            if key != "params" and not (isinstance(key, str) and _word(self._kinds.of(value)) in OF_GROUPS):
                self.odd(value, "storing this value in a parameter group")

    def _check_Starred(self, node: ast.Starred) -> None:
        self._check_iteration(node.value)

    def _check_For(self, node: ast.For) -> None:
        self._check_iteration(node.iter)

    def _check_comprehension(self, node: ast.comprehension) -> None:
        self._check_iteration(node.iter)

    def _check_iteration(self, node: ast.expr) -> None:
        if self._kinds.of(node) == "group":
            self.odd(node, "a loop over a parameter group")

    def _check_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        if not all(isinstance(kind, ast.Name) and kind.id in grammar.ERRORS for kind in kinds):
            self.odd(node, "catching these exceptions")

    def _check_withitem(self, node: ast.withitem) -> None:
        maker = node.context_expr
        if isinstance(maker, ast.Call) and self._kinds.manager(maker) is not None:
            self._approved.add(id(maker.func))
            self._visit(maker)
        else:
            self._context(maker)

    def _context(self, node: ast.expr) -> None:
        maker = node.func if isinstance(node, ast.Call) else node
        if path_of(maker, self._paths) not in grammar.CONTEXTS:
            self.odd(node, f"{ast.unparse(maker)[:60]} in `with` or as a decorator")
        self._approved.add(id(node))
        self._visit(node)

    # --- Definitions and imports ---

    def _check_Import(self, node: ast.Import) -> None:
        self._check_import(node, [item.name for item in node.names])

    def _check_ImportFrom(self, node: ast.ImportFrom) -> None:
        self._check_import(node, [f"{'.' * node.level}{node.module or ''}.{item.name}" for item in node.names])

    def _check_import(self, node: ast.Import | ast.ImportFrom, paths: list[str]) -> None:
        for name in imported_paths(ast.Module([node], [])):
            self._binds(node, name)
        for path in paths:
            if path not in grammar.LISTED and not is_listed(path):
                self.odd(node, f"the import of {path[:60]}")

    def _check_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._annotation(node.returns)
        is_manager = [path_of(item, self._paths) for item in node.decorator_list] == [grammar.MANAGER]
        if is_manager and self._place.where == "top" and node.name not in PROTOCOL:
            self._approved.update(map(id, node.decorator_list))
            self._approve_chain(node.decorator_list[0])
        else:
            for decorator in node.decorator_list:
                self._context(decorator)
        if self._place.where == "function":
            self._inner_function(node)
        is_method = self._place.where == "class" and self._kinds.makes_networks(self._place.inside[0])
        is_rest = (
            node.name == "train" and is_method and shapes.keeps_parts_in_eval_mode(self._tree, self._place.inside[0])
        )
        if is_method and node.name in MODULE - {"forward"} and not is_rest:
            self.odd(node, f"a redefinition of {node.name}")

    def _inner_function(self, node: ast.FunctionDef) -> None:
        """Judge the head of a nested function. Its statements are judged like all other statements.

        A nested function can read the names around it, but cannot assign to them, because `nonlocal` is not plain. Like
        any function, it cannot be used as a value, except in a schedule (`_schedule`). So its calls end before the call
        of the surrounding function ends, and its effects are the same as if its statements were in the surrounding
        function. Its name must have only one meaning in its scope, and no meaning at the top of the file.
        """
        if not self._kinds.names_one_function(node.name) or node.name in PROTOCOL:
            self.odd(node, f"the nested function {node.name[:60]}, because its name has another meaning")
        for default in filter(None, (*node.args.defaults, *node.args.kw_defaults)):
            kinds = [self._kinds.of(part) for part in ast.walk(default) if isinstance(part, ast.Name)]
            if not all(kind in ("number", "text", "none") for kind in kinds):
                self.odd(default, "a default argument that could keep a value between calls")

    def _check_arg(self, node: ast.arg) -> None:
        self._annotation(node.annotation)

    def _annotation(self, node: ast.expr | None) -> None:
        """Judge an annotation. It may only name types, because Python evaluates an annotation and keeps its value."""
        if node is not None and not all(isinstance(part, OF_TYPES) for part in ast.walk(node)):
            self.odd(node, "an annotation that computes something")

    def _check_arguments(self, node: ast.arguments) -> None:
        for default in filter(None, (*node.defaults, *node.kw_defaults)):
            if not self._is_constant(default):
                self.odd(default, "a default argument that could keep values between calls")

    def _check_ClassDef(self, node: ast.ClassDef) -> None:
        if not self._is_record(node) and not (self._bases(node) == ["torch.nn.Module"] and not node.decorator_list):
            self.odd(node, "a class that is not a torch.nn.Module, a dataclass or a NamedTuple")
        for item in node.decorator_list:
            self._approved.update((id(item), id(item.func) if isinstance(item, ast.Call) else 0))
            self._visit(item)

    def _is_record(self, node: ast.ClassDef) -> bool:
        makers = [item.func if isinstance(item, ast.Call) else item for item in node.decorator_list]
        made = (self._bases(node), [path_of(item, self._paths) for item in makers])
        return made in (([], ["dataclasses.dataclass"]), (["typing.NamedTuple"], []))

    def _bases(self, node: ast.ClassDef) -> list[str]:
        return [path_of(item, self._paths) for item in node.bases]

    def _lasting_assignment(self, node: ast.stmt) -> None:
        """Judge an assignment outside functions. Its value exists as long as the program runs."""
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        if not all(isinstance(target, ast.Name) for target in targets) or len(targets) > 1:
            self.odd(node, "an assignment to several names or to an attribute outside functions")
        value: ast.expr | None = getattr(node, "value", None)
        parts = [] if value is None else [value]
        if isinstance(value, ast.Call):
            made = path_of(value.func, self._paths)
            if made in grammar.KEPT or getattr(value.func, "id", "") in self._records:
                parts = _arguments_of(value)
        if value is not None and not all(map(self._is_lasting, parts)):
            self.odd(value, "keeping something other than a constant, a loss or a gradient scaler between calls")

    def _is_constant(self, value: ast.expr) -> bool:
        plain = all(isinstance(node, CONSTANT) for node in ast.walk(value))
        return plain or bool(path_of(value, self._paths))

    def _is_lasting(self, value: ast.expr) -> bool:
        """Return whether a value may be kept between calls: a constant, or an immutable dictionary of constants."""
        for node in ast.walk(value):
            is_field = isinstance(node, ast.Attribute) and self._kinds.of(node.value) == "own"
            is_math = isinstance(node, ast.Call | ast.Attribute) and self._in_math(getattr(node, "func", node))
            if not isinstance(node, (*CONSTANT, ast.Dict, ast.Subscript)) and not is_field and not is_math:
                return bool(path_of(value, self._paths))
        return True


def _spell_name(name: str) -> str:
    return grammar.SPELLED.get(name, f"`{name}`")


def _first_name(node: ast.AST) -> ast.AST:
    """Return the first node in a chain of attributes and indices."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node


def _arguments_of(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(item.value for item in node.keywords)]


def _is_plain_constant(value: object) -> bool:
    match value:
        case bool() | float() | None:
            return True
        case int():
            return abs(value) <= _LARGEST_INTEGER
        case str():
            return len(value) <= _LONGEST_TEXT
    return value is ...
