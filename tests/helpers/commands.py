"""Run the real commands in separate processes, as in a shell."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.canonical_setup import Numerics, run_environment

ROOT = Path(__file__).resolve().parents[2]
HARNESS = (str(Path(sys.executable).with_name("harness")),)
TRAINER = (sys.executable, "-m", "harness.trainer")
MISTAKE = 2
FAULT = 3


def command_environment(**changes: str) -> dict[str, str]:
    """Return the environment variables for a command, with 80 columns and without colours."""
    return {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", **changes}


def run_command(
    *words: str | Path, cwd: Path, program: tuple[str, ...] = HARNESS, **options: Any
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end, without a terminal for questions."""
    options.setdefault("env", command_environment())
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([*program, *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=120, **options)


def succeed(*words: str | Path, cwd: Path, **options: Any) -> str:
    """Run a command that must succeed, and return its output."""
    done = run_command(*words, cwd=cwd, **options)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def mistake(*words: str | Path, cwd: Path, **options: Any) -> str:
    """Run a command that must fail with one sentence for its user, and return the sentence."""
    return sentence(run_command(*words, cwd=cwd, **options))


def sentence(done: "subprocess.CompletedProcess[str]") -> str:
    """Return the one sentence of a command that refused."""
    said = done.stdout + done.stderr
    assert done.returncode == MISTAKE, said
    assert "Traceback" not in said
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\nError: ") == 0
    return done.stderr.removeprefix("Error: ").rstrip("\n")


def run_child(
    code: str, numerics: Numerics = "portable", base: Mapping[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Run Python code in a process like a run's, with warnings as errors, and return its output."""
    command = [sys.executable, "-W", "error", "-c", code]
    environment = run_environment(numerics, base)
    done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def start(*words: str | Path, cwd: Path, program: tuple[str, ...] = HARNESS) -> "subprocess.Popen[str]":
    """Start a command in its own process group, and return its process.

    The command reacts to Ctrl-C even if these tests ignore it, as jobs in the background of a shell script do.
    """
    return subprocess.Popen(
        [*program, *map(str, words)],
        cwd=cwd,
        env=command_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def training_child(parent: int) -> int:
    """Return the process that trains for a command, as soon as it exists."""
    children = Path(f"/proc/{parent}/task/{parent}/children")
    wait_until(lambda: children.read_text().strip() != "", "the process that trains")
    return int(children.read_text().split()[0])


def wait_until(there: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    """Wait until `there` returns True, or fail."""
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end, f"waited for {what} in vain"
        time.sleep(0.005)


def is_running(process: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        state = re.search(r"^State:\s+(\w)", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
    except FileNotFoundError:
        return False
    return state is not None and state[1] != "Z"


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return the files in a folder and its subfolders, by name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def edit(path: Path, find: str, replace: str) -> None:
    """Replace a text that occurs in a file exactly once."""
    text = path.read_text()
    assert text.count(find) == 1
    path.write_text(text.replace(find, replace))
