"""`make pages`: run the Python blocks of pages in docs/, and write below each block what it prints.

A block is run if a block of text follows it, and so are the blocks before the first `##`, which every section needs.
The blocks of a page run in a child process with portable numerics, so their output is the same on every x86-64
processor. `tests/test_pages.py` compares.
"""

import contextlib
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence

from harness.canonical_setup import run_environment
from harness.recipes.recipe import ROOT

PAGES = ("curves", "drift", "measured", "normalization")
_BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```$)?", re.DOTALL | re.MULTILINE)


def page_text(page: str) -> str:
    """Return the text of a page in docs/."""
    return (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")


def shown_outputs(text: str) -> list[str]:
    """Return what the blocks of a page print, as the page shows it."""
    return [found["output"] for found in _BLOCK.finditer(text) if found["output"] is not None]


def measured_outputs(page: str) -> list[str]:
    """Run the blocks of a page in a child process, and return what those print whose output the page shows."""
    command = [sys.executable, "-m", "benchmarks.pages", "--run", page]
    environment = run_environment("portable") | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"a block of docs/{page}.md fails:\n{done.stderr}")
    outputs: list[str] = json.loads(done.stdout)
    return outputs


def run_blocks(text: str) -> Iterator[str]:
    """Run all blocks of a page in order, and yield what those print whose output the page shows.

    Each section begins with the names that the blocks before the first heading define.
    """
    shared: dict[str, object] | None = None
    names: dict[str, object] = {"__name__": "page"}
    for part in re.split(r"^(?=## )", text, flags=re.MULTILINE):
        names = dict(shared or names)
        for found in _BLOCK.finditer(part):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(found["code"], part.partition("\n")[0], "exec"), names)
            if found["output"] is not None:
                yield printed.getvalue()
        shared = shared or names


def with_outputs(text: str, outputs: Sequence[str]) -> str:
    """Return the text of a page with other outputs."""
    left = iter(outputs)

    def fill(found: re.Match[str]) -> str:
        if found["output"] is None:
            return found[0]
        return f"```python\n{found['code']}```\n\n```text\n{next(left)}```"

    return _BLOCK.sub(fill, text)


def main(words: Sequence[str]) -> None:
    """Write the outputs of these pages, or of all pages; with `--run PAGE`, print the outputs of one page as JSON."""
    if words[:1] == ["--run"]:
        print(json.dumps([*run_blocks(page_text(words[1]))]))
        return
    for page in words or PAGES:
        text = page_text(page)
        (ROOT / "docs" / f"{page}.md").write_text(with_outputs(text, measured_outputs(page)), encoding="utf-8")
        print(f"docs/{page}.md: {len(shown_outputs(text))} blocks")


if __name__ == "__main__":
    main(sys.argv[1:])
