"""What a file changes: other people's objects, and its own from one call to the next.

An experiment that keeps count of its calls can behave in training and differently when it is probed.
"""

import ast

from grader.syntax.program import Found, Program
from grader.syntax.torch_names import words

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

KEEPS = "keeps something from one call to the next, so that it may behave differently when it is probed"
# What is set on tensors, layers and optimizers in ordinary training.
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


def check_stores(program: Program) -> Found:
    """Find what is put into modules, or onto objects that the harness uses."""
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
            what = f"puts something of its own in the place of {node.attr[:60]}"
            yield node.lineno, "patch", f"{what}, on an object that is not its own"


def _is_named(node: ast.expr, known: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in known


def _own_objects(program: Program) -> set[str]:
    """Return `self`, and the names that are bound to new objects of the file's own classes alone."""
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
    """Find functions that change what outlives their call: names from outside, or default arguments."""
    for node in program.nodes:
        if isinstance(node, ast.Global | ast.Nonlocal):
            yield node.lineno, "state", KEEPS
        elif isinstance(node, ast.ExceptHandler) and _catches_everything(node):
            yield node.lineno, "except", "catches every exception, also those that stop a run"
    containers, methods = _containers(program), _later_methods(program)
    for function in program.nodes:
        if not isinstance(function, _Function):
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
    """Return the methods that may be called again and again: all but those that set an object up."""
    return {
        id(item)
        for node in program.nodes
        if isinstance(node, ast.ClassDef)
        for item in node.body
        if isinstance(item, _Function) and getattr(item, "name", "") not in ("__init__", "__post_init__")
    }


def _catches_everything(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        kind is None or (isinstance(kind, ast.Name) and kind.id in ("BaseException", "Exception"))
        for kind in kinds
    ) and not any(isinstance(node, ast.Raise) for node in ast.walk(handler))


def _containers(program: Program) -> frozenset[str]:
    """Return the names that are bound to something whose `update` keeps what it is given."""
    found = set()
    for node in program.nodes:
        if not isinstance(node, ast.Assign):
            continue
        made = node.value.func if isinstance(node.value, ast.Call) else node.value
        plain = isinstance(made, ast.Dict | ast.Set | ast.DictComp | ast.SetComp)
        if plain or (isinstance(made, ast.Name) and made.id in ("dict", "set", "Counter", "defaultdict")):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(found)


def _mutable_defaults(function: _Function) -> set[str]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return {a.arg for a, value in pairs if value is not None and not isinstance(value, ast.Constant)}


def _bound_in(function: _Function) -> set[str]:
    """Return the names that are a function's own: its arguments, and whatever it binds."""
    bound = set()
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
    return bound


def _changed(node: ast.AST) -> str:
    """Return the name whose object a node changes in place, or draws from; else ""."""
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
    """Return the name whose object a function of a module writes into: `torch.add(a, b, out=c)`, `init.ones_(c)`."""
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
