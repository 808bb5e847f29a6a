"""Putting the network back into training mode at the end of `evaluate`: the trainer does so anyway, at each step."""

import ast

from grader.syntax.trees import copied, functions


def without_mode_restored(tree: ast.Module) -> ast.Module:
    """Return a copy in which `evaluate` leaves the network in the mode that it evaluated in.

    What goes is `network.train(...)`, with or without a condition that is a name, as the last statement that has
    to do with the network.
    """
    plain = copied(tree)
    evaluate = functions(plain).get("evaluate")
    parameters = evaluate.args.posonlyargs + evaluate.args.args if evaluate is not None else []
    if evaluate is None or not parameters:
        return plain
    network = parameters[0].arg
    using = [index for index, item in enumerate(evaluate.body) if _reads(item, network)]
    # The first use is no end of anything.
    if len(using) > 1 and _restores(evaluate.body[using[-1]], network):
        del evaluate.body[using[-1]]
    return plain


def _reads(statement: ast.stmt, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(statement))


def _restores(statement: ast.stmt, network: str) -> bool:
    match statement:
        case ast.If(test=ast.Name(), body=[inner], orelse=[]):
            return _restores(inner, network)
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="train"), args=args, keywords=keywords
            )
        ):
            given = [*args, *(keyword.value for keyword in keywords)]
            return name == network and all(
                isinstance(item, ast.Name) or (isinstance(item, ast.Constant) and item.value is True)
                for item in given
            )
    return False
