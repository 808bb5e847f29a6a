"""What a file changes: objects that are not its own, and anything that it keeps from one call to the next.

An experiment that counts its calls can train in one way and behave in another way when a check examines it. It can
count with a variable, with an iterator or a layer that it makes once (`for n in TICKS: break`), or with a note on an
object of the harness.
"""

import ast

from grader.syntax.allowed_names import words
from grader.syntax.names import Found, Program
from grader.syntax.trees import Function, attributes_in, names_in

_Callable = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

KEEPS = "keeps something from one call to the next, so that it may behave differently when it is probed"
# Attributes that ordinary training code sets on tensors, layers and optimizers.
_ORDINARY = words(
    """
    bias data dropout eps grad inplace last_epoch lr momentum p padding requires_grad stride training weight
    """
)
_CHANGING = words(
    """
    add append appendleft clear difference_update discard extend extendleft insert intersection_update move_to_end pop
    popitem popleft remove reverse rotate send setdefault sort subtract symmetric_difference_update update
    """
)
_ITERATORS = frozenset({"enumerate", "filter", "iter", "map", "reversed", "zip"})
# Functions that read an iterator to its end.
_TAKES_ALL = frozenset(
    {"all", "any", "dict", "frozenset", "list", "max", "min", "print", "set", "sorted", "sum", "tuple"}
)
# Objects that change when they are called, or that count.
_COUNTING = ("torch.optim.", "itertools.", "torch.nn.BatchNorm", "torch.nn.InstanceNorm", "torch.nn.SyncBatchNorm",
             "torch.nn.LazyBatchNorm", "torch.nn.LazyInstanceNorm", "contextlib.ExitStack")  # fmt: skip
# Keys that ordinary code sets in an optimizer's groups of parameters; any other key keeps a note.
_GROUP_KEYS = words(
    """
    amsgrad betas capturable dampening eps foreach fused initial_lr lr maximize momentum nesterov params weight_decay
    """
)
_ATTACHING = frozenset({"add_module", "register_buffer", "register_module", "register_parameter"})


def check_stores(program: Program) -> Found:
    """Find assignments to attributes of modules, or of objects that the harness uses."""
    own = _own_objects(program)
    for node in program.nodes:
        if not isinstance(node, ast.Attribute | ast.Subscript) or isinstance(node.ctx, ast.Load):
            continue
        base: ast.expr = node
        while isinstance(base, ast.Subscript):
            base = base.value
        path = next(iter(sorted(program.names.paths_of(base))), "")
        if path:
            yield node.lineno, "patch", f"changes {path[:60]}, which is not the experiment's own"
        elif (
            isinstance(node, ast.Attribute) and node.attr not in _ORDINARY and not _is_named(node.value, own)
        ):
            yield node.lineno, "patch", f"sets {node.attr[:60]} on an object that is not its own"


def _is_named(node: ast.expr, known: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in known


def _own_objects(program: Program) -> set[str]:
    """Return `self`, and the names that are only bound to new objects of the file's own classes."""
    classes = {node.name for node in program.nodes if isinstance(node, ast.ClassDef)}
    own, other = set(), set()
    for node in program.nodes:
        if isinstance(node, ast.arg):
            other.add(node.arg)
        elif isinstance(node, ast.Assign):
            made = node.value.func if isinstance(node.value, ast.Call) else None
            bound = {target.id for target in node.targets if isinstance(target, ast.Name)}
            if isinstance(made, ast.Name) and made.id in classes:
                own |= bound
            else:
                other |= bound
    return (own - other) | {"self"}


def check_kept_state(program: Program) -> Found:
    """Find functions that change something which outlives their call: outer names or default arguments."""
    for node in program.nodes:
        if isinstance(node, ast.Global | ast.Nonlocal):
            yield node.lineno, "state", KEEPS
        elif isinstance(node, ast.ExceptHandler) and _catches_everything(node):
            yield node.lineno, "except", "catches every exception, also those that stop a run"
    containers, methods = _containers(program), _later_methods(program)
    for function in program.nodes:
        if not isinstance(function, _Callable):
            continue
        kept = _mutable_defaults(function)
        local = _bound_in(function) - kept - ({"self"} if id(function) in methods else set())
        for node in ast.walk(function):
            name = _written_to(node, program) or _changed(node)
            if (
                name
                and name not in local
                and not program.names.paths.get(name)
                and (name in kept | containers or not _is_update(node))
            ):
                yield getattr(node, "lineno", function.lineno), "state", KEEPS


def _later_methods(program: Program) -> set[int]:
    """Return the methods that may run many times: all except those that set up an object."""
    return {
        id(item)
        for node in program.nodes
        if isinstance(node, ast.ClassDef)
        for item in node.body
        if isinstance(item, _Callable) and getattr(item, "name", "") not in ("__init__", "__post_init__")
    }


def _catches_everything(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        kind is None or (isinstance(kind, ast.Name) and kind.id in ("BaseException", "Exception"))
        for kind in kinds
    ) and not any(isinstance(node, ast.Raise) for node in ast.walk(handler))


def _containers(program: Program) -> frozenset[str]:
    """Return the names that are bound to a container, whose `update` keeps its arguments."""
    found = set()
    for node in program.nodes:
        if not isinstance(node, ast.Assign):
            continue
        made = node.value.func if isinstance(node.value, ast.Call) else node.value
        plain = isinstance(made, ast.Dict | ast.Set | ast.DictComp | ast.SetComp)
        if plain or (isinstance(made, ast.Name) and made.id in ("dict", "set", "Counter", "defaultdict")):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(found)


def _mutable_defaults(function: _Callable) -> set[str]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return {a.arg for a, value in pairs if value is not None and not isinstance(value, ast.Constant)}


def _bound_in(function: _Callable) -> set[str]:
    """Return the names of a function's arguments and of everything that it binds."""
    bound = set()
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
    return bound


def _changed(node: ast.AST) -> str:
    """Return the name of the object that a node changes in place or takes an item from, or ""."""
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr=method)) if _changes(method):
            return _root(base)
        case ast.Call(func=ast.Name(id="next"), args=[base, *_]):
            return _root(base)
        case ast.Subscript(value=base, ctx=ast.Store() | ast.Del()):
            return _root(base)
        case ast.Attribute(value=base, ctx=ast.Store() | ast.Del()):
            return _root(base)
    return ""


