"""The tasks and debug configurations for VS Code: the commands exist, and the problem matchers find our messages."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from helpers.written import written

from grader.course.kit import STATIC, TASKS, kit_files
from harness.cli import cli
from harness.console.terminal import fold
from harness.errors import UserError
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import ROOT
from harness.run.experiment import load_experiment
from harness.submission.check import render_checks
from harness.submission.check_run import failed_item
from harness.submission.report import read_report
from harness.written.workspace import check_file, start_file_exercise

TARGETS = {*re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)}
TABLE = json.loads((STATIC / "tasks.json").read_text())
LAUNCH = json.loads((STATIC / "launch.json").read_text())
MATCHERS = next(task for task in TABLE["tasks"] if task["label"].endswith("verify"))["problemMatcher"]
WIDTH = int(TABLE["options"]["env"]["COLUMNS"])
VARIABLES = {"fileDirnameBasename", "fileDirname", "file", "workspaceFolder"}


def problems_in(output: str) -> list[tuple[str, int, str]]:
    """Return (file, line, message) for each problem that VS Code would find in the output of a task."""
    found, lines = [], output.splitlines()
    for start in range(len(lines)):
        for matcher in MATCHERS:
            patterns = matcher["pattern"] if isinstance(matcher["pattern"], list) else [matcher["pattern"]]
            parts: dict[str, str] = {}
            for pattern, line in zip(patterns, lines[start:], strict=False):
                if not (match := re.search(pattern["regexp"], line)):
                    break
                parts |= {name: match[pattern[name]] for name in ("file", "line", "message") if name in pattern}
            else:
                if "line" in parts:
                    found.append((parts["file"], int(parts["line"]), parts["message"]))
    return found


def test_the_repository_has_the_files_of_the_kit() -> None:
    kit = kit_files()
    for name in (TASKS, ".vscode/launch.json"):
        assert (ROOT / name).read_bytes() == kit[name]


@pytest.mark.parametrize("task", TABLE["tasks"], ids=lambda task: task["label"])
def test_each_task_is_a_command_that_exists(task: dict[str, Any]) -> None:
    program, target, *arguments = task["command"].split()
    assert program == "make" and target in TARGETS
    inputs = {f"input:{one['id']}" for one in TABLE["inputs"]}
    for argument in arguments:
        name, _, value = argument.partition("=")
        assert f"$({name})" in (ROOT / "Makefile").read_text()
        assert re.fullmatch(r"\$\{(.*)\}", value)[1] in VARIABLES | inputs  # type: ignore[index]
    assert task["problemMatcher"] in ([], MATCHERS)


def test_no_line_of_a_task_is_wrapped() -> None:
    # A problem matcher reads lines. In a dumb terminal, no progress bar is drawn, which would be too wide.
    assert TABLE["options"]["env"] == {"COLUMNS": "1000", "TERM": "dumb"}


@pytest.mark.parametrize("configuration", LAUNCH["configurations"], ids=lambda one: one["name"])
def test_each_debug_configuration_starts_a_command_or_the_open_file(configuration: dict[str, Any]) -> None:
    if configuration.get("module") is None:
        assert configuration["program"] == "${file}"
        return
    assert configuration["module"] == "harness"
    name, *arguments = configuration["args"]
    options = {word for one in cli.commands[name].params for word in (*one.opts, *one.secondary_opts)}
    assert {word for word in arguments if word.startswith("-")} <= options
    assert arguments[-1] == "${fileDirnameBasename}"


BROKEN = load_recipe("huge_lr").broken_source()


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("optimizer.zero_grad()", "optimizer.zero_grad("), "is not valid Python: '(' was never closed."),
        (("import torch\n", "import torch\nrate = 1 / 0\n"), "raised ZeroDivisionError: division by zero"),
        (("optimizer.zero_grad()", "optimizer.zero()"), "train_step raised AttributeError: 'NoneType' object has no"),
    ],
)
def test_a_mistake_in_the_experiment_is_found(edit: tuple[str, str], message: str, tmp_path: Path) -> None:
    path, source = tmp_path / "my work" / "experiment.py", BROKEN.replace(*edit)
    with pytest.raises(UserError) as caught:
        load_experiment(path, source).call("train_step", None, None, None, None)
    shown = caught.value.shown("harness").split("\n")
    output = "\n".join(line if line.startswith(" ") else fold(line, WIDTH, hang=2) for line in shown)
    [(file, line, says)] = problems_in(output)
    assert (file, line) == (
        str(path),
        source[: source.index(edit[1].split("\n")[-2 if "\n" in edit[1] else 0])].count("\n") + 1,
    )
    assert says.startswith(message)


def test_a_mistake_in_the_report_is_found(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    report.write_text("---\ndiagnosis:\n  - cause: huge_lr\n    wher: build_optimizer\n---\n")
    with pytest.raises(UserError) as caught:
        read_report(report)
    found = problems_in(render_checks([failed_item("report: front matter", str(caught.value))], WIDTH).plain)
    assert ("there is no key `wher`" in found[0][2], found[0][:2]) == (True, (str(report), 4))


def test_a_mistake_in_a_derivation_is_found(tmp_path: Path) -> None:
    workspace = start_file_exercise(written("backprop_mlp"), tmp_path / "work")[0]
    source = workspace.answer.read_text()
    workspace.answer.write_text(source + "\n\nnothing = 1 / 0\n")
    found = problems_in(render_checks(check_file(workspace), WIDTH).plain)
    assert {(Path(file).name, line) for file, line, _ in found} == {("backprop.py", source.count("\n") + 3)}
