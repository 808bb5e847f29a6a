"""Print lines, sentences and next steps for the student."""

from collections.abc import Sequence

from rich.console import Console

from harness.console.terminal import fold
from harness.recipes.suite import as_typed


def show_line(console: Console, line: str, style: str = "") -> None:
    """Print a line without wrapping, so that users can copy a path from the line."""
    console.print(line, markup=False, highlight=False, soft_wrap=True, style=style)


def show_folded(console: Console, line: str, *, indent: int = 0, hang: int = 0, style: str = "") -> None:
    """Print a sentence. At a terminal, wrap the sentence."""
    show_line(console, fold(line, console_width(console), indent=indent, hang=hang), style)


def show_diff(console: Console, lines: Sequence[str], *, indent: int = 0) -> None:
    """Print the lines of a diff."""
    for line in lines:
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        show_line(console, " " * indent + line, style=style)


def console_width(console: Console) -> int | None:
    """Return the width of the terminal, or None if the output goes elsewhere."""
    return console.width if console.is_terminal else None


def show_next(console: Console, *lines: str) -> None:
    """Print the next steps. Commands are shown as this installation needs them."""
    console.print("Next:", style="bold")
    for line in lines:
        show_folded(console, as_typed(line), indent=2, hang=3)
