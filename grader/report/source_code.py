"""Show source: bounded lines, and what changed between two versions. Nothing is compiled or run."""

import difflib
from dataclasses import dataclass
from typing import Literal

from grader.report.text import visible

LINES, COLUMNS = 1000, 300  # an experiment has about 90 lines; a hostile one must not make the page grow
_CONTEXT = 3  # unchanged lines around a change


@dataclass(frozen=True)
class DiffLine:
    """A line of a diff. `old` and `new` are its numbers in the two files, from 1; None if it is not in that file."""

    kind: Literal["same", "removed", "added"]
    old: int | None
    new: int | None
    code: str


def plain_lines(source: str) -> list[str]:
    """Return the lines of a source as a page shows them: hidden characters spelled out, cut to a bounded size."""
    lines = visible(source).removesuffix("\n").split("\n") if source else []
    cut = [line if len(line) <= COLUMNS else f"{line[:COLUMNS]} …" for line in lines[:LINES]]
    if len(lines) > LINES:
        cut.append(f"… {len(lines) - LINES} more lines")
    return cut


def source_diff(broken: str, fixed: str) -> list[list[DiffLine]]:
    """Return groups of neighbouring changes with the lines around them; line endings of another kind are equal."""
    old, new = plain_lines(broken), plain_lines(fixed)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=len(new) > 400)
    groups = []
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        lines: list[DiffLine] = []
        for operation, old_start, old_end, new_start, new_end in group:
            if operation == "equal":
                pairs = zip(range(old_start, old_end), range(new_start, new_end), strict=True)
                lines += [DiffLine("same", i + 1, j + 1, new[j]) for i, j in pairs]
            else:
                lines += [DiffLine("removed", i + 1, None, old[i]) for i in range(old_start, old_end)]
                lines += [DiffLine("added", None, j + 1, new[j]) for j in range(new_start, new_end)]
        groups.append(lines)
    return groups
