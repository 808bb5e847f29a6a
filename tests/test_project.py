"""README, CONTRIBUTING and similar files name only existing things, and agree on the version."""

import re
import tomllib
from pathlib import Path

import click
import pytest
import yaml
from helpers.page_links import dead_links

from grader.cli import cli as grader
from harness import __version__
from harness.cli import cli as harness
from harness.recipes.recipe import ROOT

TEXTS = {path.name: path.read_text(encoding="utf-8") for path in ROOT.glob("*.md")}
GROUPS = {"harness": harness, "grader": grader}


def test_no_link_leads_nowhere() -> None:
    pages = {f"docs/{path.name}": path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
    links = {target for text in TEXTS.values() for target in re.findall(r"\]\((?!\w+:)([^)#\s]+)", text)}
    others = frozenset(name for name in links if (ROOT / name).exists())
    found = dead_links(TEXTS | pages, others)
    assert [one for one in found if one.split(":")[0] in TEXTS] == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_it_names_only_files_that_there_are(name: str) -> None:
    named = re.findall(r"`((?:\w+/)+[\w.]+\.(?:py|md|toml|sh))`", TEXTS[name])
    assert [path for path in named if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_it_names_only_commands_that_there_are(name: str) -> None:
    verbs = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    code = re.findall(r"`([^`\n]+)`", TEXTS[name]) + re.findall(r"^```.*\n((?:.*\n)*?)```$", TEXTS[name], re.MULTILINE)
    text = "\n".join(code)
    assert set(re.findall(r"^(?:\$ |.*&& )?make ([a-z][a-z-]*)", text, re.MULTILINE)) <= verbs
    for program, rest in re.findall(r"^(?:\$ |\.venv/bin/)?(harness|grader) ([a-z][a-z -]*)", text, re.MULTILINE):
        first, *more = rest.split(" ")
        command = GROUPS[program].commands[first]
        if isinstance(command, click.Group):
            assert more[0] in command.commands


def test_its_version_stands_once_in_code_and_twice_in_texts() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "harness.__version__"}
    assert re.findall(r"^## \[([\d.]+)\]", TEXTS["CHANGELOG.md"], re.MULTILINE)[0] == __version__
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["license"]) == (__version__, project["project"]["license"])


def test_its_licence_is_whole_and_its_notice_names_files_that_are_there() -> None:
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert (
        "Apache License" in licence and "Copyright 2026 The trainwreck authors" in licence and "[yyyy]" not in licence
    )
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    named = re.findall(r"\b(?:docs|grader|harness|tests)/[\w./-]*[\w/]", notice)
    assert len(named) > 5
    assert [name for name in named if not Path(ROOT, name).exists()] == []
