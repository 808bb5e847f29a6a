"""An experiment as the static look reads it: every node of its tree once, and what its names stand for."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from grader.syntax.names import Names, read_names

Found = Iterator[tuple[int, str, str]]  # line, code, clause


@dataclass(frozen=True)
class Program:
    """A parsed experiment; `nodes` in the order of `ast.walk`, which takes long enough to be done once."""

    nodes: tuple[ast.AST, ...]
    names: Names


def read_program(tree: ast.Module) -> Program:
    """Return what every check of a tree needs."""
    return Program(tuple(ast.walk(tree)), read_names(tree))
