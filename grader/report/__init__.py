"""Views of the scores: pages, gradebook, exports, terminal. Nothing here decides anything."""

from typing import Literal, get_args

# Defined here, without an import, because the command line lists them before it loads anything.
Format = Literal["gradescope", "canvas", "moodle", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)
