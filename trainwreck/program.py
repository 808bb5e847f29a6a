"""Run the user's program, a script or a notebook, as the main program of this process."""

import json
import linecache
import re
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

_MAGIC = re.compile(r"^(\s*)[%!?].*$", re.MULTILINE)
_CELL_MAGICS = ("%%time", "%%capture", "%%trainwreck")  # the other ones do not run Python in this process


def run_program(path: str) -> None:
    """Run a script, or the code cells of a notebook in their order. Raises what the program raises."""
    if not path.endswith(".ipynb"):
        runpy.run_path(path, run_name="__main__")
        return
    module = ModuleType("__main__")
    vars(module).update(__file__=path, display=print)
    sys.modules["__main__"] = module  # classes that are defined in cells can be pickled
    for name, source in cells(Path(path)):
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        exec(compile(source, name, "exec"), vars(module))  # noqa: S102 - it is the user's program


def cells(path: Path) -> list[tuple[str, str]]:
    """Return the name and the source of each code cell of a notebook, without the commands of IPython.

    The name counts cells of code from 1: `train.ipynb cell 3`. Lines keep their numbers. Raises `ValueError` if the
    file is no notebook.
    """
    try:
        listed: list[dict[str, Any]] = json.loads(path.read_bytes())["cells"]
        sources = ["".join(cell["source"]) for cell in listed if cell["cell_type"] == "code"]
    except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError):
        raise ValueError(f"{path} is no notebook of version 4") from None
    return [(f"{path} cell {number}", _python(source)) for number, source in enumerate(sources, 1)]


def _python(source: str) -> str:
    first, _, rest = source.partition("\n")
    if first.startswith("%%"):
        source = f"\n{rest}" if first.startswith(_CELL_MAGICS) else ""
    return _MAGIC.sub(r"\1pass", source)
