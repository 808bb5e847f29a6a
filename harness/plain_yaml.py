"""Reads YAML from an untrusted file as plain text values, each with its line number.

Aliases, anchors and tags are refused, so the values are only mappings, lists and text, and never larger than the file.
libyaml parses it, ten times as fast as PyYAML's own parser: a class has thousands of reports.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from harness.errors import UserError

LIMIT = 16 * 1024  # characters; a hundred pieces of evidence take about 7,000
DEPTH = 8  # a piece of evidence is 3 deep, a step of a tree 5

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


@dataclass(frozen=True)
class Place:
    """Words for messages about a text.

    source: the file. first_line: the line of the file on which the text begins. name: a name for the text ("the front
    matter"). holds: what it must contain. keys: examples of keys.
    """

    source: str
    first_line: int
    name: str
    holds: str
    keys: str


def shown(text: object, limit: int = 40) -> str:
    """Return a text in a form for messages: short, on one line, without control characters."""
    words = str(text)
    words = words if len(words) <= limit else words[: limit - 1] + "…"
    return words if words.isprintable() else ascii(words)[1:-1]


def read_plain_yaml(text: str, place: Place) -> PlainYaml:
    """Return the mapping in an untrusted text. Raises `UserError` that names file and line."""
    try:
        _refuse_machinery(text, place)
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise UserError(_yaml_message(error, place, len(text.splitlines()))) from None
    except (ValueError, OverflowError) as error:  # an escape beyond Unicode, a version of 5,000 digits
        raise UserError(
            f"{place.source}: {place.name} is not YAML ({shown(error)}): compare it with PROMPT.md."
        ) from None
    lines: dict[Location, int] = {}
    values = None if node is None else _plain(node, (), lines, place)
    if not isinstance(values, dict):
        raise UserError(
            f"{place.source}, line {place.first_line}: {place.name} must hold {place.holds}, each with a value."
        )
    return PlainYaml(values, lines)


def _line(mark: Any, place: Place) -> int:
    return place.first_line + (0 if mark is None else int(mark.line))


def _where(mark: Any, place: Place) -> str:
    return f"{place.source}, line {_line(mark, place)}"


def _refuse_machinery(text: str, place: Place) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        where = _where(event.start_mark, place)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise UserError(f"{where}: anchors and aliases (& and *) are not allowed: write the value out.")
        if getattr(event, "tag", None) is not None:
            raise UserError(f"{where}: tags (!) are not allowed: write the value plainly.")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEPTH:
            raise UserError(f"{where}: brackets within brackets, {depth} deep: write it as PROMPT.md shows.")


def _yaml_message(error: yaml.YAMLError, place: Place, lines: int) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is None or mark.line >= lines:  # something that begins in the text and does not end in it
        mark = getattr(error, "context_mark", None) or mark
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
    where = _where(mark, place) if mark is not None else place.source
    return f"{where}: {place.name} is not YAML ({shown(problem, 80)}): compare that line with the others."


def _plain(node: yaml.Node, at: Location, lines: dict[Location, int], place: Place) -> Plain:
    lines[at] = _line(node.start_mark, place)
    if isinstance(node, yaml.ScalarNode):
        return None if node.tag == "tag:yaml.org,2002:null" and node.value == "" else str(node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*at, index), lines, place) for index, item in enumerate(node.value)]
    return dict(_pairs(node, at, lines, place))


def _pairs(
    node: yaml.Node, at: Location, lines: dict[Location, int], place: Place
) -> Iterator[tuple[str, Plain]]:
    seen = set()
    for key_node, value_node in node.value:
        where = _where(key_node.start_mark, place)
        if not isinstance(key_node, yaml.ScalarNode):
            raise UserError(f"{where}: a key must be a word, such as {place.keys}.")
        key = str(key_node.value)
        if key in seen:
            raise UserError(f"{where}: `{shown(key)}` is there twice: keep one of them.")
        seen.add(key)
        value = _plain(value_node, (*at, key), lines, place)
        lines[(*at, key)] = _line(key_node.start_mark, place)
        yield key, value
