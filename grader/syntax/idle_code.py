"""Remove code that makes no difference to a run, and move `zero_grad()` to its usual place.

All functions change the tree that they get, so that its edit can be measured.
"""

import ast
from collections import Counter
from collections.abc import Mapping, Set

from grader.syntax.allowed_names import words
from grader.syntax.inlining import reads_in
from grader.syntax.trees import assignment, attributes_in, bindings, blocks, functions, names_in

_LOOKS = (
    ast.Name | ast.Attribute | ast.Constant | ast.JoinedStr | ast.FormattedValue | ast.Subscript | ast.Slice
    | ast.Tuple | ast.List | ast.Dict | ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp | ast.IfExp | ast.keyword
    | ast.operator | ast.unaryop | ast.boolop | ast.cmpop | ast.expr_context
    | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.comprehension
)  # fmt: skip
_BUILTINS = words(
    """
    abs all any bool dict enumerate float int len list max min range repr round sorted str sum tuple type zip
    """
)
# Methods of tensors and functions of torch that change nothing unless they get an `out`.
_METHODS = words(
    """
    abs all any argmax argmin count_nonzero cpu cross_entropy detach dim double float format int isfinite
    isinf isnan item items keys log_softmax max mean median min modules mse_loss named_modules
    named_parameters nll_loss norm numel parameters size softmax std sum tolist unique values var
    """
)
# These read or make gradients, so that clearing gradients must not move past them.
_ABOUT_GRADIENTS = words(
    """
    grad backward step zero_grad unscale_ scale update clip_grad_norm_ clip_grad_value_ requires_grad_ autograd
    """
)
# What the trainer reads from the dictionary that `evaluate` returns.
_METRICS = ("val_loss", "val_accuracy")
_LEAVES = ast.Return | ast.Raise | ast.Try | ast.TryStar | ast.Yield | ast.YieldFrom | ast.Assert | ast.Match
# A function that only another unused function reads needs another round.
_ROUNDS = 3


def drop_prints(tree: ast.Module) -> None:
    """Remove prints without side effects, and every `if` that held nothing else.

    A print that calls an unknown function stays, and so do all prints if the file binds the name `print`.
    """
    own = set(bindings(tree))
    if "print" not in own:
        _drop_prints_below(tree, own)


def _drop_prints_below(node: ast.AST, own: Set[str]) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            _drop_prints_below(child, own)
    for block in blocks(node):
        kept = [statement for statement in block if not _only_prints(statement, own)]
        if len(kept) < len(block) and not kept and block is getattr(node, "body", None):
            kept = [ast.Pass()]
        block[:] = kept


def _only_prints(statement: ast.stmt, own: Set[str]) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print")) as call):
            return all(has_no_effect(item, own) for item in (*call.args, *call.keywords))
        case ast.If(body=[ast.Pass()], orelse=[]):
            return has_no_effect(statement.test, own)
    return False


def has_no_effect(expression: ast.AST, own: Set[str]) -> bool:
    """Return whether an expression surely changes nothing; `own` are the names that the file binds itself."""
    for node in ast.walk(expression):
        match node:
            case ast.keyword(arg="out"):
                return False
            case ast.Call(func=ast.Name(id=name)) if name in _BUILTINS and name not in own:
                pass
            case ast.Call(func=ast.Attribute(attr=name)) if name in _METHODS:
                pass
            case _ if not isinstance(node, _LOOKS):
                return False
    return True


def drop_other_metrics(tree: ast.Module) -> None:
    """Remove entries without side effects that the trainer ignores from the dictionaries that `evaluate` returns."""
    evaluate, own = functions(tree).get("evaluate"), set(bindings(tree))
    for node in ast.walk(evaluate) if evaluate is not None else ():
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict):
            kept = [
                (key, value)
                for key, value in zip(node.value.keys, node.value.values, strict=True)
                if not _is_other_metric(key) or not has_no_effect(value, own)
            ]
            node.value.keys, node.value.values = [key for key, _ in kept], [value for _, value in kept]