def _written_to(node: ast.AST, program: Program) -> str:
    """Return the name of the object that a library function writes to: `torch.add(a, b, out=c)`, `init.ones_(c)`."""
    if not isinstance(node, ast.Call):
        return ""
    for keyword in node.keywords:
        if keyword.arg in ("out", "running_mean", "running_var"):
            return _root(keyword.value)
        if keyword.arg == "inplace" and node.args:
            return _root(node.args[0])
    if node.args and any(path.endswith("_") for path in program.names.paths_of(node.func)):
        return _root(node.args[0])
    return ""


def _changes(method: str) -> bool:
    # A gradient scaler unscales what an optimizer holds, not itself.
    return method in _CHANGING or (method.endswith("_") and method != "unscale_")


def _is_update(node: ast.AST) -> bool:
    # A gradient scaler has one too.
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "update"


def _root(base: ast.expr) -> str:
    while isinstance(base, ast.Attribute | ast.Subscript):
        base = base.value
    return base.id if isinstance(base, ast.Name) else ""


def check_counters(program: Program) -> Found:
    """Find objects that count and outlive a call, because the module or a default argument makes them."""
    functions = {node.name: node for node in program.nodes if isinstance(node, Function)}
    classes = {node.name: node for node in program.nodes if isinstance(node, ast.ClassDef)}
    taken = _taken_at_once(program)
    waiting: list[ast.AST] = _made_once(program)
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if id(node) not in taken and _counts(node, program):
            yield getattr(node, "lineno", 1), "state", KEEPS
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            # A function that the module calls runs once too, and its result stays.
            waiting += [item for item in (functions.get(node.id), classes.get(node.id)) if item is not None]
        waiting += ast.iter_child_nodes(node)


def _made_once(program: Program) -> list[ast.AST]:
    """Return the code that runs once: statements of the module and of classes, and default arguments."""
    inside = {
        id(item)
        for node in program.nodes
        if isinstance(node, _Callable)
        for part in (node.body if isinstance(node.body, list) else [node.body])
        for item in ast.walk(part)
    }
    once: list[ast.AST] = []
    for node in program.nodes:
        if isinstance(node, _Callable):
            once += [item for item in (*node.args.defaults, *node.args.kw_defaults) if item is not None]
        elif isinstance(
            node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.Expr | ast.For
        ):
            once += [node] if id(node) not in inside else []
    return once


def _taken_at_once(program: Program) -> set[int]:
    """Return the iterators that are read to their end at once."""
    taken: set[int] = set()
    for node in program.nodes:
        match node:
            case ast.For(iter=iterator) | ast.comprehension(iter=iterator) | ast.Starred(value=iterator):
                taken.add(id(iterator))
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in _TAKES_ALL:
                taken |= {id(item) for item in arguments}
            case ast.Call(func=ast.Attribute(attr="join"), args=arguments):
                taken |= {id(item) for item in arguments}
    return taken


def _counts(node: ast.AST, program: Program) -> bool:
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.GeneratorExp | ast.Yield | ast.YieldFrom)
    if isinstance(node.func, ast.Name) and node.func.id in _ITERATORS:
        return True
    return any(path.startswith(_COUNTING) for path in program.names.paths_of(node.func))


def check_notes(program: Program) -> Found:
    """Find notes on objects that the harness passes to a function: in an optimizer's groups, or on a network."""
    groups = {
        node.target.id
        for node in program.nodes
        if isinstance(node, ast.For | ast.comprehension)
        and isinstance(node.target, ast.Name)
        and "param_groups" in attributes_in(node.iter)
    }
    for node in program.nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            named = set(names_in(node.value))
            inside = attributes_in(node.value)
            key = node.slice.value if isinstance(node.slice, ast.Constant) else ""
            if inside & {"state", "defaults"} or (
                key not in _GROUP_KEYS and ("param_groups" in inside or named & groups)
            ):
                yield node.lineno, "state", KEEPS
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            own = isinstance(node.func.value, ast.Name) and node.func.value.id == "self"
            if node.func.attr in _ATTACHING and not own:
                yield node.lineno, "state", KEEPS
