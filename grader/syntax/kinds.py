"""Find the kind of object that an expression returns. Plain edits may use only the harmless attributes of a kind.

A kind is a word such as "tensor". The kind of a container is a tuple of its word and the kinds of its content, such as
("list", "parameter"). The kind of a name follows from all statements in the file that assign to this name. If two of
them give different kinds, the kind is "unknown". "new" in a kind means that the running call has made the object, so
the call may change the object. `allowed.KINDS` lists the allowed attributes for each kind.

Opaque kinds allow fewer uses than other kinds. If an object may have an opaque kind or another kind, its kind is the
opaque one.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from grader.syntax.allowed import (
    BUILTINS,
    GIVES,
    GROUP_KEYS,
    HARMLESS_ATTRIBUTES,
    HARMLESS_METHODS,
    ITEMS,
    KINDS,
    PROTOCOL,
    STORABLE,
    ObjectKind,
)
from grader.syntax.grammar import ERRORS, FUNCTIONS, LAMBDA_SCHEDULES, MANAGER, TYPES, words
from grader.syntax.program import path_of

_DEEPEST = 4  # the maximum number of nested containers
# These kinds are opaque because code could count calls with a stored iterator, and because an optimizer's parameter
# group is a dictionary that may contain any object.
_OPAQUE = ("group", "iterator")


# Syntax-tree nodes that determine the kind of a name, of an attribute or of a function's result.
_BINDING = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.For, ast.comprehension, ast.withitem,
    ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping, ast.FunctionDef, ast.Lambda, ast.Return, ast.Yield,
    ast.Call,
)  # fmt: skip
_SCALARS = ("number", "text", "none")
# The scope in which a name is defined: a function, a lambda, a comprehension, or None for the file.
_Scope = ast.AST | None
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# The objects that code may go through in one loop.
_PARTS = words("network optimizer scheduler part")


def base(kind: ObjectKind) -> str:
    """Return the first word of a kind, such as "list" for a list with any content."""
    return kind if isinstance(kind, str) else base(kind[0])


def holds(kind: ObjectKind, word: str) -> bool:
    """Return whether a kind is this word, or a container with items of this kind."""
    return kind == word if isinstance(kind, str) else any(holds(part, word) for part in kind)


def join(first: ObjectKind, second: ObjectKind) -> ObjectKind:
    """Return the common kind of an object that may have the first or the second kind."""
    if first == second or not second:
        return first
    if not first:
        return second
    if "none" in (first, second):
        return second if first == "none" else first
    if isinstance(first, tuple) and isinstance(second, tuple) and first[0] == second[0] and len(first) == len(second):
        return (first[0], *(join(a, b) for a, b in zip(first[1:], second[1:], strict=True)))
    if "iterator" in (base(first), base(second)) and isinstance(first, tuple) and isinstance(second, tuple):
        # The result is an iterator over items of both kinds, because iterators allow fewer uses than containers.
        return _nest("iterator", join(item_of(first), item_of(second)))
    for word in _OPAQUE:
        if holds(first, word) or holds(second, word):
            return word
    if isinstance(first, str) and isinstance(second, str):
        old = {first.removeprefix("new "), second.removeprefix("new ")}
        if len(old) == 1:
            return old.pop()
        if old <= {"tensor", "parameter", "number"}:
            return "tensor"
        if old <= _PARTS:
            return "part"
    return "unknown"


def join_all(kinds: Iterable[ObjectKind]) -> ObjectKind:
    """Return the common kind of an object that may have any of these kinds."""
    found: ObjectKind = ""
    for kind in kinds:
        found = join(found, kind)
    return found


def item_of(kind: ObjectKind) -> ObjectKind:
    """Return the kind of the items that an iteration over an object of this kind gives."""
    if isinstance(kind, tuple):
        return join_all(kind[1:])
    return ITEMS.get(kind, "unknown")


def is_storable(kind: ObjectKind) -> bool:
    """Return whether a kind is in `STORABLE`, or is a container that holds only such objects."""
    if isinstance(kind, tuple):
        return base(kind) in ("list", "kept", "pair", "set", "dict", "table") and all(map(is_storable, kind[1:]))
    return kind.removeprefix("new ") in STORABLE


def _nest(word: str, *parts: ObjectKind) -> ObjectKind:
    """Return the kind of a container with these contents, or "unknown" if it is nested deeper than `_DEEPEST`."""
    kind: ObjectKind = (word, *parts)
    if _depth(kind) <= _DEEPEST:
        return kind
    return next((opaque for opaque in _OPAQUE if holds(kind, opaque)), "unknown")


def _depth(kind: ObjectKind) -> int:
    return 0 if isinstance(kind, str) else 1 + max(map(_depth, kind))


class Kinds:
    """The kinds of all names and expressions of one file."""

    def __init__(self, tree: ast.Module, paths: Mapping[str, str]) -> None:
        self._paths = paths
        self._scopes: dict[int, _Scope] = {}
        self._parents: dict[_Scope, _Scope] = {}
        walked = list(self._walk(tree, None))
        nodes = [node for node in walked if isinstance(node, _BINDING)]
        # For each scope and name, the number of statements in the scope that assign to the name.
        self._bound = Counter((self._scopes[id(node)], name) for node in walked for name in names_bound_by(node))
        self._functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self._managers = {node for node in self._functions.values() if self._is_manager(node)}
        # {(scope, name): nested function}
        self._nested = {
            (self._scopes[id(node)], node.name): node
            for node in walked
            if isinstance(node, ast.FunctionDef) and self._scopes[id(node)] is not None
        }
        self._classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        self._methods: dict[str, list[ast.FunctionDef]] = {}
        self._owners: dict[ast.FunctionDef, ObjectKind] = {}
        self._fields: dict[str, list[str]] = {}
        for name, node in self._classes.items():
            self._fields[name] = []
            for part in node.body:
                if isinstance(part, ast.FunctionDef):
                    self._methods.setdefault(part.name, []).append(part)
                    self._owners[part] = self._instance(name)
                elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    self._fields[name].append(part.target.id)
        self._names: dict[tuple[_Scope, str], ObjectKind] = {}
        # {("network" or "own", name): kind} for the attributes of classes in the file, and the kinds of return values.
        self.attributes: dict[tuple[str, str], ObjectKind] = {}
        self._returns: dict[ast.FunctionDef, ObjectKind] = {}
        self._yields: dict[ast.FunctionDef, ObjectKind] = {}
        self._found: dict[int, ObjectKind] = {}
        # The names of containers that may be known under a second name.
        self._aliases: set[tuple[_Scope, str]] = set()
        # The names of networks whose parameters or layers may also belong to another object.
        self._shared: set[tuple[_Scope, str]] = set()
        self._note_shared(walked)
        self._settled = False
        # In the first round, an unknown kind waits for the kinds on which it depends. In the second round, it does not
        # wait, because there may be no call that determines these kinds.
        for self._waits in (True, False):
            self._changed = True
            while self._changed:
                self._changed = False
                for item in nodes:
                    self._learn(item)
        self._settled = True

    def _walk(self, node: ast.AST, scope: _Scope) -> Iterator[ast.AST]:
        """Yield all nodes, and record the scope in which the names of each node are looked up."""
        self._scopes[id(node)] = scope
        yield node
        inner = scope
        if isinstance(node, (ast.FunctionDef, ast.Lambda, *_COMPREHENSIONS)):
            self._parents[node] = scope
            inner = node
        for name, value in ast.iter_fields(node):
            for place, child in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(child, ast.AST):
                    continue
                if isinstance(node, ast.arguments) and "defaults" in name:
                    yield from self._walk(child, self._parents[scope])
                elif isinstance(node, ast.FunctionDef) and name not in ("args", "body"):
                    yield from self._walk(child, scope)
                elif isinstance(node, ast.NamedExpr) and name == "target":
                    yield from self._walk(child, self._function_of(scope))
                elif isinstance(node, _COMPREHENSIONS) and name == "generators":
                    yield from self._walk_generator(child, node, scope if place == 0 else node)
                else:
                    yield from self._walk(child, inner)

    def _walk_generator(self, node: ast.AST, inner: ast.AST, of_values: _Scope) -> Iterator[ast.AST]:
        """Yield the nodes of one `for` in a comprehension. The first iterable belongs to the surrounding scope."""
        self._scopes[id(node)] = inner
        yield node
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self._walk(child, of_values if name == "iter" else inner)

    def _function_of(self, scope: _Scope) -> _Scope:
        """Return the scope in which `:=` binds a name: the surrounding function or file, not a comprehension."""
        while isinstance(scope, _COMPREHENSIONS):
            scope = self._parents[scope]
        return scope

    def _place(self, node: ast.AST) -> tuple[_Scope, str]:
        """Return the innermost scope that assigns to the name in a node, and the name."""
        scope, name = self._scopes[id(node)], getattr(node, "id", "")
        while scope is not None and (scope, name) not in self._bound:
            scope = self._parents[scope]
        return scope, name

    def is_bound(self, node: ast.Name) -> bool:
        """Return whether a surrounding function or the top of the file gives this name a value."""
        return self._place(node) in self._names or self._is_ours(node.id)

    def names_one_function(self, name: str) -> bool:
        """Return whether the name of a nested function has no other meaning in its scope or at the top of the file."""
        places = [place for place in self._nested if place[1] == name]
        return all(self._bound[place] == 1 for place in places) and (None, name) not in self._bound

    def _is_ours(self, name: str) -> bool:
        return name in self._functions or name in self._classes

    def _is_manager(self, node: ast.FunctionDef) -> bool:
        return [path_of(item, self._paths) for item in node.decorator_list] == [MANAGER]

    def function(self, node: ast.expr) -> ast.FunctionDef | None:
        """Return the function of the file that a name refers to, or None."""
        if not isinstance(node, ast.Name) or self.of(node) != "function":
            return None
        place = self._place(node)
        return self._functions.get(node.id) if place[0] is None else self._nested.get(place)

    def manager(self, node: ast.AST) -> ast.FunctionDef | None:
        """Return the function of the file from which a call makes a context manager, or None."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and self.of(node.func) == "manager":
            return self._functions.get(node.func.id)
        return None

    def is_whole(self, node: ast.AST) -> bool:
        """Return whether an expression returns a network that the running call has made, including all its layers.

        The expression makes such a network, or is a name that always refers to such a network and is not passed to
        other code. Other code could add a layer of another network.
        """
        is_name = isinstance(node, ast.Name) and self.of(node) == "new network"
        return self._makes_whole(node) or (is_name and self._place(node) not in self._shared)

    def _makes_whole(self, value: ast.AST | None) -> bool:
        """Return whether an expression makes a network, as a copy or from numbers and new networks."""
        if not isinstance(value, ast.Call):
            return False
        path = path_of(value.func, self._paths)
        if path == "copy.deepcopy":
            return True
        is_class = isinstance(value.func, ast.Name) and value.func.id in self._classes
        scalars = (*_SCALARS, *[""] * self._waits)
        return (is_class or self._gives(path) == "new network") and all(
            self.of(item) in scalars or self._makes_whole(item)
            for item in (*value.args, *(item.value for item in value.keywords))
        )

    def _note_shared(self, walked: Sequence[ast.AST]) -> None:
        """Record the names that may share their network with other objects.

        A name does not share its network if it is only indexed, called, passed to a library function, or returned.
        """
        alone: set[int] = set()
        for node in walked:
            match node:
                case ast.Attribute(value=ast.Name() as name) | ast.Subscript(value=ast.Name() as name):
                    alone.add(id(name))
                case ast.Return(value=ast.Name() as name) if self._place(name)[0] is self._scopes[id(node)]:
                    alone.add(id(name))
                case ast.Call(func=maker, args=arguments):
                    alone.add(id(maker))
                    if path_of(maker, self._paths) or getattr(maker, "id", "") in ("print", "isinstance", "len"):
                        alone.update(map(id, arguments))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = node.func.value
                if isinstance(owner, ast.Name) and f"{node.func.attr}()" in KINDS["new network"]:
                    self._shared.add(self._place(owner))
        for node in walked:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in alone:
                self._shared.add(self._place(node))

    def makes_networks(self, name: str) -> bool:
        """Return whether the instances of a class of the file are networks."""
        return name in self._classes and self._instance(name) == "network"

    def is_method(self, word: str, name: str) -> bool:
        """Return whether a class in the file whose instances have this kind has a method with this name."""
        return any(self._owners[method] == word for method in self._methods.get(name, []))

    def makes(self, node: ast.expr) -> bool:
        """Return whether an expression is the name of a container that only this function has made and uses."""
        kind = self.of(node)
        return (
            isinstance(node, ast.Name)
            and isinstance(kind, tuple)
            and kind[0] in ("list", "dict", "set")
            and self._place(node) not in self._aliases
        )

    def _makes(self, value: ast.AST | None) -> bool:
        match value:
            case ast.Call(func=maker):
                made = path_of(maker, self._paths).startswith("collections.")
                return made or getattr(maker, "id", "") in ("list", "dict", "set", "sorted")
            case ast.BinOp(left=left, right=right):
                return self._makes(left) or self._makes(right)
        return isinstance(
            value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp | ast.AugAssign
        )

    # --- Nodes that bind names ---

    def _put(self, store: dict, key: object, kind: ObjectKind) -> None:  # type: ignore[type-arg]
        joined = join(store.get(key, ""), kind)
        if key not in store or joined != store[key]:
            store[key] = joined
            self._changed = True

    def _bind(self, target: ast.AST | None, kind: ObjectKind, value: ast.AST | None = None) -> None:
        match target:
            case ast.Name(id=name):
                scope = self._scopes[id(target)]
                if not self._makes(value):
                    self._aliases.add((scope, name))
                if not self._makes_whole(value):
                    self._shared.add((scope, name))
                self._put(self._names, (scope, name), kind if scope else _keep(kind))
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                exact = isinstance(kind, tuple) and kind[0] == "pair" and len(kind) == len(parts) + 1
                for number, part in enumerate(parts):
                    if isinstance(part, ast.Starred):
                        self._bind(part.value, _nest("list", item_of(kind)))
                    else:
                        self._bind(part, kind[number + 1] if exact else item_of(kind))
            case ast.Subscript(value=owner, slice=place) if self._is_slice(place):
                self._fill(owner, item_of(kind))
            case ast.Subscript(value=owner, slice=key):
                self._fill(owner, kind, self.of(key))
            case ast.Attribute(value=ast.Name(id="self") as owner, attr=name):
                self._put(self.attributes, (base(self.of(owner)), name), _keep(kind))

    def _learn(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, self.of(value), value if len(targets) == 1 else None)
            case ast.AnnAssign(target=ast.Name(id=name) as target, value=value):
                kind = self.of(value) if value else ""
                self._bind(target, kind, value)
                if any(name in fields for fields in self._fields.values()):
                    self._put(self.attributes, ("own", name), _keep(kind))
            case ast.AnnAssign(target=target, value=value) if value:
                self._bind(target, self.of(value))
            case ast.NamedExpr(target=target, value=value):
                self._bind(target, self.of(value))
            case ast.AugAssign(target=target, value=value):
                self._bind(target, self._arithmetic(self.of(target), self.of(value)), node)
            case ast.For(target=target, iter=values) | ast.comprehension(target=target, iter=values):
                self._bind(target, item_of(self.of(values)))
            case ast.withitem(context_expr=maker, optional_vars=target):
                manager = self.manager(maker)
                self._bind(target, self._yields.get(manager, "") if manager else "unknown")
            case _:
                self._learn_definition(node)

    def _learn_definition(self, node: ast.AST) -> None:
        match node:
            case ast.ExceptHandler(name=str(name)):
                self._put(self._names, (self._scopes[id(node)], name), "error")
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                self._put(self._names, (self._scopes[id(node)], name), "unknown")
            case ast.FunctionDef():
                self._learn_function(node)
            case ast.Lambda():
                for argument in (part for part in ast.walk(node.args) if isinstance(part, ast.arg)):
                    self._put(self._names, (node, argument.arg), "unknown")
                    self._shared.add((node, argument.arg))
            case ast.Yield(value=value):
                scope = self._scopes[id(node)]
                if isinstance(scope, ast.FunctionDef):
                    self._put(self._yields, scope, self.of(value) if value else "none")
            case ast.Return(value=value):
                scope = self._scopes[id(node)]
                if isinstance(scope, ast.FunctionDef):
                    self._put(self._returns, scope, self.of(value) if value else "none")
            case ast.Call():
                self._learn_call(node)

    def _learn_function(self, node: ast.FunctionDef) -> None:
        """Set the kinds of a function's parameters from the harness's arguments, from its class, and from defaults."""
        scope = self._scopes[id(node)]
        if scope is not None:
            self._put(self._names, (scope, node.name), "function")
        of_harness = PROTOCOL.get(node.name, []) if scope is None else []
        self._give(node, [self._owners[node]] if node in self._owners else of_harness)
        arguments = node.args
        optional = _positional(node)[len(_positional(node)) - len(arguments.defaults) :]
        defaults = zip((*optional, *arguments.kwonlyargs), (*arguments.defaults, *arguments.kw_defaults), strict=True)
        for argument, default in defaults:
            self._put(self._names, (node, argument.arg), self.of(default) if default else "")
        for argument in (part for part in ast.walk(arguments) if isinstance(part, ast.arg)):
            self._put(self._names, (node, argument.arg), "")
            self._aliases.add((node, argument.arg))
            self._shared.add((node, argument.arg))

    def _learn_call(self, node: ast.Call) -> None:
        """Set the kinds of parameters from the arguments of a call, for every function in the file that it may call."""
        kind, name = self.of(node.func), getattr(node.func, "id", "")
        if (called := self.function(node.func) or self.manager(node)) is not None:
            self._pass(node, called, 0)
        elif kind == "class" and name in self._classes:
            for method in self._methods.get("__init__", []):
                if method in self._classes[name].body:
                    self._pass(node, method, 1)
            positional, named, spread = self._arguments_of(node)
            for place, field in enumerate(self._fields[name]):
                given = positional[place] if place < len(positional) else named.get(field, "")
                self._put(self.attributes, ("own", field), _keep(given if spread is None else spread))
        elif isinstance(node.func, ast.Attribute) and not path_of(node.func, self._paths):
            for method in self._methods.get(node.func.attr, []):
                self._pass(node, method, 1)
            self._learn_filling(node, node.func)
        if base(kind) in ("network", "new network", "part", "unknown"):
            for method in self._methods.get("forward", []):
                self._pass(node, method, 1)
        for argument in [*node.args, *(item.value for item in node.keywords)]:
            if (function := self.function(argument)) is not None:
                values = [item_of(self._elements([item])) for item in node.args if item is not argument]
                of_steps = path_of(node.func, self._paths) in LAMBDA_SCHEDULES
                self._give(function, ["number"] if of_steps else values or ["network"])

    def _learn_filling(self, node: ast.Call, function: ast.Attribute) -> None:
        """Set the kinds of a container's content, or of a network's attributes, when a method adds something to it."""
        kinds = [self._elements([item]) for item in (*node.args, *(item.value for item in node.keywords))]
        match function:
            case ast.Attribute(value=ast.Name(id="self"), attr="register_buffer") if node.args:
                self._put(self.attributes, ("network", str(getattr(node.args[0], "value", ""))), "tensor")
            case ast.Attribute(value=owner, attr="append" | "add" | "insert" | "setdefault") if kinds:
                self._fill(owner, kinds[-1], kinds[0])
            case ast.Attribute(value=owner, attr="extend" | "update"):
                self._fill(
                    owner,
                    join_all(part for kind in kinds for part in (kind, item_of(kind), *_entries(kind)))
                    if function.attr == "update"
                    else join_all(map(item_of, kinds)),
                )

    def _fill(self, owner: ast.expr, value: ObjectKind, key: ObjectKind = "") -> None:
        """Extend the kind of a named container by the kinds of a value and of its key that are put into it."""
        found, place = self.of(owner), self._place(owner)
        if place in self._names and base(found) in ("list", "set"):
            self._put(self._names, place, _nest(base(found), value))
        elif place in self._names and base(found) == "dict":
            self._put(self._names, place, _nest("dict", value, key or value))

    def _pass(self, node: ast.Call, function: ast.FunctionDef, first: int) -> None:
        """Set the kinds of a function's parameters, from number `first` on, to the kinds of the arguments in a call."""
        positional, named, spread = self._arguments_of(node)
        if spread is not None:
            for argument in (*_positional(function)[first:], *function.args.kwonlyargs):
                self._put(self._names, (function, argument.arg), spread)
            positional = [spread] * (len(_positional(function)) + 1)
        nothing: list[ObjectKind] = [""] * first
        self._give(function, nothing + positional)
        for argument in (*_positional(function), *function.args.kwonlyargs):
            if argument.arg in named:
                self._put(self._names, (function, argument.arg), named[argument.arg])

    def _arguments_of(self, node: ast.Call) -> tuple[list[ObjectKind], dict[str | None, ObjectKind], ObjectKind | None]:
        """Return the kinds of the positional arguments, the keyword arguments, and a `*` or `**` argument or None."""
        positional = [self.of(item) for item in node.args]
        named = {item.arg: self.of(item.value) for item in node.keywords}
        if None not in named and not any(isinstance(item, ast.Starred) for item in node.args):
            return positional, named, None
        return (
            positional,
            named,
            join_all(part for kind in (*positional, *named.values()) for part in (kind, item_of(kind))),
        )

    def _give(self, function: ast.FunctionDef, kinds: Sequence[ObjectKind]) -> None:
        for argument, kind in zip(_positional(function), kinds, strict=False):
            self._put(self._names, (function, argument.arg), kind)
        if function.args.vararg:
            for kind in kinds[len(_positional(function)) :]:
                self._put(self._names, (function, function.args.vararg.arg), _nest("list", kind))

    def _instance(self, name: str) -> ObjectKind:
        """Return the kind of a class's instances: "own" for a NamedTuple or a class without bases; else "network"."""
        bases = [path_of(item, self._paths) for item in self._classes[name].bases]
        return "own" if all(path == "typing.NamedTuple" for path in bases) else "network"

    # --- Expressions ---

    def of(self, node: ast.AST | None) -> ObjectKind:
        """Return the kind of an expression."""
        if not self._settled:
            return self._kind(node)
        if id(node) not in self._found:
            self._found[id(node)] = self._kind(node) or "unknown"
        return self._found[id(node)]

    def _kind(self, node: ast.AST | None) -> ObjectKind:
        match node:
            case None:
                return "none"
            case ast.Constant(value=value):
                return "none" if value is None else "text" if isinstance(value, str) else "number"
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Attribute(value=owner, attr=name):
                return "thing" if path_of(node, self._paths) else self._attribute(self.of(owner), name)
            case ast.Call():
                return self._call(node)
            case ast.Subscript(value=owner, slice=place):
                return self._entry(self.of(owner), place)
            case ast.JoinedStr() | ast.FormattedValue():
                return "text"
            case ast.Lambda():
                return "function"
        return self._operation(node)

    def _operation(self, node: ast.AST) -> ObjectKind:
        match node:
            case ast.BinOp(left=left, right=right):
                return self._arithmetic(self.of(left), self.of(right))
            case ast.UnaryOp(operand=operand):
                return self._arithmetic(self.of(operand), "number")
            case ast.Compare(left=left, comparators=others):
                kinds = [self.of(item) for item in (left, *others)]
                if self._waits and "" in kinds:
                    return ""
                return "new tensor" if any(base(kind) not in _SCALARS for kind in kinds) else "number"
            case ast.BoolOp(values=values):
                return self._join(values)
            case ast.IfExp(body=first, orelse=second):
                return self._join([first, second])
            case ast.NamedExpr(value=value) | ast.Starred(value=value):
                return self.of(value)
        return self._display(node)

    def _display(self, node: ast.AST) -> ObjectKind:
        match node:
            case ast.List(elts=parts):
                return _nest("list", self._elements(parts))
            case ast.Set(elts=parts):
                return _nest("set", self._elements(parts))
            case ast.Tuple(elts=parts):
                if any(isinstance(part, ast.Starred) for part in parts):
                    return _nest("list", self._elements(parts))
                return _nest("pair", *map(self.of, parts))
            case ast.Dict(keys=keys, values=values):
                pairs = [(self.of(key), self.of(value)) for key, value in zip(keys, values, strict=True) if key]
                tables = [item_of(self.of(value)) for key, value in zip(keys, values, strict=True) if not key]
                return _nest(
                    "dict",
                    join_all([*(value for _, value in pairs), *tables]),
                    join_all([*(key for key, _ in pairs), *tables]),
                )
            case ast.ListComp(elt=element):
                return _nest("list", self.of(element))
            case ast.SetComp(elt=element):
                return _nest("set", self.of(element))
            case ast.GeneratorExp(elt=element):
                return _nest("iterator", self.of(element))
            case ast.DictComp(key=key, value=value):
                return _nest("dict", self.of(value), self.of(key))
        return "unknown"

    def _arithmetic(self, first: ObjectKind, second: ObjectKind) -> ObjectKind:
        return "" if self._waits and not (first and second) else _arithmetic(first, second)

    def _join(self, nodes: Sequence[ast.expr]) -> ObjectKind:
        return join_all([self.of(node) for node in nodes])

    def _elements(self, nodes: Sequence[ast.expr]) -> ObjectKind:
        kinds = [item_of(self.of(node)) if isinstance(node, ast.Starred) else self.of(node) for node in nodes]
        return join_all(kinds)

    def _name(self, node: ast.Name, name: str) -> ObjectKind:
        if name in self._paths:
            return "thing"
        if (place := self._place(node)) in self._names:
            return self._names[place]
        if name in self._functions:
            return "manager" if self._functions[name] in self._managers else "function"
        if name in self._classes:
            return "class"
        if name in TYPES | FUNCTIONS | ERRORS | {"super"}:
            return "builtin"
        return "text" if name == "__name__" else ""

    def _attribute(self, kind: ObjectKind, name: str) -> ObjectKind:
        if not kind:
            return ""
        word = base(kind).removeprefix("new ")
        if name in KINDS.get(word, {}):
            return KINDS[word][name]
        own = join_all([found for (_, other), found in self.attributes.items() if other == name])
        return own if word in ("own", "network") and own else join(own, HARMLESS_ATTRIBUTES.get(name, "unknown"))

    def _entry(self, kind: ObjectKind, place: ast.expr) -> ObjectKind:
        if kind == "group":
            return GROUP_KEYS.get(place.value, "group") if isinstance(place, ast.Constant) else "group"
        if isinstance(kind, tuple) and kind[0] in ("dict", "table"):
            return kind[1]
        if self._is_slice(place):
            return ("list", item_of(kind)) if base(kind) in ("kept", "pair") else kind
        index = place.value if isinstance(place, ast.Constant) else None
        exact = base(kind) == "pair" and isinstance(index, int) and 0 <= index < len(kind) - 1
        return kind[index + 1] if exact and isinstance(kind, tuple) and isinstance(index, int) else item_of(kind)

    def _is_slice(self, place: ast.expr) -> bool:
        return isinstance(place, ast.Slice) or self.of(place) == "slice"

    def _call(self, node: ast.Call) -> ObjectKind:
        path, name = path_of(node.func, self._paths), getattr(node.func, "id", "")
        given = [self.of(item) for item in node.args]
        spread = any(isinstance(item, ast.Starred) for item in node.args)
        if spread:  # the number of arguments is unknown, and each may have any of these kinds
            given = [join_all([self._elements([item]) for item in node.args])]
        first: ObjectKind = given[0] if given else "none"
        if path.startswith("copy."):
            return f"new {first}" if path == "copy.deepcopy" and first in ("network", "tensor") else first
        if path.startswith("collections."):
            return self._table(node, name_of(path), given)
        if path:
            return self._gives(path)
        callee = self.of(node.func)
        if callee == "function":
            function = self.function(node.func)
            return self._returns.get(function, "") if function else "unknown"
        if callee == "class" and name in self._classes:
            kind = self._instance(name)
            return "new network" if kind == "network" else kind
        if callee == "builtin":
            one = self._builtin(node, name, given, first)
            several = spread and name != "zip"
            return join(one, self._builtin(node, name, given * 2, first)) if several else one
        if isinstance(node.func, ast.Attribute):
            return self._method(self.of(node.func.value), node.func.attr)
        if base(callee) in ("network", "new network"):
            own = join_all([self._returns.get(method, "") for method in self._methods.get("forward", [])])
            return join(own, "tensor")
        return "unknown" if callee else ""

    def _gives(self, path: str) -> ObjectKind:
        """Return the kind of the result of a library function."""
        fitting = [start for start in GIVES if path == start or (start[-1] == "." and path.startswith(start))]
        return GIVES[max(fitting, key=len)] if fitting else "unknown"

    def _table(self, node: ast.Call, name: str, given: Sequence[ObjectKind]) -> ObjectKind:
        """Return the kind of a dictionary that a call makes from pairs, from another dictionary, or from keywords."""
        if name == "Counter":
            return _nest("dict", "number", join_all(map(item_of, given)))
        if name == "defaultdict":
            made = getattr(node.args[0], "id", "") if node.args else ""
            value: ObjectKind = (
                (made, "") if made in ("list", "set") else "number" if made in ("int", "float") else "unknown"
            )
            return _nest("dict", value, "")
        parts = [_entries(kind) for kind in given]
        named = [self.of(item.value) for item in node.keywords]
        return _nest(
            "dict",
            join_all([*(value for value, _ in parts), *named]),
            join_all([*(key for _, key in parts), *(["text"] if named else [])]),
        )

    def _builtin(self, node: ast.Call, name: str, given: list[ObjectKind], first: ObjectKind) -> ObjectKind:
        if name in BUILTINS:
            return BUILTINS[name]
        if name in ERRORS:
            return "error"
        match name:
            case "zip":
                return _nest("iterator", _nest("pair", *map(item_of, given)))
            case "enumerate":
                return _nest("iterator", _nest("pair", "number", item_of(first)))
            case "list" | "sorted" | "tuple":
                return _nest("list", item_of(first) if given else "")
            case "set" | "frozenset":
                return _nest("set", item_of(first) if given else "")
            case "dict":
                return self._table(node, name, given)
            case "iter" | "reversed":
                return _nest("iterator", item_of(first))
            case "filter" if len(given) > 1:
                return _nest("iterator", item_of(given[1]))
            case "map":
                function = self.function(node.args[0]) if node.args else None
                found = self._returns.get(function, "") if function else join("unknown", join_all(given[1:]))
                return _nest("iterator", found)
            case "next" | "sum":
                return join_all([item_of(first), *given[1:]])
            case "min" | "max":
                return join_all(given) if len(given) > 1 else item_of(first)
        return "unknown"

    def _method(self, kind: ObjectKind, name: str) -> ObjectKind:
        if not kind:
            return ""
        returned = join_all([self._returns.get(method, "") for method in self._methods.get(name, [])])
        word = base(kind)
        if word == "own":
            return returned
        found = KINDS.get(word, {}).get(f"{name}()") or KINDS.get(word.removeprefix("new "), {}).get(f"{name}()")
        if found is None:
            found = HARMLESS_METHODS.get(name) if name in HARMLESS_METHODS else returned or "unknown"
        if not found:
            match name:
                case "items" if isinstance(kind, tuple) and kind[0] in ("dict", "table"):
                    found = _nest("iterator", _nest("pair", *reversed(kind[1:])))
                case "items":
                    found = _nest("iterator", _nest("pair", "unknown", item_of(kind)))
                case "keys":
                    found = _nest("iterator", item_of(kind))
                case "values":
                    found = _nest("iterator", self._entry(kind, ast.Constant("")))
                case "split":
                    found = ("list", "text" if word == "text" else "tensor")
                case "get" | "pop" | "setdefault":
                    found = self._entry(kind, ast.Constant(None))
                case _:
                    found = kind
        return join(found, returned)


