"""Read YAML from an untrusted file. Numbers are not converted, and the line number of each value is kept.

Aliases, anchors and tags are not allowed, so a small file cannot expand into large values. This module uses the parser
libyaml, because it is ten times as fast as PyYAML's own parser, and a class has thousands of reports.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from harness.errors import UserError, printable

LIMIT = 16 * 1024  # the most characters of a text; a hundred pieces of evidence have about 7,000
DEPTH = 8  # the most levels of nesting; evidence has 3, a step of a decision tree 5
TOO_DEEP = "the brackets are nested too deeply: write the front matter as PROMPT.md shows"

# A number stays text, because its written digits show its precision. An empty value is None.
Plain = str | None | list["Plain"] | dict[str, "Plain"]
Location = tuple[str | int, ...]


@dataclass(frozen=True)
class PlainYaml:
    """The values of a YAML text. `lines` maps the path of each value (its keys and indices) to its line number."""

    values: dict[str, Plain]
    lines: dict[Location, int]

    def line(self, location: Location) -> int:
        """Return the line number of a value or, if it is unknown, of the nearest value that contains it."""
        at = location
        while at not in self.lines:
            at = at[:-1]
        return self.lines[at]


def read_plain_yaml(text: str, source: str, name: str, *, first_line: int = 1) -> PlainYaml:
    """Parse an untrusted YAML text, which must be a mapping, and return its values with their line numbers.

    name: the name of the text in messages. source, first_line: the file, and the line in it where the text begins.
    Raises `UserError` that names the file and, if possible, the line.
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
        if mark is None or mark.line >= len(text.splitlines()):  # an unclosed bracket or quote: name its first line
            mark = getattr(error, "context_mark", None) or mark
        problem = printable(getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML")
        where = source if mark is None else f"{source}, line {line_of(mark)}"
        if "nesting depth" in problem:  # libyaml 0.2.6 refuses 1,000 nested brackets before it returns the first event
            raise UserError(f"{where}: {TOO_DEEP}.") from None
        raise UserError(f"{where}: {name} is not YAML ({problem}): compare that line with other lines.") from None
    except (ValueError, OverflowError) as error:  # such as an escape beyond Unicode, or a version of 5,000 digits
        raise UserError(
            f"{source}: {name} is not YAML ({printable(error)}): compare it with the example in PROMPT.md."
        ) from None
    if not isinstance(node, yaml.MappingNode):
        advice = "write keys with values, as PROMPT.md shows"
        raise UserError(f"{source}, line {first_line}: {name} has no keys with values: {advice}.")
    values = plain(node, ())
    assert isinstance(values, dict)
    return PlainYaml(values, lines)


def walk_scalars(data: bytes) -> Iterator[tuple[Sequence[str | int], str]]:
    """Yield (path, value) for each scalar in a YAML file.

    The path consists of the keys and indices that lead to the scalar. This reads only the events of the parser, because
    building objects would expand all aliases and recurse into all levels of nesting. Raises `ValueError` for data that
    are not YAML.
    """
    path: list[str | int | None] = []  # the current key or index in each open collection; None if a key comes next
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
