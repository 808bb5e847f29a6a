"""docs/own-code.md: each example runs and passes, and fails with its fault and the message on the page."""

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trainwreck import Unsound

PAGE = (Path(__file__).parents[1] / "docs" / "own-code.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


class Example:
    """One section of the page: a script, its test, the fault as a diff, and lines of the message."""

    def __init__(self, section: str) -> None:
        blocks = re.findall(r"^```(\w+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
        (self.script, self.test), (diff,), (self.message,) = (
            [text for kind, text in blocks if kind == wanted] for wanted in ("python", "diff", "text")
        )
        name = re.search(r"^`(\w+)\.py`", section, re.MULTILINE)
        assert name is not None
        self.name = name[1]
        find, replace = ("".join(line[1:] + "\n" for line in diff.splitlines() if line[0] == sign) for sign in "-+")
        assert self.script.count(find) == 1
        self.faulty = self.script.replace(find, replace)

    def write(self, folder: Path, script: str) -> Path:
        (folder / f"{self.name}.py").write_text(script, encoding="utf-8")
        path = folder / f"test_{self.name}.py"
        path.write_text(self.test, encoding="utf-8")
        return path


EXAMPLES = {example.name: example for example in map(Example, PAGE.split("\n## ")[1:])}
Load = Callable[[Example, str], Callable[[], None]]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Return a function that loads an example with its own script, and returns its test."""
    monkeypatch.syspath_prepend(tmp_path)

    def loaded(example: Example, script: str) -> Callable[[], None]:
        example.write(tmp_path, script)
        for name in (example.name, f"test_{example.name}"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        found: Callable[[], None] = importlib.import_module(f"test_{example.name}").test_training_is_sound
        return found

    return loaded


def same_lines(shown: str, found: str) -> bool:
    """Return whether lines are equal. Numbers may differ by 5 %, because processors round differently."""
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(found), strict=False)
    return NUMBER.sub("#", shown) == NUMBER.sub("#", found) and all(
        float(one) == pytest.approx(float(other), rel=0.05) for one, other in pairs
    )


def test_the_page_has_three_examples() -> None:
    assert list(EXAMPLES) == ["plain_loop", "hooks", "library"]


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=list(EXAMPLES))
def test_an_example_is_sound_as_it_is(example: Example, load: Load) -> None:
    load(example, example.script)()


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=list(EXAMPLES))
def test_a_fault_is_found_by_the_message_that_the_page_shows(example: Example, load: Load) -> None:
    test = load(example, example.faulty)
    with pytest.raises(Unsound) as caught:
        test()
    found = iter(str(caught.value).splitlines())
    shown = [line for line in example.message.splitlines() if line != "..."]
    missing = [line for line in shown if not any(same_lines(line, other) for other in found)]
    assert shown and not missing, str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES.values(), ids=list(EXAMPLES))
def test_an_example_runs_in_an_ordinary_pytest(example: Example, tmp_path: Path) -> None:
    # On busy cores, two threads would mostly wait for each other.
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    path = example.write(tmp_path, example.script)
    assert run(f"{example.name}.py").returncode == 0
    passed = run("-m", "pytest", "-q", path.name)
    assert passed.returncode == 0, passed.stdout
    example.write(tmp_path, example.faulty)
    failed = run("-m", "pytest", "-q", path.name)
    assert failed.returncode == 1
    assert "alarm: " in failed.stdout and "trainwreck/training.py" not in failed.stdout
