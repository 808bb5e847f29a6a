"""Parse the text of an experiment within bounds, and hash the program regardless of its formatting."""

import ast
import hashlib
import re
import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

from grader.syntax.names import Names, read_names
from grader.syntax.trees import DEFINITIONS, bindings, blocks, copied

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


_BUILTIN_TYPES = frozenset(["bool", "bytes", "dict", "float", "int", "list", "object", "set", "str", "tuple"])
_TORCH_TYPES = frozenset(
    ["torch.Tensor", "torch.Generator", "torch.nn.Module", "torch.nn.Sequential", "torch.optim.Optimizer"]
)


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
        if any(_is_huge(node) for node in level):
            raise Unparsable(f"it contains an integer of more than {MAX_INTEGER_BITS} bits")
        level = [child for node in level for child in ast.iter_child_nodes(node)]


def _is_huge(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int)
        and node.value.bit_length() > MAX_INTEGER_BITS
    )


def normalized(tree: ast.Module) -> ast.Module:
    """Return a copy without docstrings, `pass` and type annotations. Syntax trees have no comments or formatting."""
    plain = copied(tree)
    for node in ast.walk(plain):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        for block in blocks(node):
            block[:] = [_plain_assignment(item) for item in block]
    return _normalize_blocks(plain)


@lru_cache(maxsize=4096)
def tree_digest(source: str) -> str:
    """Return the SHA-256 of the program in a text; comments, formatting, docstrings and idle annotations do not count.

    Two texts with equal digests run alike, unless they read their own docstrings or line numbers; for that they need
    something that `plain_code.suspicions` reports. Raises `Unparsable`.
    """
    tree = parse_experiment(source)
    drop_idle_annotations(tree)
    tree = _normalize_blocks(tree)
    return hashlib.sha256(ast.dump(tree).encode("utf-8", "surrogatepass")).hexdigest()


def program_digest(source: str) -> str:
    """Return the `tree_digest` of a text, or a digest of the text itself if it does not parse."""
    try:
        return tree_digest(source)
    except Unparsable:
        return f"text {hashlib.sha256(source.encode()).hexdigest()}"


@dataclass(frozen=True)
class ProgramText:
    """A source that compares equal to every other source of the same program; use it as the key of a cache."""

    digest: str
    source: str = field(compare=False)

    @classmethod
    def of(cls, source: str) -> "ProgramText":
        """Return the source with the digest of its program."""
        return cls(program_digest(source), source)


def _normalize_blocks(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.kind = None  # u"text" is "text"
        for block in blocks(node):
            kept = [item for item in block if not _is_bare_constant(item) and not isinstance(item, ast.Pass)]
            if block and not kept and not isinstance(node, ast.Module):
                kept = [ast.Pass()]
            block[:] = kept
    return tree


def _is_bare_constant(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def drop_idle_annotations(tree: ast.Module) -> None:
    """Remove the annotations that cannot act when Python evaluates them; changes the tree.

    Python never evaluates annotations of local variables. Of all others, constants and well-known types go; any
    other expression may act and stays. A class keeps its annotations: they can be its fields.
    """
    nodes = list(ast.walk(tree))
    if not any(map(_is_annotated, nodes)):  # most experiments; finding out what names stand for takes time
        return
    names, bound = read_names(tree), Counter(bindings(tree))
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.returns is not None and _is_idle(node.returns, names, bound):
                node.returns = None
            _drop_annotations_of_variables(node)
        elif isinstance(node, ast.arg) and node.annotation and _is_idle(node.annotation, names, bound):
            node.annotation = None
    tree.body[:] = [
        _plain_assignment(item)
        if isinstance(item, ast.AnnAssign) and item.simple and _is_idle(item.annotation, names, bound)
        else item
        for item in tree.body
    ]


def _is_annotated(node: ast.AST) -> bool:
    return isinstance(node, ast.AnnAssign) or any(
        getattr(node, name, None) is not None for name in ("annotation", "returns")
    )


def _drop_annotations_of_variables(function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    waiting: list[ast.AST] = [function]
    while waiting:
        node = waiting.pop()
        for block in blocks(node):
            # Without a value the statement still makes the name local.
            block[:] = [
                _plain_assignment(item)
                if isinstance(item, ast.AnnAssign) and item.simple and item.value is not None
                else item
                for item in block
            ]
            waiting += [item for item in block if not isinstance(item, DEFINITIONS)]
        waiting += getattr(node, "handlers", []) + getattr(node, "cases", [])


def _is_idle(annotation: ast.expr, names: Names, bound: Counter[str]) -> bool:
    if isinstance(annotation, ast.Constant):
        return True
    if isinstance(annotation, ast.Name) and annotation.id in _BUILTIN_TYPES:
        return not bound[annotation.id]
    root = annotation
    while isinstance(root, ast.Attribute):
        root = root.value
    paths = names.paths_of(annotation)
    return isinstance(root, ast.Name) and bound[root.id] == 1 and len(paths) == 1 and paths <= _TORCH_TYPES


def _plain_assignment(statement: ast.stmt) -> ast.stmt:
    """Return `name = value` for `name: type = value`, and `pass` for `name: type`."""
    if not isinstance(statement, ast.AnnAssign):
        return statement
    if statement.value is None:
        return ast.copy_location(ast.Pass(), statement)
    return ast.copy_location(ast.Assign(targets=[statement.target], value=statement.value), statement)
