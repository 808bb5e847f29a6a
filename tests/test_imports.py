"""Imports go one way: grader -> harness, and neither reads code from the folders that hold data."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.written.exercise import FileExercise, file_exercise_ids, load_exercise

ROOT = Path(__file__).parents[1]


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imported(path: Path, source: str | None = None) -> Iterator[str]:
    """Yield the full name of everything a file imports, wherever in it, `importlib.import_module` included."""
    tree = ast.parse(path.read_text(encoding="utf-8") if source is None else source)
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            for alias in node.names:
                yield ".".join(part for part in (base, node.module, alias.name) if part)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if name in ("import_module", "__import__", "run_module", "find_spec"):
                yield from (
                    arg.value
                    for arg in node.args
                    if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
                )


def breaches(package: str, forbidden: tuple[str, ...]) -> list[tuple[str, str]]:
    return [
        (path.relative_to(ROOT).as_posix(), name)
        for path in modules(package)
        for name in imported(path)
        if name.split(".")[0] in forbidden
    ]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import grader.intake as g", ["grader.intake"]),
        ("def f():\n    from grader import intake", ["grader.intake"]),
        ("from .. import grader", ["grader"]),
        ("from . import recipe", ["harness.recipe"]),
        ("from .data import Split", ["harness.data.Split"]),
        ("import importlib; importlib.import_module('grader.intake')", ["importlib", "grader.intake"]),
        ("__import__('solutions')", ["solutions"]),
        ("x = 'import grader'  # import grader", []),
    ],
)
def test_every_kind_of_import_is_seen(source: str, names: list[str]) -> None:
    assert list(imported(ROOT / "harness" / "new.py", source)) == names


def test_harness_never_imports_grader() -> None:
    assert len(modules("harness")) > 40
    assert breaches("harness", ("grader", "tests", "benchmarks")) == []


def test_nothing_imports_the_folders_that_hold_data() -> None:
    assert modules("grader")
    for package in ("harness", "grader"):
        assert breaches(package, ("exercises", "solutions")) == []


def test_the_folders_that_hold_data_hold_no_code_but_what_students_write() -> None:
    answers = {
        ROOT / folder / exercise.id / exercise.file
        for exercise in map(load_exercise, file_exercise_ids())
        if isinstance(exercise, FileExercise) and exercise.file.endswith(".py")
        for folder in ("exercises", "solutions")
    }
    assert {path for folder in ("exercises", "solutions") for path in modules(folder)} == answers


def loaded(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after one statement."""
    code = f"{statement}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


HEAVY = {"torch", "numpy", "pydantic", "rich", "jinja2", "yaml"}


def test_the_command_line_starts_without_anything_heavy() -> None:
    found = loaded("import harness.cli")
    assert "click" in found
    assert found & HEAVY == set()


# What a command needs before any run, and the whole of what is drawn, checked and packed after it.
LIGHT = [
    *(f"harness.{name}" for name in (
        "errors", "recipe", "symptoms", "workspace", "exercise", "summary", "canonical_setup", "run.settings",
        "run.metrics_log", "run.launch", "files", "run.run_job", "run.provenance",
    )),
    *(
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for package in ("harness/page", "harness/submission")
        for path in modules(package)
        if path.stem not in ("__init__", "input_sheet")  # input_sheet loads data as tensors
    ),
]  # fmt: skip


def test_modules_that_do_not_train_do_not_import_torch() -> None:
    found = loaded("import " + ", ".join(LIGHT))
    assert set(LIGHT) <= found
    assert "torch" not in found


def test_torch_is_there_to_be_found() -> None:
    # Otherwise the tests above would pass without looking.
    assert "torch" in loaded("import harness.trainer")
