import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers.commands import (
    HARNESS,
    MISTAKE,
    TRAINER,
    command_environment,
    is_running,
    mistake,
    snapshot,
    start,
    succeed,
    training_child,
    wait_until,
)

from harness.errors import ChildFault
from harness.run.launch import ChildJob, launch_child
from harness.student.verdict_children import VerdictChildren

# An epoch has about 300 batches, which is time to stop it in the middle.
LONG = ("--break", "none", "--batch", "4", "--epochs", "5", "--out", "run")
SHORT = ("--break", "none", "--epochs", "1", "--out", "run")


def said_by(process: "subprocess.Popen[str]") -> str:
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == MISTAKE, stdout + stderr
    assert "Traceback" not in stderr
    assert stderr.count("\n") == 1
    return stderr


def at_a_terminal(*words: str, cwd: Path, presses: Sequence[tuple[str, str]] = ()) -> tuple[int, str]:
    """Run a command at a terminal of 80 columns, and return its output.

    presses: pairs of a pattern that the output must contain since the last keys, and the keys to press then.
    """
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(cwd)
        environment = command_environment(TERM="xterm")
        os.execve(words[0], words, environment)
    shown, seen, waiting, end = b"", 0, list(presses), time.monotonic() + 60
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            data = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        shown += data
        if waiting and re.search(waiting[0][0], shown[seen:].decode(errors="replace")):
            os.write(terminal, waiting.pop(0)[1].encode())
            seen = len(shown)
    else:  # a command that waits for other keys must not block the suite
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown.decode()


def test_a_process_that_does_not_start_is_a_fault_of_ours() -> None:
    job = ChildJob("harness.no_such_module", "{}", "portable", "a run", what="run", place="experiment.py")
    with pytest.raises(ChildFault, match="the process of the run did not start; the output above says why"):
        launch_child(job)


@pytest.mark.slow
def test_stopped_at_any_moment_and_resumed_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    whole.mkdir()
    stopped.mkdir()
    # There is no checkpoint to resume from, so the run starts from the beginning.
    succeed(*LONG, "--resume", cwd=whole, program=TRAINER)
    partial = stopped / "run.partial"

    # SIGKILL of the training process before the first checkpoint. The next command starts again from the job.
    run = start(*LONG, cwd=stopped, program=TRAINER)
    child = training_child(run.pid)
    wait_until((partial / "metrics.log").is_file, "the log")
    os.kill(child, signal.SIGKILL)
    said = said_by(run)
    assert re.match(
        r"Error: The run was killed .*by SIGKILL, which the system sends if there is not enough memory", said
    )
    assert said.endswith(": run the same command again.\n")
    assert not (partial / "checkpoint.pt").exists()

    # SIGKILL in the middle of an epoch. The unfinished file stays, and is removed later.
    run = start(*LONG, "--resume", cwd=stopped, program=TRAINER)
    child = training_child(run.pid)
    wait_until((partial / "checkpoint.pt").is_file, "the first checkpoint")
    time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    assert str(partial) in said_by(run)
    (partial / ".checkpoint.pt.12345").write_bytes(b"half of one")

    # Ctrl-C that only the parent process receives.
    run = start(*LONG, "--resume", cwd=stopped, program=TRAINER)
    training_child(run.pid)
    before = (partial / "checkpoint.pt").stat().st_mtime_ns
    wait_until(lambda: (partial / "checkpoint.pt").stat().st_mtime_ns != before, "the next checkpoint")
    run.send_signal(signal.SIGINT)
    said = said_by(run)
    assert re.fullmatch(
        r"Stopped at step \d+ of \d+: run the same command again with --resume \(RESUME=1\) to continue from"
        rf" {re.escape(str(partial))}\.\n",
        said,
    )

    # Ctrl-C at a terminal with a progress bar, where both processes receive it.
    code, shown = at_a_terminal(*TRAINER, *LONG, "--resume", cwd=stopped, presses=[(r"[1-9]\d*/1600 ", "\x03")])
    assert code == MISTAKE
    assert "Traceback" not in shown
    assert re.search(r"healthy run of digits_mlp [━╸╺ ]+ [1-9]\d*/1600 +loss \S+ ", shown)
    assert re.search(r"Stopped at step \d+ of 1600: run the same command again with --resume", shown)

    # SIGKILL of the parent. The training process ends, too, and releases the folder.
    run = start(*LONG, "--resume", cwd=stopped, program=TRAINER)
    child = training_child(run.pid)
    before = (partial / "metrics.log").stat().st_mtime_ns
    wait_until(lambda: (partial / "metrics.log").stat().st_mtime_ns != before, "the run to go on")
    run.kill()
    run.communicate()
    wait_until(lambda: not is_running(child), "the end of the process that trains", seconds=5)

    succeed(*LONG, "--resume", cwd=stopped, program=TRAINER)
    runs = [snapshot(folder / "run") for folder in (stopped, whole)]
    for files in runs:
        # Both contain the hash and the commit of the harness, which may change during this test.
        del files["checkpoint.pt.meta.json"], files["run.html"]
    assert runs[0] == runs[1]
    assert [path.name for path in stopped.iterdir()] == ["run"]


def test_clean_work_asks_at_a_terminal_and_takes_no_for_an_answer(tmp_path: Path) -> None:
    (tmp_path / "work/huge_lr").mkdir(parents=True)
    code, shown = at_a_terminal(*HARNESS, "clean-work", "huge_lr", cwd=tmp_path, presses=[("another folder", "n\n")])
    assert (code, "Nothing was changed." in shown) == (0, True)
    assert (tmp_path / "work/huge_lr").is_dir()


