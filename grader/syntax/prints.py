"""Prints that only look at something: they change no run, and are left out before edits are measured."""

import ast
from collections.abc import Set

from grader.syntax.trees import bindings, blocks, copied

_LOOKS = (
    ast.Name | ast.Attribute | ast.Constant | ast.JoinedStr | ast.FormattedValue | ast.Subscript | ast.Slice
    | ast.Tuple | ast.List | ast.Dict | ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp | ast.IfExp | ast.keyword
    | ast.operator | ast.unaryop | ast.boolop | ast.cmpop | ast.expr_context
    | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.comprehension
)  # fmt: skip
_BUILTINS = frozenset(
    [
        "abs", "all", "any", "bool", "dict", "enumerate", "float", "int", "len", "list", "max", "min", "range", "repr",
        "round", "sorted", "str", "sum", "tuple", "type", "zip",
    ]
)  # fmt: skip
# Methods of tensors and functions of torch that write nowhere, unless they are given an `out`.
_METHODS = frozenset(
    [
        "abs", "all", "any", "argmax", "argmin", "count_nonzero", "cpu", "cross_entropy", "detach", "dim", "double",
        "float", "format", "int", "isfinite", "isinf", "isnan", "item", "items", "keys", "log_softmax", "max", "mean",
        "median", "min", "modules", "mse_loss", "named_modules", "named_parameters", "nll_loss", "norm", "numel",
        "parameters", "size", "softmax", "std", "sum", "tolist", "unique", "values", "var",
    ]
)  # fmt: skip


def without_prints(tree: ast.Module) -> ast.Module:
    """Return a copy without prints that only look, and without an `if` in which nothing else stood.

    A print that calls anything unknown stays, and so do all where the file binds the name `print` itself.
    """
    plain = copied(tree)
    own = set(bindings(plain))
    if "print" not in own:
        _drop(plain, own)
    return plain


def _drop(node: ast.AST, own: set[str]) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            _drop(child, own)
    for block in blocks(node):
        kept = [statement for statement in block if not _shows_only(statement, own)]
        if len(kept) < len(block) and not kept and block is getattr(node, "body", None):
            kept = [ast.Pass()]
        block[:] = kept


def _shows_only(statement: ast.stmt, own: set[str]) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print")) as call):
            return all(only_looks(item, own) for item in (*call.args, *call.keywords))
        case ast.If(body=[ast.Pass()], orelse=[]):
            return only_looks(statement.test, own)
    return False


def only_looks(expression: ast.AST, own: Set[str], quiet: Set[str] = frozenset()) -> bool:
    """Say whether an expression changes nothing; `own` are the names that the file binds itself.

    `quiet` are functions of the file that are known to change nothing.
    """
    for node in ast.walk(expression):
        match node:
            case ast.keyword(arg="out"):
                return False
            case ast.Call(func=ast.Name(id=name)) if name in _BUILTINS and name not in own:
                pass
            case ast.Call(func=ast.Name(id=name)) if name in quiet:
                pass
            case ast.Call(func=ast.Attribute(attr=name)) if name in _METHODS:
                pass
            case _ if not isinstance(node, _LOOKS):
                return False
    return True
