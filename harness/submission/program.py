"""Parse the untrusted text of an experiment. Limits on its size protect the parser."""

import ast
import re
import warnings

from harness.submission.limits import DEPTH, DOTS, EXPERIMENT_BYTES, INTEGER_BITS, NODES

# At each dot of `import a.b.c`, CPython joins all parts before the dot, so 32,000 dots take 3 s and over 1 GiB.
_LONG_NAME = re.compile(rf"(?<![\w.])(?:[^\W\d]\w*+[\s\\]*+\.[\s\\]*+){{{DOTS}}}")


class Unparsable(Exception):
    """Raised for a text that cannot be parsed within the limits. The message is a clause that says why."""


def parse_experiment(source: str) -> ast.Module:
    """Return the syntax tree of an experiment. It has at most `NODES` nodes and is nested at most `DEPTH` deep.

    No part of the text is run or imported. Recursion over the returned tree is safe. Raises `Unparsable` for any other
    text, even if its author wanted to crash the parser.
    """
    try:
        size = len(source.encode("utf-8"))
    except UnicodeEncodeError:
        raise Unparsable("it contains characters that a text file cannot contain") from None
    if size > EXPERIMENT_BYTES:
        raise Unparsable(f"it has {size} bytes, more than {EXPERIMENT_BYTES}")
    if _LONG_NAME.search(source):
        raise Unparsable(f"it contains a name with more than {DOTS} dots")
    try:
        with warnings.catch_warnings():
            # An invalid escape such as "\d" causes a warning, which the caller may have turned into an error.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except SyntaxError as error:
        where = f"line {error.lineno}" if error.lineno else "it"
        raise Unparsable(f"{where} is not Python: {error.msg}"[:200]) from None
    except (RecursionError, MemoryError):
        raise Unparsable("it is nested too deeply") from None
    except ValueError as error:  # a null byte
        raise Unparsable(f"it is not Python: {error}"[:200]) from None
    _refuse_excess(tree)
    return tree


def _refuse_excess(tree: ast.Module) -> None:
    # Walk through the tree level by level, because recursion would fail for a tree that is too deep.
    nodes, depth = 0, 0
    level: list[ast.AST] = [tree]
    while level:
        nodes, depth = nodes + len(level), depth + 1
        if depth > DEPTH:
            raise Unparsable(f"it is nested more than {DEPTH} deep")
        if nodes > NODES:
            raise Unparsable(f"its syntax tree has more than {NODES} nodes")
        for node in level:
            value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
            if isinstance(value, int) and value.bit_length() > INTEGER_BITS:
                raise Unparsable(f"it contains an integer of more than {INTEGER_BITS} bits")
        level = [child for node in level for child in ast.iter_child_nodes(node)]
