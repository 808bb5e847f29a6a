"""`make looks` draws broken experiments for a reader, and compares the answers with the key."""

import json
from pathlib import Path

import pytest
from looks import ANSWERS, changed_lines, functions_at, key_of, main

from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import recipe_ids


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert main(["--out", str(tmp_path / "some"), "--number", "4", "--seed", "3"]) == 0
    return tmp_path / "some"


def test_the_reader_sees_only_the_experiments(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["01.py", "02.py", "03.py", "04.py", ANSWERS]
    key = json.loads(key_of(folder).read_text())
    recipes = [load_recipe(entry["recipe"]) for entry in key.values()]
    assert [(folder / f"{name}.py").read_text() for name in key] == [recipe.broken_source() for recipe in recipes]
    text = "".join(path.read_text() for path in folder.iterdir())
    assert [name for name in recipe_ids() if name in text] == []


def test_the_same_seed_draws_the_same_experiments(folder: Path, tmp_path: Path) -> None:
    main(["--out", str(tmp_path / "again"), "--number", "4", "--seed", "3"])
    main(["--out", str(tmp_path / "other"), "--number", "4", "--seed", "4"])
    key, again, other = (key_of(tmp_path / name).read_text() for name in ("some", "again", "other"))
    assert key == again != other


def test_a_line_and_a_function_of_the_edit_are_right(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = json.loads(key_of(folder).read_text())
    line, function = key["01"]["lines"][0], next(entry["functions"][0] for entry in key.values() if entry["functions"])
    place = next(name for name, entry in key.items() if entry["functions"])
    answers = {"01": str(line), "02": "9999", "03": "nothing", **({} if place == "01" else {place: f"{function}()"})}
    (folder / ANSWERS).write_text("# mine\n" + "".join(f"{name} {said}\n" for name, said in answers.items()))
    assert main(["--out", str(folder), "--answers", str(folder / ANSWERS)]) == 0
    *rows, last = capsys.readouterr().out.splitlines()[-5:]
    right = 1 + (place != "01")
    assert last.startswith(f"{right} of 4 edits were found")
    assert sum(row.startswith("found") for row in rows) == right


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [("a\nb\nc\n", "a\nB\nc\n", [2]), ("a\nb\nc\n", "a\nc\n", [1, 2]), ("a\nc\n", "a\nb\nb\nc\n", [2, 3])],
)
def test_a_deletion_counts_for_the_lines_beside_it(before: str, after: str, lines: list[int]) -> None:
    assert changed_lines(before, after) == lines


def test_a_line_of_a_method_belongs_to_its_class_too() -> None:
    source = "class Net:\n    def forward(self, x):\n        return x\n\n\ndef other():\n    pass\n"
    assert functions_at(source, [3]) == ["Net", "forward"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "some exists: move it away"),
        (["--answers", "missing.txt"], "There is no missing.txt"),
        (["--answers", "{folder}/bad.txt"], "bad.txt, line 1: write the number of a file"),
    ],
)
def test_a_mistake_gets_a_sentence(
    folder: Path, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.txt").write_text("01 line 57\n")
    assert main(["--out", str(folder), *(word.format(folder=folder) for word in arguments)]) == 2
    assert says in capsys.readouterr().err
