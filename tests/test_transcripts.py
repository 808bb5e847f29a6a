"""The figures in the pages about instruments are those of a run: measured now, shown as the commands show them."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from benchmarks.transcripts import COLUMNS, commands, printed, rerun, transcripts
from harness.exercise import Asked
from harness.instruments.commands import COMMANDS
from harness.instruments.report import report
from harness.instruments.session import measured
from harness.instruments.target import Target, find_target
from harness.instruments.terminal import show_reported

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {name: (DOCS / f"{name}.md").read_text() for name in ("instruments", "walkthrough")}
MEASURES = re.compile(r"harness ([a-z-]+) (\w+)")
# Those that measure for long, or write files, are run by hand with the rest (`python -m benchmarks.transcripts`).
SLOW = ("forgotten_eval", "triage", "compare", "repro", "exercise", "verify")


def shown(page: str) -> Iterator[tuple[str, str, str]]:
    """Yield exercise, instrument and what was printed, for the untouched experiment on the MLP."""
    for block in transcripts(page):
        for command, output in printed(block).items():
            if command.startswith("sed -i"):
                return
            found = MEASURES.fullmatch(command)
            if found and not set(found.groups()) & set(SLOW):
                yield found[2], found[1].replace("-", "_"), output


@pytest.mark.parametrize("name", PAGES)
def test_transcripts_are_what_the_instruments_show(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("NO_COLOR", "1")
    asked = list(shown(PAGES[name]))
    assert len(asked) >= 2
    for exercise in {exercise for exercise, _, _ in asked}:
        target = find_target(exercise, tmp_path, Asked())
        texts = {check: text for other, check, text in asked if other == exercise}
        for check, text in _texts(target, tuple(texts), capsys):
            assert text == texts[check], f"{check}: run python -m benchmarks.transcripts docs/{name}.md"


def _texts(
    target: Target, checks: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> Iterator[tuple[str, str]]:
    for reported in report(target, measured(target, checks, {})):
        capsys.readouterr()
        show_reported(reported, target.words)
        lines = capsys.readouterr().out.splitlines()
        yield reported.id, "\n".join(line.rstrip() for line in lines).rstrip() + "\n"


def test_each_instrument_has_a_section_with_an_example() -> None:
    sections = re.split(r"^## ", PAGES["instruments"], flags=re.MULTILINE)[1:]
    by_title = {section.partition("\n")[0]: section for section in sections}
    for command in COMMANDS:
        name = str(command.name)
        if name == "reproduce":
            name = "repro"
        examples = [line for block in transcripts(by_title[name]) for line in commands(block)]
        assert any(f"harness {name} " in line for line in examples), name
        assert f"| `harness {name}` |" in PAGES["instruments"]


@pytest.mark.parametrize("name", PAGES)
def test_no_transcript_is_empty_or_broken_off(name: str) -> None:
    for block in transcripts(PAGES[name]):
        assert commands(block)
        *_, last = printed(block).values()
        assert last.strip(), block
        assert "Traceback" not in block


def test_a_page_is_made_again_command_by_command() -> None:
    page = "# A\n\n```console\n$ echo one > file\n$ cat file; echo two >&2\nold\n```\n\n```toml\n$ ls\n```\n"
    page += "```console\n$ ls\n```\n"
    made = rerun(page)
    assert made == (
        "# A\n\n```console\n$ echo one > file\n$ cat file; echo two >&2\none\ntwo\n```\n\n```toml\n$ ls\n```\n"
        "```console\n$ ls\nfile\n```\n"
    )
    assert rerun(made) == made
    assert printed(transcripts(made)[0]) == {"echo one > file": "", "cat file; echo two >&2": "one\ntwo\n"}


def test_a_command_that_fails_is_no_transcript() -> None:
    with pytest.raises(click.ClickException, match="false ended with status 1"):
        rerun("```console\n$ false\n```\n")
