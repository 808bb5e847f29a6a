"""docs/interview.md: every recipe has its four parts, and what it says of commands and outcomes is so."""

import re

import pytest

from grader.written.decision_tree.recorded import load_recording
from harness.checks import check_names, load_check
from harness.cli import cli
from harness.recipe import ROOT, recipe_ids

PAGE = (ROOT / "docs" / "interview.md").read_text(encoding="utf-8")
PARTS = ("The symptom.", "Ask for.", "The 60-second triage.", "The long-term fix.")
SAID = re.compile(r"`(harness [^`]+)`\s+says\s+`([^`]+)`")


def sections() -> dict[str, str]:
    pieces = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)[1:]
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


def test_there_is_a_section_for_every_recipe_and_no_other() -> None:
    assert list(sections()) == recipe_ids()


@pytest.mark.parametrize("recipe", recipe_ids())
def test_a_section_has_the_four_parts_in_their_order(recipe: str) -> None:
    found = re.findall(r"^\*\*([^*]+)\*\*", sections()[recipe], flags=re.MULTILINE)
    assert tuple(found) == PARTS
    for text in re.split(r"^\*\*[^*]+\*\*", sections()[recipe], flags=re.MULTILINE)[1:]:
        assert len(text.split()) >= 20


@pytest.mark.parametrize("recipe", recipe_ids())
def test_the_triage_makes_checks_of_this_recipe_that_give_what_it_says(recipe: str) -> None:
    said = SAID.findall(sections()[recipe])
    commands = re.findall(r"`(harness [^`]+)`", sections()[recipe])
    assert 2 <= len(said) == len(commands)
    by_command = {load_check(name).command(recipe): name for name in check_names()}
    recorded = [one for one in load_recording("decision_tree").experiments if one.truth == recipe]
    assert len(recorded) >= 3
    for command, outcome in said:
        assert {one.outcomes[by_command[command]] for one in recorded} == {outcome}, command


def test_every_command_is_one() -> None:
    for command in re.findall(r"`harness ([^`]+)`", PAGE):
        name, *words = command.split()
        context = cli.commands[name].make_context(name, words)
        assert context.params["target" if "target" in context.params else "recipe"] in recipe_ids()