STUBBORN = """
import time
_step = train_step

def train_step(model, optimizer, inputs, labels):
    while True:
        try:
            print("x" * 100)
            time.sleep(0.01)
        except BaseException:
            pass
"""


def script(folder: Path, more: str) -> Path:
    """Write the healthy experiment with additional code at its end, and return its path."""
    from harness.recipes.recipe import experiment_source

    path = folder / "experiment.py"
    path.write_text(experiment_source("digits_mlp") + more)
    return path


def test_an_experiment_that_prints_without_end_and_ignores_ctrl_c_is_stopped_by_the_second(tmp_path: Path) -> None:
    path = script(tmp_path, STUBBORN)
    with (tmp_path / "said").open("w") as said:
        run = subprocess.Popen(
            [*TRAINER, *SHORT, "--script", str(path), "--json"], cwd=tmp_path, env=command_environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, text=True,
        )  # fmt: skip
    wait_until(lambda: (tmp_path / "said").stat().st_size > 1000, "the printing")
    run.send_signal(signal.SIGINT)
    time.sleep(0.2)
    run.send_signal(signal.SIGINT)
    assert run.communicate(timeout=20)[0] == ""  # standard output is only for the command's own text
    assert run.returncode == MISTAKE
    # There is no checkpoint yet, so there is nothing to resume.
    last = (tmp_path / "said").read_text().splitlines()[-1]
    assert last == "Stopped before the first step: run the same command again."


def test_ctrl_c_when_the_run_has_just_ended_is_not_lost(tmp_path: Path) -> None:
    ending = tmp_path / "ending"
    path = script(
        tmp_path,
        f"\nimport atexit, time\natexit.register(time.sleep, 60)\natexit.register(open, {str(ending)!r}, 'w')\n",
    )
    run = start(*SHORT, "--script", str(path), cwd=tmp_path, program=TRAINER)
    wait_until(ending.is_file, "the end of the run")
    run.send_signal(signal.SIGINT)
    assert said_by(run).endswith("Stopped just after the run ended: run the same command again.\n")
    succeed(*SHORT, cwd=tmp_path, program=TRAINER)


def test_an_experiment_that_ends_the_process_is_named(tmp_path: Path) -> None:
    path = script(tmp_path, "\nimport os\n\ndef evaluate(model, inputs, labels):\n    os._exit(0)\n")
    said = mistake(*SHORT, "--script", path, cwd=tmp_path, program=TRAINER)
    assert re.fullmatch(
        rf"{re.escape(str(path))} ended the process of the run at step \d+ of 20, with status 0: .*\.", said
    )


PRINTS = """
_prepare = prepare_batch

def prepare_batch(inputs, labels, rng):
    print("printed", len(inputs))
    return _prepare(inputs, labels, rng)
"""


def test_at_a_terminal_what_an_experiment_prints_stands_above_the_bar(tmp_path: Path) -> None:
    code, shown = at_a_terminal(*TRAINER, *SHORT, "--script", str(script(tmp_path, PRINTS)), cwd=tmp_path)
    assert code == 0
    assert "0/?" not in shown
    # The terminal erases the line of the bar before each printed line.
    assert len(re.findall(r"(?:\n|\x1b\[2K)printed 64\r\n", shown)) == shown.count("printed") == 20


STOPS = """
_step = train_step

def train_step(model, optimizer, inputs, labels):
    print("first words")
    breakpoint()
    loss = _step(model, optimizer, inputs, labels)
    return loss
"""


def test_breakpoint_opens_the_debugger_at_the_terminal(tmp_path: Path) -> None:
    path = script(tmp_path, STOPS)
    keys = [("p labels.shape\n", "64"), ("n\n", "return loss"), ("s\n", "Return"), ("c\n", "first words")]
    ready = r"\(Pdb\) $"
    presses = [(ready, press) for press, _ in keys] + [(ready, "q\n")]
    code, shown = at_a_terminal(*TRAINER, *SHORT, "--script", str(path), cwd=tmp_path, presses=presses)
    assert code == MISTAKE
    answers = shown.split("(Pdb) ")
    assert "first words\r\n" in answers[0]
    for answer, (_, expected) in zip(answers[1:], keys, strict=False):
        assert expected in answer
    assert "Stopped at step 1 of 20: run the same command again.\r\n" in answers[-1]
    assert "Traceback" not in shown


def test_without_a_terminal_breakpoint_says_what_to_do(tmp_path: Path) -> None:
    path = script(tmp_path, "\nimport pdb\n\ndef evaluate(model, inputs, labels):\n    pdb.set_trace()\n")
    said = mistake(*SHORT, "--script", path, cwd=tmp_path, program=TRAINER)
    assert "breakpoint() needs a terminal: run the command in a terminal, or print the values instead" in said
    assert "BdbQuit" not in said


def test_a_run_in_the_debugger_ends_with_its_parent(tmp_path: Path) -> None:
    path = script(tmp_path, STOPS)
    parent, terminal = pty.fork()
    if parent == 0:
        os.chdir(tmp_path)
        words = (*TRAINER, *SHORT, "--script", str(path))
        os.execve(words[0], words, command_environment(TERM="xterm"))
    child, shown = training_child(parent), b""
    while b"(Pdb) " not in shown:
        shown += os.read(terminal, 4096)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    wait_until(lambda: not is_running(child), "the end of the process that trains", seconds=5)
    os.close(terminal)


def test_processes_that_no_verdict_has_used_end() -> None:
    with VerdictChildren() as children:
        children.start("portable", bar=False)
        started = [one.process for one in (children.run, children._measurement) if one is not None]
        assert [process.poll() for process in started] == [None, None]
    assert all(process.poll() is not None for process in started)
