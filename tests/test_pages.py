"""The blocks of the pages that show measured outputs run, and print the shown outputs."""

import platform

import pytest

from benchmarks.pages import PAGES, measured_outputs, page_parts, page_text, run_blocks, shown_outputs, with_outputs

CASES = [
    pytest.param(page, at, id=f"{page}: {part.partition(chr(10))[0].lstrip('# ')}")
    for page in PAGES
    for at, part in enumerate(page_parts(page_text(page)))
    if "```python" in part and at
]
PAGE = """# A page

```python
one = 1
```

## First

```python
print(one + 1)
```

```text
3
```

## Second

```python
one = one + 5
```

```python
print(one)
```

```text
```
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the outputs are the same on every x86-64 processor")
@pytest.mark.parametrize(("page", "at"), CASES)
def test_a_section_prints_what_the_page_shows(page: str, at: int) -> None:
    part = page_parts(page_text(page))[at]
    assert measured_outputs(page, at) == shown_outputs(part), f"make pages PAGE={page}"


def test_each_block_of_text_has_an_output() -> None:
    for page in PAGES:
        outputs = [output for part in page_parts(page_text(page)) for output in shown_outputs(part)]
        assert outputs and all(outputs), page


def test_outputs_are_written_below_their_blocks() -> None:
    common, first, second = page_parts(PAGE)
    assert shown_outputs(first) == ["3\n"]
    assert run_blocks([common, first]) == ["2\n"]
    assert run_blocks([common, second]) == ["6\n"]  # without the names of the other section
    assert "```text\n2\n```" in with_outputs(first, ["2\n"])
    assert with_outputs(second, ["6\n"]).endswith("```python\nprint(one)\n```\n\n```text\n6\n```\n")
