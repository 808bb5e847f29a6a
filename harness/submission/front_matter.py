"""The YAML front matter of a report, told from the body, and read as plain texts with the line of each."""

from harness.errors import UserError
from harness.plain_yaml import LIMIT, Place, PlainYaml, read_plain_yaml

FENCE = "---"


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


def parse_front_matter(matter: str, source: str) -> PlainYaml:
    """Return the values of a front matter whose first line is line 2 of `source`; see `read_plain_yaml`."""
    holds = "root_cause_layer and evidence"
    return read_plain_yaml(matter, Place(source, 2, "the front matter", holds, "signal or value"))