def name_of(path: str) -> str:
    """Return the last part of a dotted path."""
    return path.rpartition(".")[2]


def _positional(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args]


def _entries(kind: ObjectKind) -> tuple[ObjectKind, ObjectKind]:
    """Return the kinds of values and keys in a dictionary that is made from an object of this kind."""
    if isinstance(kind, tuple) and kind[0] in ("dict", "table"):
        return kind[1], kind[2]
    either = item_of(item_of(kind))
    return either, either


def names_bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the names to which a node assigns a value, except for imports."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name


def _keep(kind: ObjectKind) -> ObjectKind:
    """Return the kind of an object after it is stored; no call may then change the object any more."""
    if isinstance(kind, str):
        return kind.removeprefix("new ")
    kept = {"list": "kept", "set": "kept", "dict": "table"}
    return (kept.get(base(kind), base(kind)), *map(_keep, kind[1:]))


def _arithmetic(first: ObjectKind, second: ObjectKind) -> ObjectKind:
    """Return the kind of the result of an arithmetic operation on two objects."""
    if not (first and second):
        return first or second
    for word in _OPAQUE:
        if holds(first, word) or holds(second, word):
            return join(first, second) if base(first) == base(second) else word
    words_of = {base(kind).removeprefix("new ") for kind in (first, second)}
    if "text" in words_of:
        return "text"
    if words_of & {"tensor", "parameter"} and words_of <= {"tensor", "parameter", "number", "unknown", "none"}:
        return "new tensor"
    if words_of == {"number"}:
        return "number"
    containers = words_of & {"list", "kept", "pair", "dict", "table", "set"}
    if containers:
        return _combine(first, second, containers)
    return "unknown"


def _combine(first: ObjectKind, second: ObjectKind, containers: set[str]) -> ObjectKind:
    """Return the kind of the result when two containers are added, or one is repeated with `*`."""
    parts = [item_of(kind) for kind in (first, second) if isinstance(kind, tuple)]
    if containers <= {"dict", "table"}:
        return _nest("dict", join_all(parts), join_all(parts))
    return _nest("set" if containers == {"set"} else "list", join_all(parts))
