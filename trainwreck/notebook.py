"""The notebook extension: after `%load_ext trainwreck`, `%%trainwreck` watches one cell, `%trainwreck on` several."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.error import UsageError

from trainwreck.finding import DEFAULT_STEPS
from trainwreck.places import here
from trainwreck.session import Session, report_text

_USAGE = "Usage: %trainwreck on [--steps N] | off | report, or %%trainwreck [--steps N] above a cell"


class Extension:
    """The magic commands of one notebook. At most one watch is on at a time."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._session = Session()

    def line_magic(self, line: str) -> None:
        """Handle `%trainwreck on [--steps N]`, `off` or `report`. For other words, print the usage."""
        verb, _, rest = line.strip().partition(" ")
        steps = _steps(rest) if verb == "on" or not rest else None
        if verb not in ("on", "off", "report") or steps is None:
            print(_USAGE)
        elif verb == "on":
            self._session.begin(steps)
            print(f"Watching the next {steps} updates. To end it: %trainwreck off")
        elif verb == "off" and self._session.is_open:
            self.end()
        elif (report := self._session.report()) is not None:
            print(report_text(report))
        else:
            print("Nothing was watched yet. To begin: %trainwreck on")

    def cell_magic(self, line: str, cell: str) -> None:
        """Handle `%%trainwreck [--steps N]`: run the cell, and print what the checks found in it.

        Raises the exception of the cell, or `UsageError` if the cell has a syntax error.
        """
        steps = _steps(line)
        if steps is None:
            print(_USAGE)
            return
        self._session.begin(steps)
        # The comment stands for the line of the magic command, so that the lines have the numbers that one sees.
        with self._numbered_like(here().file):
            done = self._shell.run_cell(cell if cell.lstrip().startswith("%%") else f"# %%trainwreck\n{cell}")
        self.end()
        # The traceback is on the screen already, but this cell fails, too.
        if done.error_before_exec is not None:
            raise UsageError("the cell did not begin")
        if done.error_in_exec is not None:
            done.error_in_exec._render_traceback_ = list  # no lines
            raise done.error_in_exec

    @contextmanager
    def _numbered_like(self, cell: str) -> Iterator[None]:
        """Give code that is compiled in the block the number of a cell, `In [3]`. IPython would take the next one."""
        compiler = self._shell.compile
        cache = compiler.cache
        if match := re.fullmatch(r"In \[(\d+)\]", cell):
            compiler.cache = lambda code, _number=0, **options: cache(code, int(match[1]), **options)
        try:
            yield
        finally:
            compiler.cache = cache

    def after_cell(self, *_: Any) -> None:
        """Print the report after the cell in which the last watched update was made."""
        if self._session.is_over:
            self.end()

    def end(self) -> None:
        """Take the hooks out and print the report, unless that was done before."""
        if (report := self._session.end()) is not None:
            print(report_text(report))


_extensions: dict[int, Extension] = {}


def load_ipython_extension(shell: Any) -> None:
    """Register the magic commands in an IPython shell. IPython calls this for `%load_ext trainwreck`."""
    extension = _extensions[id(shell)] = Extension(shell)
    shell.register_magic_function(extension.line_magic, "line", "trainwreck")
    shell.register_magic_function(extension.cell_magic, "cell", "trainwreck")
    shell.events.register("post_run_cell", extension.after_cell)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magic commands, and end a watch that is on. IPython calls this for `%unload_ext trainwreck`."""
    extension = _extensions.pop(id(shell))
    extension.end()
    shell.events.unregister("post_run_cell", extension.after_cell)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("trainwreck", None)


def _steps(line: str) -> int | None:
    """Return the number after `--steps`, the default for an empty line, or None for other words."""
    words = line.split()
    if not words:
        return DEFAULT_STEPS
    fits = len(words) == 2 and words[0] == "--steps" and words[1].isdecimal() and int(words[1]) > 0
    return int(words[1]) if fits else None
