import subprocess
import sys
from pathlib import Path

import click
import pytest
from commands import FAULT, HARNESS, MISTAKE, TRAINER, command_environment, mistake, run_command, succeed
from run_files import make_workspace

from harness.cli import cli
from harness.run.trainer_cli import trainer

COMMANDS = sorted(cli.commands)
# What a command takes from the environment comes through make, and may be anything.
USAGE = [
    (("exercise",), "Missing argument 'RECIPE'"),
    (("exercise", "huge_lr", "--seed", "-1"), "'-1' is not a whole number from 0 to 4294967295"),
    (("exercise", "huge_lr", "--seed", "4294967296"), "'4294967296' is not a whole number from 0"),
    (("exercise", "huge_lr", "--seed", "forty"), "'forty' is not a whole number from 0"),
    (("exercise", "huge_lr", "--seed", "9" * 5000), f"'{'9' * 40}...' is not a whole number from 0"),
    (("verify", "huge_lr", "--epochs", "0"), "'0' is not a whole number of at least 1"),
    (("verify", "huge_lr", "--batch", "1.5"), "'1.5' is not a whole number of at least 1"),
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
    assert not any("<=" in page for page in pages)  # click's way to write a range


def test_without_a_command_it_prints_its_help(tmp_path: Path) -> None:
    done = run_command(cwd=tmp_path)
    assert (done.returncode, done.stderr) == (MISTAKE, "")
    assert done.stdout == succeed("--help", cwd=tmp_path)


@pytest.mark.parametrize(("words", "message"), USAGE, ids=lambda value: str(value)[:40])
def test_a_wrong_call_ends_with_one_line(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    said = mistake(*words, cwd=tmp_path)
    assert message in said
    assert said.endswith("--help.")
    assert "\n" not in said
    assert not list(tmp_path.iterdir())


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
    assert said == "There is no terminal to ask before starting huge_lr over: give --yes (YES=1)."
    assert workspace.run_folder("fixed").is_dir()
    said = succeed("clean-work", "huge_lr", "--yes", cwd=tmp_path)
    kept = tmp_path / "work/.removed/huge_lr-1"
    assert said.startswith(f"Moved to {kept.relative_to(tmp_path)}: experiment.py and report.md.")
    assert (kept / "experiment.py").read_text() == make_workspace(tmp_path / "other").experiment.read_text()
    assert "nothing to start over" in mistake("clean-work", "huge_lr", "--yes", cwd=tmp_path)
    assert "did you mean huge_lr?" in mistake("clean-work", "huge", "--yes", cwd=tmp_path)


def test_submit_asks_for_a_name(tmp_path: Path) -> None:
    make_workspace(tmp_path / "work")
    assert mistake("submit", "huge_lr", cwd=tmp_path) == (
        "Say who hands this in: add --student NAME (make submit: STUDENT=NAME)."
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_unicode_is_no_fault(encoding: str, tmp_path: Path) -> None:
    code = "import harness.cli, harness.summary as s; s.show_exercises = lambda w: print('✓'); harness.cli.main()"
    said = succeed(
        "exercises", cwd=tmp_path, program=(sys.executable, "-c", code),
        env=command_environment(PYTHONIOENCODING=encoding),
    )  # fmt: skip
    assert said == "?\n"


def test_output_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*HARNESS, "exercises"], cwd=tmp_path, env=command_environment(), stdout=full,
            stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (MISTAKE, 1)
    assert done.stderr.startswith("Error: No space left on device")


@pytest.mark.parametrize(
    ("where", "status"), [("> /dev/full 2>&1", MISTAKE), (">&-", 0)], ids=["full", "closed"]
)
def test_output_that_goes_nowhere_is_no_fault(where: str, status: int, tmp_path: Path) -> None:
    command = f"{HARNESS[0]} exercises {where}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, "")


def test_a_reader_that_leaves_early_is_no_fault(tmp_path: Path) -> None:
    for _ in range(3):
        command = f"{HARNESS[0]} exercises | true"
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""


def test_a_fault_of_ours_keeps_its_traceback_and_exits_3(tmp_path: Path) -> None:
    code = (
        "import harness.summary, harness.cli\n"
        "def show_exercises(work): raise RuntimeError('an oversight')\n"
        "harness.summary.show_exercises = show_exercises\n"
        "harness.cli.main()\n"
    )
    done = run_command("exercises", cwd=tmp_path, program=(sys.executable, "-c", code))
    assert done.returncode == FAULT
    assert "Traceback (most recent call last)" in done.stderr
    assert "RuntimeError: an oversight" in done.stderr
    assert done.stderr.endswith(
        "This is a bug in trainwreck, not your mistake. Please report it with the lines above.\n"
    )
