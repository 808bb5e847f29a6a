"""The formats of `grader export`, by name; apart from the exports, since the command line must start at once."""

from typing import Literal, get_args

Format = Literal["gradescope", "canvas", "moodle", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)
