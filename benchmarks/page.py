"""Writes one benchmark's section of `docs/benchmarks.md`, and leaves the sections of the others as they are."""

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"


def write_section(path: Path, name: str, text: str) -> None:
    """Put the text in place of the section of that name, or at the end of the page where it has none yet."""
    page = path.read_text(encoding="utf-8") if path.is_file() else ""
    path.parent.mkdir(exist_ok=True)
    path.write_text(with_section(page, name, text), encoding="utf-8")


def with_section(page: str, name: str, text: str) -> str:
    """Return a page with this section in it; a section is what stands between its two comments."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    section = f"{begin}\n\n{text.strip()}\n\n{end}"
    found = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if found.search(page):
        return found.sub(lambda match: section, page, count=1)
    return f"{page.rstrip()}\n\n{section}\n".lstrip()
