"""Name the line of the user's program that is running."""

import os
import re
import sys
import sysconfig
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_HERE = str(Path(__file__).parent) + os.sep
_FRAMES = 8  # of the script
_TORCH = find_spec("torch")  # may lie anywhere: who builds it, installs a link
_LIBRARIES = (
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")},
    *(str(Path(place)) + os.sep for place in (_TORCH.submodule_search_locations if _TORCH else None) or ()),
)


@dataclass(frozen=True)
class Place:
    """A line of a program, or a part of it in words if no single line is to blame (`line` is then 0).

    file: the path of a file, or the label of a notebook cell, such as `In [3]`.
    """

    file: str
    line: int = 0
    function: str = ""

    def __str__(self) -> str:
        """Return the place as text: `train.py:31 in main()`."""
        if not self.line:
            return self.file
        named = self.function and not self.function.startswith(("<module>", "<cell line"))
        return f"{Path(self.file).name}:{self.line}{f' in {self.function}()' if named else ''}"


def here() -> Place:
    """Return the innermost line that belongs neither to this package nor to a library."""
    frame: FrameType | None = sys._getframe(1)
    shell = interactive_shell()
    while frame is not None:
        file = frame.f_code.co_filename
        if shell is not None and (cell := _cell(shell, file)):
            return Place(cell, frame.f_lineno, frame.f_code.co_name)
        if not _is_foreign(file):
            return Place(file, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return Place("inside a library")


def names_of(value: Any) -> set[str]:
    """Return the names of variables of the running functions that hold an object, and its keys in dictionaries."""
    found: set[str] = set()
    for frame in _frames_of_script():
        for name, one in [*frame.f_locals.items(), *frame.f_globals.items()]:
            if one is value:
                found.add(name)
            elif type(one) is dict:
                found.update(key for key, part in list(one.items()) if part is value and isinstance(key, str))
    return found


def words_in_use(known: Collection[str]) -> dict[tuple[CodeType, str], str]:
    """Return which variables of the running functions hold one of these words, by code and name, and the word."""
    found: dict[tuple[CodeType, str], str] = {}
    for frame in _frames_of_script():
        for name, one in list(frame.f_locals.items()):
            if type(one) is str and one in known:
                found[frame.f_code, name] = one
    return found


def _frames_of_script() -> Iterator[FrameType]:
    """Yield the innermost running functions that belong neither to this package nor to a library."""
    frame: FrameType | None = sys._getframe(1)
    looked = 0
    while frame is not None and looked < _FRAMES:
        file = frame.f_code.co_filename
        if not _is_foreign(file):
            looked += 1
            yield frame
        frame = frame.f_back


def interactive_shell() -> Any:
    """Return the IPython shell of this process, in a terminal or a notebook, or None without one."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def _cell(shell: Any, file: str) -> str:
    """Return the label of the notebook cell whose code has this file name, or "" if it is not a cell."""
    # A kernel names its cells like temporary files, and only its compiler knows their numbers.
    _, label = getattr(shell.compile, "format_code_name", lambda name: None)(file) or ("", "")
    number = re.fullmatch(r"In ?\[(\d+)\]", label) or re.match(r"<ipython-input-(\d+)-", file)
    return f"In [{number[1]}]" if number else ""


@lru_cache(maxsize=10_000)
def _is_foreign(file: str) -> bool:
    """Return whether a file belongs to this package or to a library."""
    return "site-packages" in file or "dist-packages" in file or file.startswith((_HERE, "<", *_LIBRARIES))
