"""Name the line of the user's program that is running."""

import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

_HERE = str(Path(__file__).parent) + os.sep
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


@dataclass(frozen=True)
class Place:
    """A line of a program, or a part of it in words if no single line is to blame (`line` is then 0)."""

    file: str
    line: int = 0
    function: str = ""

    def __str__(self) -> str:
        """Return the place as text: `train.py:31 in main()`."""
        if not self.line:
            return self.file
        inside = f" in {self.function}()" if self.function and self.function != "<module>" else ""
        return f"{Path(self.file).name}:{self.line}{inside}"


def here() -> Place:
    """Return the innermost line that belongs neither to this package nor to a library."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not (file.startswith(_HERE) or file.startswith("<") or _is_library(file)):
            return Place(file, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return Place("inside a library")


def _is_library(file: str) -> bool:
    return "site-packages" in file or "dist-packages" in file or file.startswith(_LIBRARIES)
