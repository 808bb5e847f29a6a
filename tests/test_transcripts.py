"""The figures in the pages about instruments are those of a run: measured now, shown as the commands show them."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from benchmarks.transcripts import COLUMNS, commands, printed, rerun, transcripts
from harness.checks.checks import checked_ids, triage_checks
from harness.checks.commands import COMMANDS
from harness.checks.report import Reported, report
from harness.checks.session import measured
from harness.checks.target import Target, find_target
from harness.checks.terminal import show_reported
from harness.exercise import Asked

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {name: (DOCS / f"{name}.md").read_text() for name in ("instruments", "walkthrough")}
MEASURES = re.compile(r"harness ([a-z-]+) (\w+)(?: --only (\w+))?")
MEASURING = {str(command.name) for command in COMMANDS} - {"triage", "compare", "repro", "reproduce"}
# Made again with all others by `python -m benchmarks.transcripts`, and not here: a CNN takes long.
SLOW = "forgotten_eval"


def untouched(page: str) -> Iterator[tuple[str, str, str]]:
    """Yield exercise, check (or "triage") and what was printed, up to where the page edits the experiment."""
    for block in transcripts(page):
        for command, output in printed(block).items():
            if command.startswith("sed -i"):
                return
            found = MEASURES.fullmatch(command)
            if found and found[2] != SLOW and (found[1] in MEASURING or found[1] == "triage"):
                yield found[2], found[3] or found[1].replace("-", "_"), output


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_transcripts_are_what_the_instruments_show(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("NO_COLOR", "1")
    asked = list(untouched(PAGES[name]))
    assert {check for _, check, _ in asked} >= {"triage", "gradients", "gradcheck"}
    for exercise in {exercise for exercise, _, _ in asked}:
        target = find_target(exercise, tmp_path, Asked())
        texts = {check: text for other, check, text in asked if other == exercise}
        walk = texts.pop("triage", "")
        # A workspace with a run has its checkpoint evaluated; here there is none.
        walked = [check.id for check in triage_checks() if walk and check.id != "modes"]
        found = report(target, measured(target, checked_ids([*texts, *walked]), {}))
        for one in found:
            remedy = f"{one.id}: python -m benchmarks.transcripts docs/{name}.md"
            if one.id in texts:
                assert shown(one, target, capsys) == texts[one.id], remedy
            if one.id in walked:
                assert f" {one.outcome.id} " in walk and f"\n     {one.evidence.said}\n" in walk, remedy


def shown(reported: Reported, target: Target, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a command prints of it, as a page holds it."""
    capsys.readouterr()
    show_reported(reported, target.words)
    lines = capsys.readouterr().out.splitlines()
    return "\n".join(line.rstrip() for line in lines).rstrip() + "\n"


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
