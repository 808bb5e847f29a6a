"""`make pages`: run the Python blocks of pages in docs/, and write below each block what it prints.

A block is run in the child process of its section, after the blocks before the first `##`, which every section needs.
The child has portable numerics, so the output is the same on every x86-64 processor. If a block of text follows a
block of Python, it shows the output. `tests/test_pages.py` compares.
"""

import contextlib
import io
import json
import re
import subprocess
import sys
from collections.abc import Sequence

from harness.canonical_setup import run_environment
from harness.recipes.recipe import ROOT

PAGES = ("curves", "drift", "measured", "normalization")
_BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```$)?", re.DOTALL | re.MULTILINE)


def page_text(page: str) -> str:
    """Return the text of a page in docs/."""
    return (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")


def page_parts(text: str) -> list[str]:
    """Return the text before the first `##`, and each section of a page; joined, they are the page."""
    return re.split(r"^(?=## )", text, flags=re.MULTILINE)


def shown_outputs(part: str) -> list[str]:
    """Return the outputs of the blocks of a part, as the page shows them."""
    return [found["output"] for found in _BLOCK.finditer(part) if found["output"] is not None]


def measured_outputs(page: str, part: int) -> list[str]:
    """Run the blocks of a part in a child process, and return the outputs that the page shows.

    Raises `RuntimeError` if a block fails.
    """
    command = [sys.executable, "-m", "benchmarks.pages", "--run", page, str(part)]
    environment = run_environment("portable") | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"a block of docs/{page}.md fails:\n{done.stderr}")
    outputs: list[str] = json.loads(done.stdout)
    return outputs


def run_blocks(parts: Sequence[str]) -> list[str]:
    """Run all blocks of these parts in order, with common names, and return the outputs that the last part shows."""
    names: dict[str, object] = {"__name__": "page"}
    outputs: list[str] = []
    for part in parts:
        outputs = []
        for found in _BLOCK.finditer(part):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(found["code"], part.partition("\n")[0], "exec"), names)
            if found["output"] is not None:
                outputs.append(printed.getvalue())
    return outputs


def with_outputs(part: str, outputs: Sequence[str]) -> str:
    """Return a part of a page with other outputs."""
    left = iter(outputs)

    def fill(found: re.Match[str]) -> str:
        if found["output"] is None:
            return found[0]
        return f"```python\n{found['code']}```\n\n```text\n{next(left)}```"

    return _BLOCK.sub(fill, part)


def main(words: Sequence[str]) -> None:
    """Write the outputs of these pages, or of all pages. `--run PAGE N` prints the outputs of a part as JSON."""
    if words[:1] == ["--run"]:
        parts = page_parts(page_text(words[1]))
        number = int(words[2])
        print(json.dumps(run_blocks([parts[0], parts[number]] if number else parts[:1])))
        return
    for page in words or PAGES:
        for at, part in enumerate(page_parts(page_text(page))):
            if not shown_outputs(part):
                continue
            outputs = measured_outputs(page, at)
            parts = page_parts(page_text(page))
            parts[at] = with_outputs(parts[at], outputs)
            (ROOT / "docs" / f"{page}.md").write_text("".join(parts), encoding="utf-8")
            print(f"docs/{page}.md: {part.partition(chr(10))[0]}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
