"""`docs/benchmarks.md`: sections that several programs write, each between its own two marks."""

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
_HEAD = """\
# What it costs

Each section was written by the command that it names, with `--write`; do not edit. `make bench` and the others named
here measure on your own machine.
"""


def replace_section(page: Path, name: str, body: str) -> None:
    """Write `body` as the section `name` of a page, in place of what that section held; all else stays as it is.

    A section that is not there yet comes last, and a page that is not there is begun.
    """
    text = page.read_text(encoding="utf-8") if page.exists() else _HEAD
    begin, end = f"<!-- section: {name} -->", f"<!-- end: {name} -->"
    section = f"{begin}\n\n{body.strip()}\n\n{end}"
    there = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    text, found = there.subn(lambda _: section, text, count=1)
    if not found:
        text = f"{text.rstrip()}\n\n{section}\n"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
