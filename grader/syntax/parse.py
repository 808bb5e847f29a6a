"""Parses the text of an experiment within bounds, and says which program it is whatever its looks."""

import ast
import hashlib
import re
import warnings
from dataclasses import dataclass, field
from functools import lru_cache

from grader.syntax.annotations import drop_annotations, drop_idle_annotations
from grader.syntax.trees import blocks, copied, is_bare_constant

# The longest healthy experiment has 3 KiB, 500 nodes and a depth of 12. In CPython 3.11 the worst text of this
# size that we know takes 0.9 s (an f-string of 60,000 nodes), and what nests too deep ends in an ordinary
# exception: the parser counts its own stack.
MAX_BYTES = 64 * 1024
MAX_NODES = 8_000
MAX_DEPTH = 100
# Longer integers cannot be printed (Python's limit is 4,300 digits).
MAX_INTEGER_BITS = 4096
# CPython joins the parts of `import a.b.c` anew at each dot: 32,000 of them take 3 s and over 1 GiB.
_LONG_NAME = re.compile(r"(?<![\w.])(?:[^\W\d]\w*+[\s\\]*+\.[\s\\]*+){100}")


class Unparsable(Exception):
    """A text that is no experiment: why, as the end of a sentence about it."""


def parse_experiment(source: str) -> ast.Module:
    """Return the syntax tree of an experiment, at most `MAX_NODES` nodes and `MAX_DEPTH` deep.

    Raises `Unparsable` for anything else, however it was made to hurt: nothing is run or imported, and
    recursion over the tree that comes back is safe.
    """
    try:
        size = len(source.encode("utf-8"))
    except UnicodeEncodeError:
        raise Unparsable("it holds characters that no text file can") from None
    if size > MAX_BYTES:
        raise Unparsable(f"it has {size} bytes, more than {MAX_BYTES}")
    if _LONG_NAME.search(source):
        raise Unparsable("it holds a name with more than 100 dots")
    try:
        with warnings.catch_warnings():
            # "\d" is a warning, and whoever runs us may have made warnings errors.
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
    # Level by level: recursing into a tree that is too deep is what this is to prevent.
    nodes, depth = 0, 0
    level: list[ast.AST] = [tree]
    while level:
        nodes, depth = nodes + len(level), depth + 1
        if depth > MAX_DEPTH:
            raise Unparsable(f"it is nested more than {MAX_DEPTH} deep")
        if nodes > MAX_NODES:
            raise Unparsable(f"its syntax tree has more than {MAX_NODES} nodes")
        if any(_is_huge(node) for node in level):
            raise Unparsable(f"it holds an integer of more than {MAX_INTEGER_BITS} bits")
        level = [child for node in level for child in ast.iter_child_nodes(node)]


def _is_huge(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int)
        and node.value.bit_length() > MAX_INTEGER_BITS
    )


def normalized(tree: ast.Module) -> ast.Module:
    """Return a copy without what makes no difference to a reader: docstrings, `pass`, and type annotations.

    Comments, formatting and the style of quotes are not in a syntax tree to begin with.
    """
    plain = copied(tree)
    drop_annotations(plain)
    return _normalize_blocks(plain)


@lru_cache(maxsize=256)
def tree_digest(source: str) -> str:
    """Return the SHA-256 of the program that a text is: equal for two that run alike, however they look.

    Of the annotations that Python evaluates, those that may do something are part of it (see
    `grader.syntax.annotations`). A text that reads its own docstrings or line numbers can still tell two
    looks apart; for that it needs what `plain_code.suspicions` reports. Raises `Unparsable`.
    """
    tree = parse_experiment(source)
    drop_idle_annotations(tree)
    tree = _normalize_blocks(tree)
    return hashlib.sha256(ast.dump(tree).encode("utf-8", "surrogatepass")).hexdigest()


def program_digest(source: str) -> str:
    """Return the `tree_digest` of a text; one that is no program stands for itself."""
    try:
        return tree_digest(source)
    except Unparsable:
        return f"text {hashlib.sha256(source.encode()).hexdigest()}"


@dataclass(frozen=True)
class ProgramText:
    """A text that equals every other text of the same program: what holds for one is looked for once."""

    digest: str
    source: str = field(compare=False)

    @classmethod
    def of(cls, source: str) -> "ProgramText":
        """Return this text with the digest of its program."""
        return cls(program_digest(source), source)


def _normalize_blocks(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.kind = None  # u"text" is "text"
        for block in blocks(node):
            kept = [item for item in block if not is_bare_constant(item) and not isinstance(item, ast.Pass)]
            if block and not kept and not isinstance(node, ast.Module):
                kept = [ast.Pass()]
            block[:] = kept
    return tree
