"""One spelling for calls that do the same: names of arguments, defaults, functions and methods, modules of losses."""

import ast
from collections.abc import Sequence, Set

from grader.syntax.constants import is_literal
from grader.syntax.names import SurePaths, read_sure_paths
from grader.syntax.signatures import AS_METHODS, FUNCTIONS, METHODS, MODULES, Signature
from grader.syntax.trees import bindings, copied

# No name of a source has a space in it.
_TORCH = " torch"
# `torch.optim.lr_scheduler.StepLR` and one more: longer paths are made to grow.
_MOST_DOTS = 4
_MAY_ACT = ast.Call | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom


def with_calls_alike(tree: ast.Module) -> ast.Module:
    """Return a copy in which calls of torch's functions are spelled in one way; to measure an edit, not to run it.

    Arguments have names or not as `grader.syntax.signatures` has it, and stand in its order; defaults are left
    out. What is imported stands under its own path, `torch.mean(x)` is `x.mean()`, `nn.MSELoss()(x, y)` is
    `F.mse_loss(x, y)`, `x.train(False)` is `x.eval()`, `x.shape[0]` is `len(x)`, `f(*[a, b])` is `f(a, b)`. A name
    that the file binds more than once is no import, and a method that it defines itself is not torch's.
    """
    plain = copied(tree)
    plain.body.insert(0, ast.Import(names=[ast.alias(name="torch", asname=_TORCH)]))
    spelled: ast.Module = _Spell(read_sure_paths(plain), _methods_of_its_own(plain)).visit(plain)
    return spelled


def _methods_of_its_own(tree: ast.Module) -> set[str]:
    """Return what may be a method here that is not torch's: all functions, what classes hold, attributes set."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found.update(bindings(node))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            found.add(node.attr)
    return found


class _Spell(ast.NodeTransformer):
    def __init__(self, sure: SurePaths, own_methods: Set[str]) -> None:
        self._path_of, self._bound, self._own_methods = sure.path_of, sure.bound, own_methods

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        node.args = [inner for item in node.args for inner in _spread(item)]
        if any(isinstance(item, ast.Starred) for item in node.args) or not all(k.arg for k in node.keywords):
            return node
        node = self._function_of_module(node)
        path = self._path_of(node.func)
        if path in FUNCTIONS:
            _arrange(node, FUNCTIONS[path])
        if path in AS_METHODS and AS_METHODS[path] not in self._own_methods:
            node = _method(node, AS_METHODS[path])
        match node.func:
            case ast.Attribute(attr=name) if name in METHODS and name not in self._own_methods:
                if not self._path_of(node.func):
                    _arrange(node, METHODS[name])
                    return _eval_mode(node)
        return self._length(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._under_its_path(node) or node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        found = self._under_its_path(node)
        if found is None:
            self.generic_visit(node)
        return found or node

    def _under_its_path(self, node: ast.Name | ast.Attribute) -> ast.expr | None:
        if not isinstance(node.ctx, ast.Load):
            return None
        path = self._path_of(node)
        known = path.startswith("torch.") and path.count(".") <= _MOST_DOTS
        return _torch(path.removeprefix("torch.")) if known else None

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Subscript(
                value=ast.Attribute(value=value, attr="shape"), slice=ast.Constant(value=0), ctx=ast.Load()
            ):
                return self._len(value) or node
        return node

    def _length(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(
                func=ast.Attribute(value=value, attr="size"), args=[ast.Constant(value=0)], keywords=[]
            ):
                return self._len(value) or node
        return node

    def _len(self, value: ast.expr) -> ast.expr | None:
        if "len" in self._bound:
            return None
        return ast.Call(func=ast.Name(id="len", ctx=ast.Load()), args=[value], keywords=[])

    def _function_of_module(self, node: ast.Call) -> ast.Call:
        """Return `F.mse_loss(x, y)` for `nn.MSELoss()(x, y)`; a module that holds more than constants stays one."""
        if not isinstance(node.func, ast.Call) or node.keywords:
            return node
        made = node.func
        name = MODULES.get(self._path_of(made.func), "")
        constant = all(is_literal(item.value) for item in made.keywords)
        if not name or made.args or not constant or len(node.args) != (1 if "softmax" in name else 2):
            return node
        return ast.Call(func=_torch(f"nn.functional.{name}"), args=node.args, keywords=made.keywords)


def _torch(path: str) -> ast.expr:
    node: ast.expr = ast.Name(id=_TORCH, ctx=ast.Load())
    for part in path.split("."):
        node = ast.Attribute(value=node, attr=part, ctx=ast.Load())
    return node


def _spread(item: ast.expr) -> Sequence[ast.expr]:
    match item:
        case ast.Starred(value=ast.List(elts=several) | ast.Tuple(elts=several)):
            return several
    return [item]


def _arrange(call: ast.Call, signature: Signature) -> None:
    """Put the arguments of a call in the order of its signature, named or not as that has it; in place."""
    if len(call.args) > len(signature.positional):
        return
    given = dict(zip(signature.positional, call.args, strict=False))
    named = {item.arg: item.value for item in call.keywords if item.arg is not None}
    if given.keys() & named.keys() or not named.keys() <= set(signature.keywords):
        return
    before = [*given.values(), *named.values()]
    given |= named
    plain = signature.positional[: signature.plain]
    if not all(name in given for name in plain):
        return
    after = [given[name] for name in signature.keywords if name in given]
    if [item for item in before if _may_act(item)] != [item for item in after if _may_act(item)]:
        return  # they would act in another order
    call.args = [given[name] for name in plain]
    call.keywords = [
        ast.keyword(arg=name, value=given[name])
        for name in signature.keywords[signature.plain :]
        if name in given and not _same_constant(given[name], signature.defaults.get(name))
    ]


def _may_act(node: ast.expr) -> bool:
    return any(isinstance(inner, _MAY_ACT) for inner in ast.walk(node))


def _same_constant(given: ast.expr, default: ast.expr | None) -> bool:
    if default is None:
        return False
    try:
        ours, theirs = ast.literal_eval(default), ast.literal_eval(given)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    kinds = {type(item) for item in (ours, theirs)}
    return bool(ours == theirs) and (len(kinds) == 1 or kinds == {int, float})


def _method(call: ast.Call, name: str) -> ast.Call:
    """Return `x.mean(...)` for `torch.mean(x, ...)`."""
    rest = [item for item in call.keywords if item.arg != "input"]
    first = call.args[:1] or [item.value for item in call.keywords if item.arg == "input"]
    if not first or {item.arg for item in rest} - set(METHODS[name].keywords):
        return call
    return ast.Call(
        func=ast.Attribute(value=first[0], attr=name, ctx=ast.Load()), args=call.args[1:], keywords=rest
    )


def _eval_mode(call: ast.Call) -> ast.Call:
    """Return `x.eval()` for `x.train(False)`: that is how torch has it."""
    match call:
        case ast.Call(
            func=ast.Attribute(value=value, attr="train"),
            args=[],
            keywords=[ast.keyword(arg="mode", value=ast.Constant(value=False))],
        ):
            return ast.Call(
                func=ast.Attribute(value=value, attr="eval", ctx=ast.Load()), args=[], keywords=[]
            )
    return call
