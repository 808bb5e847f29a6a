"""The YAML front matter of a report, read as plain texts with the line of each; nothing is constructed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from harness.errors import UserError

LIMIT = 16 * 1024  # characters; a hundred pieces of evidence take about 7,000
DEPTH = 8  # a piece of evidence is 3 deep
FENCE = "---"

# A scalar is the text as it was written (its digits say how precise a number is), or None where nothing was.
Plain = str | None | list["Plain"] | dict[str, "Plain"]
Location = tuple[str | int, ...]


@dataclass(frozen=True)
class FrontMatter:
    """The values, and the line of the file on which each stands, by keys and indices from the top."""

    values: dict[str, Plain]
    lines: dict[Location, int]


def shown(text: object, limit: int = 40) -> str:
    """Return a text as it may stand in a message: short, on one line, without control characters."""
    words = str(text)
    words = words if len(words) <= limit else words[: limit - 1] + "…"
    return words if words.isprintable() else ascii(words)[1:-1]


def split_report(text: str, source: str) -> tuple[str, str, int]:
    """Return the front matter, the body, and the line of the file on which the body begins.

    Raises `UserError` where the front matter does not begin on line 1, does not end, or is too long.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != FENCE:
        raise UserError(
            f"{source}, line 1: a report begins with a line of three dashes (---), then root_cause_layer and"
            " evidence, then three dashes again; put them above your text."
        )
    for index, line in enumerate(lines[1:], start=1):
        if line.rstrip() == FENCE:
            matter = "\n".join(lines[1:index])
            if len(matter) > LIMIT:
                raise UserError(
                    f"{source}, line {index + 1}: the front matter has {len(matter)} characters, and may have"
                    f" {LIMIT}: cite fewer numbers."
                )
            return matter, "\n".join(lines[index + 1 :]), index + 2
    raise UserError(
        f"{source}: the front matter does not end; put a line of three dashes (---) under the evidence."
    )


def parse_front_matter(matter: str, source: str) -> FrontMatter:
    """Return the values of a front matter whose first line is line 2 of `source`.

    Aliases, anchors and tags are refused, so the values are never larger than the text, and of no other types
    than mappings, lists and text. Raises `UserError` that names file and line.
    """
    try:
        _refuse_machinery(matter, source)
        node = yaml.compose(matter, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise UserError(_yaml_message(error, source)) from None
    except (ValueError, OverflowError) as error:  # an escape beyond Unicode, a version of 5,000 digits
        raise UserError(
            f"{source}: the front matter is not YAML ({shown(error)}): compare it with PROMPT.md."
        ) from None
    lines: dict[Location, int] = {}
    values = None if node is None else _plain(node, (), lines, source)
    if not isinstance(values, dict):
        raise UserError(
            f"{source}, line 2: the front matter must hold root_cause_layer and evidence, each with a value."
        )
    return FrontMatter(values, lines)


def _line(mark: Any) -> int:
    return 2 if mark is None else int(mark.line) + 2


def _refuse_machinery(matter: str, source: str) -> None:
    depth = 0
    for event in yaml.parse(matter, Loader=yaml.SafeLoader):
        where = f"{source}, line {_line(event.start_mark)}"
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


def _yaml_message(error: yaml.YAMLError, source: str) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
    where = f"{source}, line {_line(mark)}" if mark is not None else source
    return f"{where}: the front matter is not YAML ({shown(problem, 80)}): compare that line with the others."


def _plain(node: yaml.Node, at: Location, lines: dict[Location, int], source: str) -> Plain:
    lines[at] = _line(node.start_mark)
    if isinstance(node, yaml.ScalarNode):
        return None if node.tag == "tag:yaml.org,2002:null" and node.value == "" else str(node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*at, index), lines, source) for index, item in enumerate(node.value)]
    return dict(_pairs(node, at, lines, source))


def _pairs(
    node: yaml.Node, at: Location, lines: dict[Location, int], source: str
) -> Iterator[tuple[str, Plain]]:
    seen = set()
    for key_node, value_node in node.value:
        where = f"{source}, line {_line(key_node.start_mark)}"
        if not isinstance(key_node, yaml.ScalarNode):
            raise UserError(f"{where}: a key must be a word, such as signal or value.")
        key = str(key_node.value)
        if key in seen:
            raise UserError(f"{where}: `{shown(key)}` is there twice: keep one of them.")
        seen.add(key)
        value = _plain(value_node, (*at, key), lines, source)
        lines[(*at, key)] = _line(key_node.start_mark)
        yield key, value
