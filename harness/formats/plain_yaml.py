"""Read YAML from an untrusted file as plain text values, each with its line number.

Aliases, anchors and tags are refused. So the values are only mappings, lists and text, and never larger than the file.
libyaml is ten times as fast as PyYAML's own parser, and a class has thousands of reports.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from harness.errors import UserError, printable

LIMIT = 16 * 1024  # characters; a hundred pieces of evidence take about 7,000
DEPTH = 8  # levels of nesting: evidence has 3, a step of a decision tree 5
TOO_DEEP = "brackets are nested too deeply: write it as PROMPT.md shows"

# A scalar stays text, because the digits of a number tell its precision. An empty one is None.
Plain = str | None | list["Plain"] | dict[str, "Plain"]
Location = tuple[str | int, ...]


@dataclass(frozen=True)
class PlainYaml:
    """The values, and the line number of each value by its path of keys and indices."""

    values: dict[str, Plain]
    lines: dict[Location, int]

    def line(self, location: Location) -> int:
        """Return the line of a value, or of the closest value around it."""
        at = location
        while at not in self.lines:
            at = at[:-1]
        return self.lines[at]


def read_plain_yaml(text: str, source: str, name: str, *, first_line: int = 1) -> PlainYaml:
    """Parse an untrusted YAML text and return its mapping.

    Messages call the text `name`; it begins at line `first_line` of the file `source`. Raises `UserError` that names
    the file and, if possible, the line.
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
                raise refusal(key, f"`{printable(key.value)}` appears twice: keep one of them")
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
        if mark is None or mark.line >= len(text.splitlines()):  # an open bracket or quote: point at its start
            mark = getattr(error, "context_mark", None) or mark
        problem = printable(getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML")
        where = source if mark is None else f"{source}, line {line_of(mark)}"
        if "nesting depth" in problem:  # libyaml 0.2.6 refuses 1,000 nested brackets before the first event
            raise UserError(f"{where}: {TOO_DEEP}.") from None
        raise UserError(f"{where}: {name} is not YAML ({problem}): compare that line with the others.") from None
    except (ValueError, OverflowError) as error:  # an escape beyond Unicode, a version of 5,000 digits
        raise UserError(f"{source}: {name} is not YAML ({printable(error)}): compare it with PROMPT.md.") from None
    if not isinstance(node, yaml.MappingNode):
        advice = "write keys with values, as PROMPT.md shows"
        raise UserError(f"{source}, line {first_line}: {name} has no keys with values: {advice}.")
    values = plain(node, ())
    assert isinstance(values, dict)
    return PlainYaml(values, lines)


def walk_scalars(data: bytes) -> Iterator[tuple[Sequence[str | int], str]]:
    """Yield (path, value) for each scalar of any YAML; the path holds the keys and indices that lead to it.

    It reads the events of the parser: objects would follow aliases and nesting as deep as the file has them. Raises
    `ValueError` for data that are not YAML.
    """
    path: list[str | int | None] = []  # the key or index in each open collection; None: a key comes next
    try:
        for event in yaml.parse(data, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                path.append(None if isinstance(event, yaml.MappingStartEvent) else 0)
                continue
            if isinstance(event, yaml.CollectionEndEvent):
                path.pop()
            elif not isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent)):
                continue
            elif path and path[-1] is None:
                path[-1] = getattr(event, "value", "")
                continue
            else:
                yield [step for step in path if step is not None], getattr(event, "value", "")
            if path:
                path[-1] = path[-1] + 1 if isinstance(path[-1], int) else None
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
