"""Parse the text of an experiment within bounds, and hash the program regardless of its formatting."""

import ast
import hashlib
import re
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache

# The longest healthy experiment has 3 KiB, 500 nodes and a depth of 12. The slowest text of this size that we know
# takes CPython 3.11 0.9 s (an f-string of 60,000 nodes). The parser counts its own stack, so that text that nests
# too deep raises an ordinary exception.
MAX_BYTES = 64 * 1024
MAX_NODES = 8_000
MAX_DEPTH = 100
# Python refuses to print longer integers (its limit is 4,300 digits).
MAX_INTEGER_BITS = 4096
# CPython joins the parts of `import a.b.c` again at each dot: 32,000 dots take 3 s and over 1 GiB.
_LONG_NAME = re.compile(r"(?<![\w.])(?:[^\W\d]\w*+[\s\\]*+\.[\s\\]*+){100}")


class Unparsable(Exception):
    """The text is no experiment; the message says why, as the end of a sentence about the text."""


def parse_experiment(source: str) -> ast.Module:
    """Return the syntax tree of an experiment, at most `MAX_NODES` nodes and `MAX_DEPTH` deep.

    Runs and imports nothing. Recursion over the returned tree is safe. Raises `Unparsable` for any other text, even
    one made to harm the parser.
    """
    try:
        size = len(source.encode("utf-8"))
    except UnicodeEncodeError:
        raise Unparsable("it contains characters that a text file cannot contain") from None
    if size > MAX_BYTES:
        raise Unparsable(f"it has {size} bytes, more than {MAX_BYTES}")
    if _LONG_NAME.search(source):
        raise Unparsable("it contains a name with more than 100 dots")
    try:
        with warnings.catch_warnings():
            # "\d" gives a warning, which the caller may have made an error.
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
    # Level by level, because recursion into a tree that is too deep would fail.
    nodes, depth = 0, 0
    level: list[ast.AST] = [tree]
    while level:
        nodes, depth = nodes + len(level), depth + 1
        if depth > MAX_DEPTH:
            raise Unparsable(f"it is nested more than {MAX_DEPTH} deep")
        if nodes > MAX_NODES:
            raise Unparsable(f"its syntax tree has more than {MAX_NODES} nodes")
        for node in level:
            value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
            if isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:
                raise Unparsable(f"it contains an integer of more than {MAX_INTEGER_BITS} bits")
        level = [child for node in level for child in ast.iter_child_nodes(node)]


@lru_cache(maxsize=4096)
def tree_digest(source: str) -> str:
    """Return the SHA-256 of the program in a text; comments, formatting and docstrings do not count.

    Two texts with equal digests run alike, unless they read their own docstrings or line numbers. Raises `Unparsable`.
    """
    tree = parse_experiment(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.kind = None  # u"text" is "text"
        for block in blocks(node):
            kept = [item for item in block if not does_nothing(item)]
            if block and not kept and not isinstance(node, ast.Module):
                kept = [ast.Pass()]
            block[:] = kept
    return hashlib.sha256(ast.dump(tree).encode("utf-8", "surrogatepass")).hexdigest()


def program_digest(source: str) -> str:
    """Return the `tree_digest` of a text, or a digest of the text itself if it does not parse."""
    try:
        return tree_digest(source)
    except Unparsable:
        return f"text {hashlib.sha256(source.encode('utf-8', 'surrogatepass')).hexdigest()}"


def does_nothing(statement: ast.stmt) -> bool:
    """Return whether a statement does nothing: a docstring, another bare constant, `pass`."""
    bare = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return bare or isinstance(statement, ast.Pass)


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements directly under a node: body, else, finally."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):  # the body of a lambda is one expression
            yield block


def imported_paths(tree: ast.Module) -> dict[str, str]:
    """Return the dotted path of each name that an import binds: `F` is `torch.nn.functional`."""
    paths: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = f"{'.' * node.level}{node.module or ''}"
            paths.update({alias.asname or alias.name: f"{base}.{alias.name}" for alias in node.names})
        elif isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                paths[alias.asname or first] = alias.name if alias.asname else first
    return paths


def path_of(node: ast.AST, paths: Mapping[str, str]) -> str:
    """Return the dotted path that a name or a chain of attributes stands for, or "" if it begins with no import."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in paths:
        return ""
    return ".".join([paths[node.id], *reversed(parts)])


def root_of(node: ast.expr) -> str:
    """Return the name that a chain of attributes and indices begins with, or ""."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
