"""Print lines: plain into a file or a pipe, wrapped and coloured on a terminal."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_LEAST_WIDTH = 20
_STYLES = {
    r"^alarm(?=: )": "bold red",
    r"^advice(?=: )": "bold yellow",
    r"^note(?=: )": "bold blue",
    r"^  (Found|Where|Fix|Practise): ": "bold",
}


def width_of(stream: TextIO) -> int | None:
    """Return the width of a terminal in columns, or None if the stream is not a terminal."""
    console = _console(stream)
    return None if console is None else max(console.width, _LEAST_WIDTH)


def wrap(text: str, width: int | None, first: str = "", rest: str = "") -> Iterator[str]:
    """Yield the lines of a paragraph, not wider than `width`. The first one begins with `first`, others with `rest`.

    Without a width the paragraph is one line.
    """
    if width is None:
        yield first + text
    else:
        yield from textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False) or [
            first
        ]


def print_lines(lines: Iterable[str], stream: TextIO) -> None:
    """Print lines. On a terminal, levels and labels have a style, unless the variable NO_COLOR is set."""
    console = _console(stream)
    if console is None:
        for line in lines:
            print(line, file=stream)
        return
    from rich.text import Text

    for line in lines:
        text = Text(line)
        for pattern, style in _STYLES.items():
            text.highlight_regex(pattern, style)
        console.print(text, soft_wrap=True)


def print_message(message: str, stream: TextIO) -> None:
    """Print a message of one or more lines, and wrap them on a terminal."""
    width = width_of(stream)
    print_lines((part for line in message.splitlines() for part in wrap(line, width)), stream)


def _console(stream: TextIO) -> Console | None:
    """Return rich's console for a terminal, or None: programs that do not write to a terminal need not load rich."""
    is_terminal = getattr(stream, "isatty", None)  # a program may replace stderr by an object that only writes
    if is_terminal is None or not is_terminal():
        return None
    from rich.console import Console

    return Console(file=stream, color_system=None if os.environ.get("NO_COLOR") else "auto", highlight=False)
