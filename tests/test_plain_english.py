"""Phrases that readers had to read twice appear nowhere in docstrings, comments, messages, pages and docs."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# By pattern: an example of a better wording. A fluent reader marked each of these phrases.
UNUSED = {
    r"\b(?:that|those) of (?:the|a|an|its|their|each|one|another)\b": "repeat the noun: 'the loss of the first batch'",
    r"(?<!there )\b(?:is|are) none\b(?! (?:%|else))": "'does not exist', 'there is no ...'",
    r"\bso many\b": "give the number, or 'this number of'",
    r"\bby chance\b": "'at random'",
    r"\bputs? out\b": "'outputs'",
    r"\bwhat(?:ever)? (?:is|was|are) (?:left|there|told|said|shown|known|asked|measured|made|done) (?:is|are|was)\b": (
        "name the thing"
    ),
    r"\b(?:is|are) told apart\b": "'differ'",
    r"\bsays nothing of\b": "'does not mention'",
    r"\bnothing but\b": "'only'",
    r"\bis no (?:more|longer) than\b": "'is at most'",
    r"\bthe (?:like|same) holds\b": "say what is true",
    r"\bin whatever\b": "'in any'",
    r"\bmend(?:s|ed|ing)?\b": "'fix'",
}
# A comment in an experiment is part of its source, whose hash is recorded: those are not looked at.
_SKIPPED = (
    "tests/data/", "docs/peers.md", "tests/test_plain_english.py", "harness/page/templates/uplot",
    "harness/experiments/", "tests/helpers/mini_experiments.py",
)  # fmt: skip


def texts() -> Iterator[tuple[str, str]]:
    """Yield (file, text): docstrings, messages and comments of Python files, and the whole text of other files."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if name.startswith(_SKIPPED) or not (ROOT / name).is_file():
            continue
        if name.endswith((".md", ".j2", ".toml", ".js")):
            yield name, (ROOT / name).read_text(encoding="utf-8")
        elif name.endswith(".py"):
            source = (ROOT / name).read_text(encoding="utf-8")
            yield from ((name, text) for text in prose_of(source))


def prose_of(source: str) -> Iterator[str]:
    """Yield the strings and the comments of a Python file; comments on adjacent lines are one text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    block, last = "", 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            near = token.start[0] == last + 1
            if not near and block:
                yield block
            block, last = (f"{block} {token.string[1:]}" if near else token.string[1:]), token.start[0]
    yield block


@pytest.mark.parametrize("phrase", UNUSED)
def test_a_phrase_that_readers_read_twice_is_not_used(phrase: str) -> None:
    pattern = re.compile(phrase)
    found = [
        f"{name}: ...{line[max(0, hit.start() - 40) : hit.end() + 40]}..."
        for name, text in texts()
        for line in [" ".join(text.split())]
        for hit in pattern.finditer(line)
    ]
    assert not found, f"write {UNUSED[phrase]} instead:\n" + "\n".join(found)
