"""No broken experiment gives its fault away by its looks: an editor that greys out a name would show the answer.

Each broken experiment is compared with its healthy one: by ruff, by the format of the lines, and by the names that
nothing uses. A finding that only the broken experiment has points at the edit.
"""

import ast
import difflib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import recipe_ids

RUFF = Path(sys.executable).with_name("ruff")
# Unused names, arguments and imports; likely bugs; lines that are too long; a function without a docstring. Other
# rules also find something only in broken experiments, but nothing that points at the edit: a magic number, or one
# statement too many.
RULES = "E,F,W,B,ARG,D1,PIE,PLR1704,PLW"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with each broken experiment as <recipe>.py, and each healthy one as healthy/<experiment>.py."""
    place = tmp_path_factory.mktemp("experiments")
    (place / "healthy").mkdir()
    for recipe in map(load_recipe, recipe_ids()):
        (place / f"{recipe.id}.py").write_text(recipe.broken_source(), encoding="utf-8")
        (place / "healthy" / f"{recipe.experiment}.py").write_text(recipe.healthy_source(), encoding="utf-8")
    return place


def lint(folder: Path) -> dict[str, Counter[tuple[str, str]]]:
    """Return the findings of ruff, as (rule, message), for each file of a folder."""
    words = ["check", "--isolated", "--no-cache", "--line-length=120", f"--select={RULES}", "--output-format=json"]
    done = subprocess.run([RUFF, *words, "."], cwd=folder, capture_output=True, text=True, check=False)
    found: dict[str, Counter[tuple[str, str]]] = {}
    for one in json.loads(done.stdout):
        name = Path(one["filename"]).relative_to(folder.resolve()).as_posix()
        found.setdefault(name, Counter())[one["code"], one["message"]] += 1
    return found


def unformatted(folder: Path) -> dict[str, set[str]]:
    """Return the lines that ruff would format in another way, for each file. This formats the files."""
    before = {path: path.read_text(encoding="utf-8").splitlines() for path in folder.rglob("*.py")}
    subprocess.run([RUFF, "format", "--isolated", "--no-cache", "--line-length=120", "."], cwd=folder, check=True)
    return {
        path.relative_to(folder).as_posix(): {
            line[2:] for line in difflib.ndiff(lines, path.read_text().splitlines()) if line.startswith("- ")
        }
        for path, lines in before.items()
    }


def unused_names(source: str) -> set[str]:
    """Return the names that a program defines and never reads: variables, functions, arguments and attributes."""
    defined: set[str] = set()
    read: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            (defined if isinstance(node.ctx, ast.Store) else read).add(name)
        elif isinstance(node, ast.alias):
            defined.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.keyword) and node.arg:
            read.add(node.arg)
    return defined - read - {"forward"}


def test_no_broken_experiment_gives_its_fault_away(folder: Path) -> None:
    linted, lines = lint(folder), unformatted(folder)
    found = set()
    for recipe in map(load_recipe, recipe_ids()):
        broken, healthy = f"{recipe.id}.py", f"healthy/{recipe.experiment}.py"
        new = linted.get(broken, Counter()) - linted.get(healthy, Counter())
        found |= {(recipe.id, rule) for rule, _ in new}
        if lines[broken] - lines[healthy]:
            found.add((recipe.id, "format"))
        if unused_names(recipe.broken_source()) - unused_names(recipe.healthy_source()):
            found.add((recipe.id, "unused"))
    assert found == set(), "These findings point at the edit: write the break in another way."


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import copy\n", {"copy"}),
        ("def helper(x):\n    y = x\n", {"helper", "y"}),
        ("class A:\n    def forward(self):\n        self.b = 1\n\n\nA()\n", {"b"}),
        ("def step(*, rate):\n    return rate\n\n\nstep(rate=1)\n", set()),
    ],
)
def test_a_name_that_nothing_reads_is_unused(source: str, names: set[str]) -> None:
    assert unused_names(source) == names
