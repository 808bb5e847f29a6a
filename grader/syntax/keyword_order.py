"""Keywords of calls in the order that another source has them in: the order makes no difference."""

import ast

from grader.syntax.trees import copied


def keywords_as_in(tree: ast.Module, other: ast.Module) -> ast.Module:
    """Return a copy in which each call has its keywords in the order of the first such call in `other`.

    Keywords that are not there keep their places, and so do all of a call with `**more`.
    """
    orders: dict[str, list[str]] = {}
    for call in _calls(other):
        orders.setdefault(ast.dump(call.func), [item.arg or "" for item in call.keywords])
    plain = copied(tree)
    for call in _calls(plain):
        order = orders.get(ast.dump(call.func), [])
        known = [item for item in call.keywords if item.arg in order]
        if len({item.arg for item in known}) == len(known) and all(item.arg for item in call.keywords):
            known.sort(key=lambda item: order.index(item.arg or ""))
            call.keywords = [known.pop(0) if item.arg in order else item for item in call.keywords]
    return plain


def _calls(tree: ast.Module) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.keywords]
