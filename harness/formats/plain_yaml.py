"""Reads YAML from an untrusted file as plain text values, each with its line number.

Aliases, anchors and tags are refused, so the values are only mappings, lists and text, and never larger than the file.
libyaml parses it, ten times as fast as PyYAML's own parser: a class has thousands of reports.
"""

from dataclasses import dataclass
from typing import Any

import yaml

from harness.errors import UserError, printable

LIMIT = 16 * 1024  # characters; a hundred pieces of evidence take about 7,000
DEPTH = 8  # a piece of evidence is 3 deep, a step of a tree 5
TOO_DEEP = "brackets within brackets, too deep: write it as PROMPT.md shows"

# A scalar is the text as it was written (its digits say how precise a number is), or None if it is empty.
Plain = str | None | list["Plain"] | dict[str, "Plain"]
Location = tuple[str | int, ...]


@dataclass(frozen=True)
class PlainYaml:
    """The values, and the line of each in the file, by keys and indices from the top."""

    values: dict[str, Plain]
    lines: dict[Location, int]

    def line(self, location: Location) -> int:
        """Return the line of a value, or of the closest value around it."""
        at = location
        while at not in self.lines:
            at = at[:-1]
        return self.lines[at]


def read_plain_yaml(text: str, source: str, name: str, *, first_line: int = 1) -> PlainYaml:
    """Return the mapping in an untrusted text, which `source` holds from `first_line` on under the name `name`.

    Raises `UserError` that names the file, and the line if there is one.
    """
    lines: dict[Location, int] = {}

    def line_of(mark: Any) -> int:
        return first_line + int(mark.line)

    def refusal(node: Any, problem: str) -> UserError:
        return UserError(f"{source}, line {line_of(node.start_mark)}: {problem}.")

    def plain(node: yaml.Node, at: Location) -> Plain:
        lines.setdefault(at, line_of(node.start_mark))
        if isinstance(node, yaml.ScalarNode):
            return None if node.value == "" and node.tag.endswith(":null") else str(node.value)
        if isinstance(node, yaml.SequenceNode):
            return [plain(item, (*at, index)) for index, item in enumerate(node.value)]
        found: dict[str, Plain] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise refusal(key, "a key must be a word, such as signal or check")
            if key.value in found:
                raise refusal(key, f"`{printable(key.value)}` is there twice: keep one of them")
            lines[(*at, key.value)] = line_of(key.start_mark)
            found[key.value] = plain(value, (*at, key.value))
        return found

    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEPTH:
                raise refusal(event, TOO_DEEP)
            if getattr(event, "anchor", None) is not None:
                raise refusal(event, "anchors and aliases (& and *) are not allowed: write the value out")
            if getattr(event, "tag", None) is not None:
                raise refusal(event, "tags (!) are not allowed: write the value plainly")
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        if mark is None or mark.line >= len(text.splitlines()):  # what begins in the text may not end in it
            mark = getattr(error, "context_mark", None) or mark
        problem = printable(getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML")
        where = source if mark is None else f"{source}, line {line_of(mark)}"
        if "nesting depth" in problem:  # libyaml 0.2.6 scans ahead and refuses 1,000 brackets before it gives an event
            raise UserError(f"{where}: {TOO_DEEP}.") from None
        raise UserError(f"{where}: {name} is not YAML ({problem}): compare that line with the others.") from None
    except (ValueError, OverflowError) as error:  # an escape beyond Unicode, a version of 5,000 digits
        raise UserError(f"{source}: {name} is not YAML ({printable(error)}): compare it with PROMPT.md.") from None
    if not isinstance(node, yaml.MappingNode):
        advice = "write keys with values, as PROMPT.md shows"
        raise UserError(f"{source}, line {first_line}: {name} holds no keys with values: {advice}.")
    values = plain(node, ())
    assert isinstance(values, dict)
    return PlainYaml(values, lines)
