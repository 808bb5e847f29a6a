"""Sentences at a terminal: wrapped between words at its width. Commands stay whole: they must survive being copied."""

import re
import shutil
import sys
import textwrap
from typing import TextIO

_COMMAND = re.compile(
    r"\bmake [a-z-]+(?: [A-Z]+=(?:<[^>]*>|'[^']*'|\S+))+|\b(?:harness|grader) [a-z-]+(?: --[a-z-]+ \S+)*"
)


def fold(text: str, width: int | None, *, indent: int = 0, hang: int = 0) -> str:
    """Return a sentence in lines of at most `width` characters, the further ones indented by `hang` more.

    A word or command that is longer has a line of its own. With None as the width it stays one line.
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
    """Return how many columns a stream (standard output) shows, or None if it is no terminal."""
    stream = sys.stdout if stream is None else stream
    return shutil.get_terminal_size().columns if stream.isatty() else None
