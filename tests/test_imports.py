"""Imports have one direction: from grader to harness to trainwreck, and from higher to lower modules of each."""

import ast
import subprocess
import sys
from collections.abc import Iterator, Set
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from harness.written.exercise import FileExercise, file_exercise_ids, load_exercise

ROOT = Path(__file__).parents[1]
# Packages and single modules in order. Each imports only from entries before it, and from itself.
FLOORS = {
    "trainwreck": (
        "usage patience terminal places finding settings program source trees constant answers agreement events guard"
        " trial state"
        " check hooks checks catalogue selection baseline show formats page explain session training runs notebook"
        " pytest_plugin lightning transformers child command __main__"
    ),
    "harness": (
        "errors files canonical_setup formats data recipes doctor run scripts checks behaviour workspace console page"
        " submission written student interview practice experiments trainer cli __main__"
    ),
    "grader": (
        "private progress sandbox syntax intake replay score report written session judge course grade interview doctor"
        " selfcheck docs cli __main__"
    ),
}


def modules(*packages: str) -> list[Path]:
    paths = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    return [path for path in paths if path.relative_to(ROOT).parts[1] != "build"]  # left by `pip install ./trainwreck`


def imported(path: Path) -> Iterator[str]:
    """Yield the name of every package that a file imports at any place, also with `import_module`."""
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
    assert len(paths) > 20
    return [path.relative_to(ROOT).as_posix() for path in paths if forbidden & set(imported(path))]


def test_imports_go_from_the_grader_to_the_harness_and_from_there_to_the_library() -> None:
    assert breaches("trainwreck", {"harness", "grader", "tests", "benchmarks", "exercises", "solutions"}) == []
    assert breaches("harness", {"grader", "tests", "benchmarks", "exercises", "solutions"}) == []
    assert breaches("grader", {"trainwreck", "tests", "benchmarks", "exercises", "solutions"}) == []


def imported_modules(path: Path, known: Set[str]) -> Iterator[str]:
    """Yield the modules of this repository that a file imports at any place."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from known & {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else str(node.module)


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("top", FLOORS)
def test_each_package_imports_from_the_floors_below_it(top: str) -> None:
    floors = {name: number for number, name in enumerate(FLOORS[top].split())}
    paths = {name_of(path): path for path in modules(top)}
    found = {name.split(".")[1] for name in paths if name != top}
    assert found == floors.keys()
    upwards = [
        f"{name} imports {other}"
        for name, path in paths.items()
        if name != top
        for other in imported_modules(path, paths.keys())
        if other.startswith(f"{top}.") and floors[other.split(".")[1]] > floors[name.split(".")[1]]
    ]
    assert upwards == []


def test_no_files_import_each_other_in_a_circle() -> None:
    paths = {name_of(path): path for path in modules(*FLOORS)}
    # The `__init__.py` of a package may import its modules, and other modules import them through it.
    graph = {name: set(imported_modules(path, paths.keys())) - {name} for name, path in paths.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_few_files_lie_loose_in_the_harness() -> None:
    loose = [path.name for path in (ROOT / "harness").iterdir() if path.is_file()]
    assert len(loose) <= 8, loose


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
    # A run does not need these modules. They work before the run, or process its results.
    paths = modules("harness/page", "harness/submission")
    drawn = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    light = [name for name in drawn if not name.endswith("__init__")]
    assert "torch" not in loaded(
        "harness.student.exercise", "harness.student.summary", "harness.student.run_process", *light
    )
    assert "torch" in loaded("harness.trainer")  # proves that the line above tests something
