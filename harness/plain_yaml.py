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
    reader = _Reader(text, source, first_line)
    try:
        values = reader.document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        if mark is None or mark.line >= len(text.splitlines()):  # what begins in the text may not end in it
            mark = getattr(error, "context_mark", None) or mark
        problem = printable(getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML")
        where = source if mark is None else reader.where(mark)
        raise UserError(
            f"{where}: {name} is not YAML ({problem}): compare that line with the others."
        ) from None
    except (ValueError, OverflowError) as error:  # an escape beyond Unicode, a version of 5,000 digits
        raise UserError(
            f"{source}: {name} is not YAML ({printable(error)}): compare it with PROMPT.md."
        ) from None
    if not isinstance(values, dict):
        advice = "write keys with values, as PROMPT.md shows"
        raise UserError(f"{source}, line {first_line}: {name} holds no keys with values: {advice}.")
    return PlainYaml(values, reader.lines)


class _Reader:
    """Builds plain values from the events of one YAML document, and notes the line of each value."""

    def __init__(self, text: str, source: str, first_line: int) -> None:
        self.lines: dict[Location, int] = {}
        self._events = yaml.parse(text, Loader=yaml.CSafeLoader)
        self._source = source
        self._first_line = first_line

    def where(self, mark: Any) -> str:
        return f"{self._source}, line {self._line(mark)}"

    def _line(self, mark: Any) -> int:
        return self._first_line + int(mark.line)

    def document(self) -> Plain:
        """Return the value of the only document, None if there is none."""
        values = None
        for number, event in enumerate(self._events):  # the stream and the document begin with an event each
            if isinstance(event, yaml.DocumentStartEvent) and number > 1:
                raise UserError(
                    f"{self.where(event.start_mark)}: a second document begins: keep one of them."
                )
            if isinstance(event, yaml.NodeEvent):
                values = self._value(event, ())
        return values

    def _value(self, event: yaml.Event, at: Location) -> Plain:
        where = self.where(event.start_mark)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise UserError(f"{where}: anchors and aliases (& and *) are not allowed: write the value out.")
        if getattr(event, "tag", None) is not None:
            raise UserError(f"{where}: tags (!) are not allowed: write the value plainly.")
        if len(at) >= DEPTH and isinstance(event, yaml.CollectionStartEvent):
            raise UserError(f"{where}: brackets within brackets, too deep: write it as PROMPT.md shows.")
        self.lines.setdefault(at, self._line(event.start_mark))
        if isinstance(event, yaml.ScalarEvent):
            return None if event.value == "" and event.implicit[0] else str(event.value)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Plain] = []
            while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
                items.append(self._value(event, (*at, len(items))))
            return items
        found: dict[str, Plain] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            where = self.where(event.start_mark)
            if not isinstance(event, yaml.ScalarEvent) or event.anchor or event.tag:
                raise UserError(f"{where}: a key must be a word, such as signal or check.")
            key = str(event.value)
            if key in found:
                raise UserError(f"{where}: `{printable(key)}` is there twice: keep one of them.")
            self.lines[(*at, key)] = self._line(event.start_mark)
            found[key] = self._value(next(self._events), (*at, key))
        return found
