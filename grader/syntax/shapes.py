"""Forms of code that are plain only as a whole: one node of them says too little.

Each function finds one form and returns the nodes that their surroundings make plain, by `id`. Whatever stands in
another form stays uncovered.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence

from grader.intake.program import blocks, does_nothing, path_of
from grader.syntax.grammar import MANAGER, words

# Memory that nobody has filled holds what was freed before: a number there can survive from one call to the next.
UNFILLED = words("torch.Tensor torch.empty torch.empty_like")
TYPES = words("torch.Tensor")
_UNFILLED_METHODS = words("new_empty")
# Methods that write every entry of a tensor.
_FILLERS = words("bernoulli_ copy_ exponential_ fill_ normal_ random_ uniform_ zero_")
_PARAMETER = words("torch.nn.Parameter torch.nn.parameter.Parameter")


def yields_of_managers(tree: ast.Module, paths: Mapping[str, str]) -> set[int]:
    """Return the `yield`s of context managers: a function at the top, decorated by `contextmanager`, with one `yield`.

    `with` runs such a function up to its `yield` and, whatever happens in the block, on from there: the same statements
    around the block would do the same. It is a statement in the function's body, or in the body of a `try` there that
    has only a `finally`, so that it runs once and catches nothing. The generator itself has no name: only `with` may
    call the function (`_Judge._check_Name`).
    """
    found = set()
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and [path_of(it, paths) for it in function.decorator_list] == [
            MANAGER
        ]:
            yields = [node for node in ast.walk(function) if isinstance(node, ast.Yield | ast.YieldFrom)]
            tried = [item for item in function.body if isinstance(item, ast.Try) and not item.handlers]
            places = [item for block in (function.body, *(part.body for part in tried)) for item in block]
            statements = {id(item.value) for item in places if isinstance(item, ast.Expr)}
            if len(yields) == 1 and id(yields[0]) in statements:
                found.add(id(yields[0]))
    return found


def filled_at_once(tree: ast.Module, paths: Mapping[str, str]) -> set[int]:
    """Return the calls like `torch.empty(...)` whose tensor is overwritten before anything can read it.

    Either a method fills it (`torch.empty(3).normal_()`), or `nn.init` gets it, or it goes to a name or an attribute,
    alone or as a parameter, that one of the next statements fills, while those between only assign to others. In a
    `try` that catches errors, the name could be read after a filling that failed.

    Two lines that undo an order count as filling: `x = torch.empty_like(order); x[order] = ...` and `x =
    torch.empty_like(y); x[order] = y`. Of an order with gaps some entries stay as they were, which no other form lets
    happen; they are what the memory held, so such a program need not repeat to the byte.
    """
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found.update(id(item) for item in _filled_by(node, paths) if is_unfilled(item, paths))
    caught = {id(part) for node in ast.walk(tree) if isinstance(node, ast.Try) for part in ast.walk(node)}
    for node in ast.walk(tree):
        for block in blocks(node) if id(node) not in caught else ():
            for place, item in enumerate(block):
                made = _made_by(item, paths)
                following = block[place + 1 :]
                if made is None or not is_unfilled(made, paths):
                    continue
                if _is_filled_by(item, following, paths) or _undoes_order(item, following[:1], paths):
                    found.add(id(made))
    return found


def is_unfilled(node: ast.AST, paths: Mapping[str, str]) -> bool:
    """Return whether an expression makes a tensor and fills nothing in."""
    if not isinstance(node, ast.Call):
        return False
    path = path_of(node.func, paths)
    if path == "torch.Tensor":
        # Of numbers it makes a tensor of that shape, of a list a tensor of those numbers.
        return not (len(node.args) == 1 and isinstance(node.args[0], ast.List | ast.Tuple | ast.ListComp))
    return path in UNFILLED or (not path and getattr(node.func, "attr", "") in _UNFILLED_METHODS)


def _filled_by(node: ast.Call, paths: Mapping[str, str]) -> Iterator[ast.expr]:
    """Yield the expression whose tensor a call fills, if any."""
    path = path_of(node.func, paths)
    if path.startswith("torch.nn.init.") and path.endswith("_") and node.args:
        yield node.args[0]
    elif not path and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLERS:
        yield node.func.value


def _made_by(item: ast.stmt, paths: Mapping[str, str]) -> ast.expr | None:
    """Return what an assignment to one name, or to an attribute of `self`, makes; for a parameter, its tensor."""
    match item:
        case ast.Assign(targets=[ast.Name() | ast.Attribute(value=ast.Name(id="self"))], value=value):
            if isinstance(value, ast.Call) and path_of(value.func, paths) in _PARAMETER and value.args:
                return value.args[0]
            return value
    return None


def _is_filled_by(item: ast.stmt, following: Sequence[ast.stmt], paths: Mapping[str, str]) -> bool:
    """Return whether one of the next statements fills what an assignment has made, before any other use of it."""
    assert isinstance(item, ast.Assign)
    target = ast.unparse(item.targets[0])
    for other in following:
        match other:
            case ast.Expr(value=ast.Call() as call):
                arguments = [*call.args[1:], *(part.value for part in call.keywords)]
                used = {ast.unparse(part) for argument in arguments for part in ast.walk(argument)}
                return any(ast.unparse(part) == target for part in _filled_by(call, paths)) and target not in used
            case ast.Assign(targets=[ast.Name() | ast.Attribute(value=ast.Name(id="self"))], value=value):
                calls = [part.func for part in ast.walk(value) if isinstance(part, ast.Call)]
                names = {ast.unparse(part) for part in ast.walk(value)}
                if not all(path_of(call, paths) for call in calls) or names & {target, "self"}:
                    return False
            case _:
                return False
    return False


def _undoes_order(item: ast.stmt, following: Sequence[ast.stmt], paths: Mapping[str, str]) -> bool:
    """Return whether two statements write the rows of a tensor, or their numbers, to the places of an order."""
    match [item, *following]:
        case [
            ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=maker, args=[ast.Name(id=like)])),
            ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=filled), slice=ast.Name(id=order))],
                value=ast.Name(id=source) | ast.Call(args=[ast.Call(args=[ast.Name(id=source)])]) as rows,
            ),
        ]:
            is_range = isinstance(rows, ast.Call) and path_of(rows.func, paths) == "torch.arange"
            is_like = path_of(maker, paths) == "torch.empty_like"
            places = like == order == source if is_range else isinstance(rows, ast.Name) and like == source
            return is_like and name == filled and name not in (like, order) and places
    return False


def rests_parts(tree: ast.Module, name: str) -> bool:
    """Return whether the method `train` of a class does no more than a network's own, but for parts that rest.

    It calls `super().train(mode)`, then `eval()` of attributes of `self`, and returns `self`. `forward` may put a part
    into evaluation mode as well, so this gives an edit nothing new, and the network itself keeps the mode it is given.
    """
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    methods = [item for node in classes for item in node.body if isinstance(item, ast.FunctionDef)]
    found = [item for item in methods if item.name == "train"]
    if len(classes) != 1 or len(found) != 1 or found[0].decorator_list:
        return False
    arguments = found[0].args
    match arguments:
        case ast.arguments(
            posonlyargs=[], args=[ast.arg(arg="self"), ast.arg(arg=mode)], vararg=None, kwonlyargs=[], kwarg=None,
            defaults=[ast.Constant(value=True)],
        ):  # fmt: skip
            pass
        case _:
            return False
    statements = [ast.unparse(item) for item in found[0].body if not does_nothing(item)]
    if len(statements) < 2:
        return False
    first, *others, last = statements
    parts = [other.removeprefix("self.").removesuffix(".eval()") for other in others]
    rest = all(
        other == f"self.{part}.eval()" and part.isidentifier() for other, part in zip(others, parts, strict=True)
    )
    return first == f"super().train({mode})" and last == "return self" and rest and mode != "self"


def layer_lists(tree: ast.Module, name: str, holders: frozenset[str], paths: Mapping[str, str]) -> set[str]:
    """Return the attributes to which a class assigns nothing but lists of layers that it makes itself."""
    values: dict[str, list[ast.expr]] = {}
    for node in tree.body:
        for part in ast.walk(node) if isinstance(node, ast.ClassDef) and node.name == name else ():
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store | ast.Del):
                values.setdefault(part.attr, [])
                values[part.attr].append(part)
    made = {
        id(part.targets[0])
        for part in ast.walk(tree)
        if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.value, ast.Call)
        and path_of(part.value.func, paths) in holders
    }  # fmt: skip
    return {attribute for attribute, targets in values.items() if all(id(target) in made for target in targets)}
