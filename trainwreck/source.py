"""Read the user's source files: their lines, and the comments that suppress findings."""

import linecache
import os
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainwreck.program import cells

# An opening bracket without its closing one must not count as "ignore everything".
_COMMENT = re.compile(r"#\s*trainwreck:\s*ignore(-file)?(?![\w-])(?:\s*\[([^\[\]]*)\]|(?!\s*\[))")
_CELL = re.compile(r"(.*\.ipynb) cell (\d+)")
_NOT_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.STRING)  # a string alone is a docstring


@dataclass(frozen=True)
class IgnoreComment:
    """A comment that suppresses findings: `# trainwreck: ignore[stale]`.

    names: the names in the brackets, or None for a comment without brackets, which suppresses all findings.
    whole_file: whether it is an `ignore-file` comment. at_top: whether no code comes before it. alone: whether its line
    has no code.
    """

    line: int
    names: frozenset[str] | None
    whole_file: bool
    at_top: bool
    alone: bool


def source_lines(file: str) -> list[str]:
    """Return the lines of a source file, or of a cell of a notebook. An unreadable file has no lines."""
    try:
        if cell := _CELL.fullmatch(file):
            return cells(Path(cell[1]))[int(cell[2]) - 1][1].splitlines(keepends=True)
        linecache.checkcache(file)
        return linecache.getlines(file)
    except (OSError, SyntaxError, ValueError, IndexError):
        return []


def ignore_comments(file: str) -> Iterator[IgnoreComment]:
    """Yield the comments of a source file that suppress findings. Strings with the same text are not comments."""
    at_top = True
    try:
        for token in tokenize.generate_tokens(iter(source_lines(file)).__next__):
            if token.type == tokenize.COMMENT and (match := _COMMENT.search(token.string)):
                whole_file, names = match.groups()
                listed = None if names is None else frozenset(filter(None, map(str.strip, names.split(","))))
                yield IgnoreComment(
                    token.start[0], listed, bool(whole_file), at_top, token.line.lstrip().startswith("#")
                )
            at_top = at_top and token.type in _NOT_CODE
    except (tokenize.TokenError, SyntaxError):
        return  # the rest of the file is not Python


def relative_path(file: str, folder: Path) -> str:
    """Return the path of a file relative to a folder, with forward slashes; the whole path if another drive has it.

    For a cell it is the path of its notebook.
    """
    cell = _CELL.fullmatch(file)
    whole = Path(cell[1] if cell else file).resolve()
    try:
        return Path(os.path.relpath(whole, folder.resolve())).as_posix()
    except ValueError:
        return whole.as_posix()
