"""Imports go one way: grader -> harness, and neither reads code from the folders that hold data."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.written.exercise import FileExercise, file_exercise_ids, load_exercise

ROOT = Path(__file__).parents[1]


def modules(*packages: str) -> list[Path]:
    return [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]


def imported(path: Path) -> Iterator[str]:
    """Yield the name of every package that a file imports, wherever in it, also by `import_module`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[object] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            names = [node.module]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            names = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        yield from (str(name).partition(".")[0] for name in names)


def breaches(package: str, forbidden: set[str]) -> list[str]:
    paths = modules(package)
    assert len(paths) > 40
    return [path.relative_to(ROOT).as_posix() for path in paths if forbidden & set(imported(path))]


def test_imports_go_from_the_grader_to_the_harness() -> None:
    assert breaches("harness", {"grader", "tests", "benchmarks", "exercises", "solutions"}) == []
    assert breaches("grader", {"tests", "benchmarks", "exercises", "solutions"}) == []


def test_the_folders_that_hold_data_hold_no_code_but_what_students_write() -> None:
    answers = {
        ROOT / folder / exercise.id / exercise.file
        for exercise in map(load_exercise, file_exercise_ids())
        if isinstance(exercise, FileExercise) and exercise.file.endswith(".py")
        for folder in ("exercises", "solutions")
    }
    assert set(modules("exercises", "solutions")) == answers


def loaded(*names: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after these imports."""
    code = f"import {', '.join(names)}, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_command_line_starts_without_anything_heavy() -> None:
    found = loaded("harness.cli")
    assert "click" in found
    assert found & {"torch", "torchvision", "numpy", "pydantic", "rich", "jinja2", "yaml"} == set()


def test_modules_that_do_not_train_do_not_import_torch() -> None:
    # What a command needs before any run, and the whole of what is drawn, checked and packed after it.
    paths = modules("harness/page", "harness/submission")
    drawn = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    light = [name for name in drawn if not name.endswith("__init__")]
    assert "torch" not in loaded(
        "harness.student.exercise", "harness.student.summary", "harness.student.run_process", *light
    )
    assert "torch" in loaded("harness.trainer")  # so the line above looks at something
