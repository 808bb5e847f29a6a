import json
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from helpers.commands import (
    FAULT,
    HARNESS,
    MISTAKE,
    ROOT,
    TRAINER,
    command_environment,
    edit,
    mistake,
    run_command,
    succeed,
)  # fmt: skip
from helpers.made_up_runs import make_workspace

from harness.cli import cli
from harness.student.trainer_command import trainer

COMMANDS = sorted(cli.commands)
# make passes options in environment variables, whose values may be anything.
USAGE = [
    (("exercise",), "Missing argument 'RECIPE'"),
    (("exercise", "huge_lr", "--seed", "9" * 5000), f"'{'9' * 40}...' is not a whole number from 0"),
    (("exercise", "huge_lr", "--device", "gpu"), "'gpu' is not one of 'cpu', 'cuda'"),
    (("exercise", "huge_lr", "--sed", "1"), "No such option '--sed'"),
    (("exercize",), "No such command 'exercize'"),
]


@pytest.mark.parametrize("command", [*cli.commands.values(), trainer], ids=lambda command: command.name)
def test_every_command_and_option_says_what_it_is_for(command: click.Command) -> None:
    assert command.get_short_help_str(limit=66).endswith((".", "?"))
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


def test_help_fits_80_columns_and_names_every_command(tmp_path: Path) -> None:
    said = succeed("--help", cwd=tmp_path)
    assert all(f"\n  {command}  " in said for command in COMMANDS)
    assert "..." not in said.partition("Commands:")[2]
    pages = [said, *(succeed(command, "--help", cwd=tmp_path) for command in ("exercise", "submit"))]
    pages.append(succeed("--help", cwd=tmp_path, program=TRAINER))
    assert max(len(line) for page in pages for line in page.splitlines()) <= 80
    assert not any("<=" in page for page in pages)  # click writes a range in this way
    bare = run_command(cwd=tmp_path)
    assert (bare.returncode, bare.stdout, bare.stderr) == (MISTAKE, said, "")


@pytest.mark.parametrize(("words", "message"), USAGE, ids=lambda value: str(value)[:40])
def test_a_wrong_call_ends_with_one_line(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    said = mistake(*words, cwd=tmp_path)
    assert message in said
    assert said.endswith("--help.")
    assert "\n" not in said
    assert not list(tmp_path.iterdir())


def test_under_make_a_wrong_call_names_the_variable(tmp_path: Path) -> None:
    said = mistake("hint", "huge_lr", "--level", "4", cwd=tmp_path, env=command_environment(MAKELEVEL="1"))
    assert said == "Invalid value for LEVEL: '4' is not a whole number from 1 to 3. See make help."


def test_help_is_there_without_torch_or_rich(tmp_path: Path) -> None:
    code = (
        "import sys; from harness.cli import cli; cli(['--help'], standalone_mode=False);"
        "heavy = {'torch', 'numpy', 'rich', 'pydantic'} & set(sys.modules); assert not heavy, heavy"
    )
    succeed(cwd=tmp_path, program=(sys.executable, "-c", code))


@pytest.mark.parametrize("module", ["harness", "harness.trainer"])
def test_files_in_the_current_folder_are_not_taken_for_pythons_own(module: str, tmp_path: Path) -> None:
    for name in ("json", "random", "click", "torch", "contextlib", "traceback"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a decoy was imported')\n")
    succeed("--help", cwd=tmp_path, program=(sys.executable, "-m", module))


def test_clean_work_without_a_terminal_needs_a_yes(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "work")
    said = mistake("clean-work", "huge_lr", cwd=tmp_path)
    assert (
        said == "There is no terminal to ask whether to delete the runs of huge_lr: add --yes (YES=1) to delete them."
    )
    assert workspace.run_folder("fixed").is_dir()
    said = succeed("clean-work", "huge_lr", "--yes", cwd=tmp_path)
    kept = tmp_path / "work/.removed/huge_lr-1"
    assert said.startswith(f"Moved to {kept.relative_to(tmp_path)}: experiment.py and report.md.")
    assert (kept / "experiment.py").read_text() == make_workspace(tmp_path / "other").experiment.read_text()
    assert "so there is nothing to delete" in mistake("clean-work", "huge_lr", "--yes", cwd=tmp_path)
    assert "did you mean huge_lr?" in mistake("clean-work", "huge", "--yes", cwd=tmp_path)


def test_a_terminal_without_unicode_is_no_fault(tmp_path: Path) -> None:
    code = (
        "import harness.cli, harness.student.overview as s; s.show_exercises = lambda w: print('✓'); harness.cli.main()"
    )
    environment = command_environment(PYTHONIOENCODING="ascii")
    assert succeed("exercises", cwd=tmp_path, program=(sys.executable, "-c", code), env=environment) == "?\n"


@pytest.mark.parametrize(
    ("where", "status", "said"),
    [
        ("> /dev/full", MISTAKE, "Error: No space left on device"),
        ("> /dev/full 2>&1", MISTAKE, ""),
        (">&-", 0, ""),
        ("| true", 0, ""),
    ],
)
def test_output_that_goes_nowhere_is_no_fault(where: str, status: int, said: str, tmp_path: Path) -> None:
    command = f"set -o pipefail; {HARNESS[0]} exercises {where}"  # the status is the status of harness
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert done.stderr.startswith(said) if said else done.stderr == ""


def test_a_fault_of_ours_keeps_its_traceback_and_exits_3(tmp_path: Path) -> None:
    code = (
        "import harness.student.overview, harness.cli\n"
        "def show_exercises(work): raise RuntimeError('an oversight')\n"
        "harness.student.overview.show_exercises = show_exercises\n"
        "harness.cli.main()\n"
    )
    done = run_command("exercises", cwd=tmp_path, program=(sys.executable, "-c", code))
    assert done.returncode == FAULT
    assert "Traceback (most recent call last)" in done.stderr
    assert "RuntimeError: an oversight" in done.stderr
    assert done.stderr.endswith(
        "This is a bug in trainwreck, not your mistake. Please report this bug, with the lines above.\n"
    )


def test_a_run_has_the_seed_of_its_recipe_and_the_code_of_the_working_folder(tmp_path: Path) -> None:
    for name in ("harness", "exercises"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    edit(tmp_path / "exercises/huge_lr/recipe.toml", "seed       = 42", "seed       = 7")
    for words, seed in ((("--break", "huge_lr"), 7), (("--break", "huge_lr", "--seed", "5"), 5)):
        said = succeed(*words, "--max-steps", "1", "--json", cwd=tmp_path, program=TRAINER)
        assert json.loads(said)["seed"] == seed
        assert (tmp_path / f"run_huge_lr_{seed}" / "metrics.log").is_file()


def test_a_reader_that_has_seen_enough_is_no_fault(tmp_path: Path) -> None:
    # The output stays in the buffer until the command has ended, when its reader is gone.
    program = (
        "import click, time; from harness.console.command_line import run_command;"
        "run_command(click.Command('x', callback=lambda: (time.sleep(0.5), print('x'))), 'x')"
    )
    command = f'{sys.executable} -c "{program}" | true; echo ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")
