"""Wrap sentences at the width of the terminal. A command in a sentence is never split, so that users can copy it."""

import re
import shutil
import sys
import textwrap
from typing import TextIO

_COMMAND = re.compile(
    r"\bmake [a-z-]+(?: [A-Z]+=(?:<[^>]*>|'[^']*'|\S+))+|\b(?:harness|grader) [a-z-]+(?: --[a-z-]+ \S+)*"
)


def fold(text: str, width: int | None, *, indent: int = 0, hang: int = 0) -> str:
    """Return the text wrapped at `width` characters. Lines after the first one are indented by `hang` more characters.

    A word or command that is longer than `width` gets its own line. If `width` is None, the text stays on one line.
    """
    first = " " * indent
    if width is None:
        return first + text
    whole = _COMMAND.sub(lambda command: command[0].replace(" ", "\0"), text)
    lines = textwrap.fill(
        whole, width, initial_indent=first, subsequent_indent=" " * (indent + hang), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return lines.replace("\0", " ")


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Return the width of a terminal in columns, or None if the stream (default: standard output) is not a terminal."""
    stream = sys.stdout if stream is None else stream
    return shutil.get_terminal_size().columns if stream.isatty() else None
