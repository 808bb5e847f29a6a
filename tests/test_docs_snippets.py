"""Every Python block on these pages runs. The blocks before a page's first `##` run before each section."""

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from harness.recipes.recipe import ROOT

PAGES = ("antipatterns", "interview", "leakage", "nan", "themes")
_BLOCK = re.compile(
    r"^(?:\*\*(?P<label>[\w ]+)\.\*\*[^\n]*\n(?:[^\n]+\n)*\n)?```python\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)

Section = tuple[str, list[tuple[str, str]]]  # a heading; its blocks, each with the bold word before it


def sections(page: str) -> tuple[list[tuple[str, str]], list[Section]]:
    """Return the blocks before the first heading, and the sections that contain a block."""
    parts = re.split(r"^## (.*)$", (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    blocks = [[(found["label"] or "", found["code"]) for found in _BLOCK.finditer(part)] for part in parts[::2]]
    return blocks[0], [(head, found) for head, found in zip(parts[1::2], blocks[1:], strict=True) if found]


CASES = [pytest.param(page, name, id=f"{page}: {name}") for page in PAGES for name, _ in sections(page)[1]]


@pytest.fixture(autouse=True)
def _as_found(torch_as_found: None) -> Iterator[None]:
    state = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some snippets show code for which torch gives warnings
        yield
    torch.set_rng_state(state)


def find_tests(names: dict[str, Any]) -> list[Callable[[], None]]:
    return [value for name, value in names.items() if name.startswith("test_")]


@pytest.mark.parametrize(("page", "name"), CASES)
def test_every_snippet_runs(page: str, name: str) -> None:
    """A section's test fails with the code under "Looks like", and passes with the code under "Instead"."""
    shared, found = sections(page)
    names: dict[str, Any] = {}
    blocks = dict(found)[name]
    for _, code in shared:
        exec(code, names)
    by_label = dict(blocks)
    if "Test" not in by_label:
        for _, code in blocks:
            exec(code, names)
        return
    for label in ("Looks like", "Test"):
        exec(by_label[label], names)
    assert find_tests(names)
    for test in find_tests(names):
        with pytest.raises(AssertionError):
            test()
    exec(by_label["Instead"], names)
    for test in find_tests(names):
        test()


def test_the_pages_hold_as_many_sections_as_they_promise() -> None:
    count = {page: len(sections(page)[1]) for page in PAGES}
    assert count["antipatterns"] == 17
    assert count["leakage"] == 7


def test_every_picture_of_the_gallery_is_shown_and_drawn() -> None:
    text = (ROOT / "docs" / "curves.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[[^]]+\]\(curves/([\w-]+)\.svg\)", text)
    assert sorted(shown) == sorted(path.stem for path in (ROOT / "docs" / "curves").iterdir())
    assert len(shown) == 12
