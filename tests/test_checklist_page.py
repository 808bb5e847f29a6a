import re
import shlex
from pathlib import Path

import pytest
from commands import edit
from instrument_subjects import measure_here, say
from page_reader import Page

from benchmarks.checklist_page import AFTER, BEFORE, EXERCISE, PAGE, SHEET, page, sheet
from harness.checks.checks import load_checks

LISTED = re.compile(r"^- \[ \] `harness ([^`]+)`", re.MULTILINE)


def test_both_pages_are_what_the_checks_make() -> None:
    assert PAGE.read_text() == page(), "run python -m benchmarks.checklist_page"
    assert SHEET.read_text() == sheet(), "run python -m benchmarks.checklist_page"


def test_every_check_and_outcome_is_on_both_pages_in_order() -> None:
    text, printed = page(), Page(sheet()).words
    checks = sorted(load_checks(), key=lambda check: not check.triage)
    assert [found.split()[0] for found in re.findall(r"^### (\d+\. .*)$", text, re.MULTILINE)] == [
        f"{number}." for number in range(1, len(checks) + 1)
    ]
    place = 0
    for check in checks:
        place = text.index(check.question, place)
        assert check.question in printed
        assert check.command_for(EXERCISE) in printed
        for outcome in check.outcomes:
            assert outcome.reading in text
            assert outcome.id in printed


@pytest.mark.slow
def test_every_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch_as_found: None) -> None:
    """In the order of the page, in one folder, on a short run; triage as a whole is the checks that follow it."""
    measure_here(monkeypatch)
    monkeypatch.chdir(tmp_path)
    listed = [shlex.split(words) for words in LISTED.findall(page())]
    assert len(listed) == len(BEFORE) + len(load_checks()) + len(AFTER)
    listed.remove(["triage", EXERCISE])
    for words in listed:
        if words[0] == "verify":
            edit(tmp_path / "work" / EXERCISE / "experiment.py", "lr=10.0", "lr=0.1")
        assert say(*words, *(["--epochs", "1"] if words[0] == "exercise" else []))
