"""The fix as a unified diff against the broken experiment, line by line, highlighted."""

import difflib
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from grader.report.code_lines import highlighted_lines, plain_lines

_CONTEXT = 3


@dataclass(frozen=True)
class DiffLine:
    """A line of a diff. `old` and `new` are its numbers in the two files, from 1; None where it is not there."""

    kind: Literal["same", "removed", "added"]
    old: int | None
    new: int | None
    code: Markup


@dataclass(frozen=True)
class Hunk:
    """Neighbouring changes with three lines around them."""

    lines: tuple[DiffLine, ...]


@dataclass(frozen=True)
class SourceDiff:
    """What changed, and how many lines were removed and added."""

    hunks: tuple[Hunk, ...]
    removed: int
    added: int


def source_diff(broken: str, fixed: str) -> SourceDiff:
    """Compare two sources by lines; a line that is only cut off or ends in another line feed is the same."""
    old, new = tuple(plain_lines(broken)), tuple(plain_lines(fixed))
    old_code, new_code = highlighted_lines(old), highlighted_lines(new)
    groups = difflib.SequenceMatcher(None, old, new, autojunk=len(new) > 400).get_grouped_opcodes(_CONTEXT)
    hunks = []
    for group in groups:
        lines: list[DiffLine] = []
        for operation, old_start, old_end, new_start, new_end in group:
            if operation == "equal":
                lines += [
                    DiffLine(
                        "same", i + 1, new_start + i - old_start + 1, new_code[new_start + i - old_start]
                    )
                    for i in range(old_start, old_end)
                ]
                continue
            lines += [DiffLine("removed", i + 1, None, old_code[i]) for i in range(old_start, old_end)]
            lines += [DiffLine("added", None, i + 1, new_code[i]) for i in range(new_start, new_end)]
        hunks.append(Hunk(tuple(lines)))
    every = [line.kind for hunk in hunks for line in hunk.lines]
    return SourceDiff(tuple(hunks), every.count("removed"), every.count("added"))