def _is_other_metric(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and key.value not in _METRICS


def drop_unread_variables(tree: ast.Module, kept: Mapping[str, Set[str]]) -> None:
    """Remove local variables that are never read, if computing their value has no effect.

    `kept` has names to keep by function.
    """
    own = set(bindings(tree))
    for name, function in functions(tree).items():
        bound, read = Counter(bindings(function)), reads_in(function)
        unread = {item for item in bound if bound[item] == 1 and not read[item]} - kept.get(name, frozenset())
        for node in list(ast.walk(function)):
            for block in blocks(node):
                rest = [item for item in block if not _sets_unread(item, unread, own)]
                block[:] = rest or block[:1]


def _sets_unread(statement: ast.stmt, unread: Set[str], own: Set[str]) -> bool:
    name, value = assignment(statement) or ("", None)
    return value is not None and name in unread and has_no_effect(value, own)


def drop_unread_functions(tree: ast.Module, keep: Set[str]) -> None:
    """Remove functions that no name refers to, unless a decorator or a computed default may act."""
    for _ in range(_ROUNDS):
        read = Counter(names_in(tree))
        unread = {
            name
            for name, function in functions(tree).items()
            if name not in keep and read[name] == names_in(function).count(name) and _is_idle(function)
        }
        if not unread:
            return
        tree.body = [item for item in tree.body if getattr(item, "name", None) not in unread]


def _is_idle(function: ast.FunctionDef) -> bool:
    defaults = [*function.args.defaults, *(item for item in function.args.kw_defaults if item is not None)]
    return not function.decorator_list and all(isinstance(item, ast.Constant) for item in defaults)


def drop_mode_restored(tree: ast.Module) -> None:
    """Remove `network.train(...)` as the last statement of `evaluate` that uses the network.

    The trainer sets the training mode before each step. A condition before the call may be a name.
    """
    evaluate = functions(tree).get("evaluate")
    parameters = evaluate.args.posonlyargs + evaluate.args.args if evaluate is not None else []
    if evaluate is None or not parameters:
        return
    network = parameters[0].arg
    using = [index for index, item in enumerate(evaluate.body) if network in names_in(item)]
    # The first use is not the end of an evaluation.
    if len(using) > 1 and _restores_mode(evaluate.body[using[-1]], network):
        del evaluate.body[using[-1]]


def _restores_mode(statement: ast.stmt, network: str) -> bool:
    match statement:
        case ast.If(test=ast.Name(), body=[inner], orelse=[]):
            return _restores_mode(inner, network)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="train")) as call):
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            return name == network and all(
                isinstance(item, ast.Name) or (isinstance(item, ast.Constant) and item.value is True)
                for item in given
            )
    return False


def move_clearing_first(tree: ast.Module) -> None:
    """Move every `name.zero_grad(...)` up past statements that have nothing to do with gradients.

    Clearing at the end of the training step moves to its start: the step before leaves no gradients then, and the
    first step finds none.
    """
    step = functions(tree).get("train_step")
    if step is not None:
        _move_from_the_end(step, tree)
    for node in ast.walk(tree):
        for block in blocks(node):
            for index, statement in enumerate(block):
                if _clears(statement):
                    place = index
                    while place and not _about_gradients(block[place - 1]):
                        place -= 1
                    block.insert(place, block.pop(index))


def _move_from_the_end(step: ast.FunctionDef, tree: ast.Module) -> None:
    """Move the last statement to the start if every step reaches it and no other code has gradients."""
    rest = [item for item in tree.body if item is not step]
    match step.body:
        case [*before, clear, ast.Return(value=ast.Name() | None)] if before and _clears(clear):
            named = set(names_in(clear))
            if len(named) > 1 or not named <= {item.arg for item in step.args.args}:
                return
            inside = [node for item in before for node in ast.walk(item)]
            if any(isinstance(node, _LEAVES) for node in inside):
                return
            if any("zero_grad" in attributes_in(item) or named & set(bindings(item)) for item in before):
                return
            if not any(attributes_in(item) & _ABOUT_GRADIENTS for item in rest):
                step.body = [clear, *before, step.body[-1]]


def _clears(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(), attr="zero_grad"))):
            return True
    return False


def _about_gradients(statement: ast.stmt) -> bool:
    """Return whether a statement has to do with gradients, or is neither an expression nor an assignment."""
    simple = isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign)
    return not simple or bool(attributes_in(statement) & _ABOUT_GRADIENTS)
