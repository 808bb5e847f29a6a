"""The generated pages, and the site with all pages."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.page_links import dead_links

from grader.docs.pages import DOCS, make_pages
from harness.checks import check_names
from harness.recipes.recipe import ROOT, recipe_ids

WRITTEN = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
MADE = make_pages()
NAV = re.findall(r"^ +- .*: ([\w-]+\.md)$|^  - Start: (index\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
# The site also contains SECURITY.md.
PAGES = {name: text.replace("](../SECURITY.md", "](security.md") for name, text in {**WRITTEN, **MADE}.items()}


def test_what_is_made_is_not_kept() -> None:
    assert set(MADE) & set(WRITTEN) == set()
    assert all(re.match(r"# \S", text) for text in PAGES.values())


def test_made_pages_tell_of_every_recipe_and_every_check() -> None:
    for page in ("calibration.md", "faults.md", "interview-cards.md", "matrix.md"):
        assert [name for name in recipe_ids() if name not in MADE[page]] == []
    assert "Not measured yet" not in MADE["calibration.md"]
    assert all(f"\n## {name.replace('_', '-')}\n" in MADE["checks.md"] for name in check_names())
    cells = json.loads((DOCS / "start.ipynb").read_text(encoding="utf-8"))["cells"]
    assert MADE["start.md"].count("\n```console\n!harness ") == sum(cell["source"][0][0] == "!" for cell in cells)


def test_every_page_has_one_place_and_a_line_on_the_start_page() -> None:
    listed = [one or start for one, start in NAV]
    assert sorted(listed) == sorted(PAGES)
    rows = re.findall(r"^\| \[[^]]+\]\(([\w-]+\.md)\)(\\\*)? \| .+ \|$", PAGES["index.md"], re.MULTILINE)
    assert ["index.md", *(page for page, _ in rows)] == listed
    assert {page for page, star in rows if star} == set(MADE) - {"security.md"}


def test_no_link_leads_nowhere() -> None:
    others = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.*")}
    assert list(dead_links(PAGES, frozenset(others))) == []
    assert list(dead_links({"a.md": "# Some `code`, here\n[x](#some-code-here) [y](#there) [z](b.md) `[0](1)`"})) == [
        "a.md: #there", "a.md: b.md",
    ]  # fmt: skip


@pytest.mark.slow
def test_the_site_builds_has_a_search_and_asks_no_other_machine_for_anything(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    index = json.loads((tmp_path / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert found == {name.replace(".md", ".html") for name in PAGES}
    for path in tmp_path.glob("*.html"):
        text = path.read_text(encoding="utf-8").replace('"', "")
        loaded = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=([^\s>]+)", text)
        loaded += re.findall(r"<link\b[^>]*\brel=(?:stylesheet|icon|preconnect)[^>]*", text)
        assert [one for one in loaded if "//" in one] == [], path.name
        assert "data-md-color-scheme=slate" in text and "data-md-component=search" in text
