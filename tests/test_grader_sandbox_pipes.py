"""Stop runs from outside, as Ctrl-C does: at once, in every thread, without remaining processes."""

import os
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.commands import wait_until
from helpers.sandbox_marks import needs_sandbox, require_sandbox
from helpers.sandboxed import MIB, PYTHON, SMALL, running, script

from grader.sandbox import (
    Interpreter,
    SandboxCommand,
    SandboxResult,
    SandboxStopped,
    StopSignal,
    run_in_sandbox,
    run_unsandboxed,
)
from grader.sandbox.engine import Worker
from grader.sandbox.pipes import close_all, open_pipes, read_pipes


def test_pipes_are_read_side_by_side_to_their_ends() -> None:
    reading, writing = open_pipes("one", "two")

    def write() -> None:
        for _ in range(50):  # more than both pipes can store
            os.write(writing["two"], b"b" * 10_000)
            os.write(writing["one"], b"a" * 10_000)
        os.close(writing["one"])
        os.close(writing["two"])

    thread = threading.Thread(target=write)
    thread.start()
    readings = read_pipes(reading, {"one": 10**6, "two": 10**6}, 10)
    thread.join()
    assert readings.content == {"one": b"a" * 500_000, "two": b"b" * 500_000}
    assert (readings.timed_out, readings.overflowed) == (False, None)


def test_reading_stops_when_a_pipe_is_over_its_room_or_time_is_up_and_keeps_what_came() -> None:
    reading, writing = open_pipes("one", "two")
    os.write(writing["one"], b"a" * 60)
    os.write(writing["two"], b"b" * 60)
    readings = read_pipes(reading, {"one": 100, "two": 50}, 10)
    assert (readings.overflowed, readings.content["two"]) == ("two", b"b" * 50)
    close_all(writing)
    reading, writing = open_pipes("one")
    os.write(writing["one"], b"first")
    readings = read_pipes(reading, {"one": 100}, 0.1)
    assert (readings.timed_out, readings.content) == (True, {"one": b"first"})
    close_all(writing)


@pytest.mark.parametrize("stopped", [0, 3600])
def test_time_in_which_this_process_is_stopped_does_not_count(stopped: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = open_pipes("one")
    clock = iter(range(0, 10**9, stopped or 1))  # the clock jumps between checks, as after Ctrl-Z
    monkeypatch.setattr("grader.sandbox.pipes.time.monotonic", lambda: next(clock))

    def write() -> None:
        for _ in range(30):  # more than the pipe can store, and not at once
            os.write(writing["one"], b"x" * 10_000)
        os.close(writing["one"])

    thread = threading.Thread(target=write)
    thread.start()
    readings = read_pipes(reading, {"one": MIB}, 10_000)
    thread.join()
    assert (readings.content, readings.timed_out) == ({"one": b"x" * 300_000}, False)


Run = Callable[[SandboxCommand, StopSignal], SandboxResult]
# Much more than the test takes, even on a busy machine. Only the signal may end these runs.
LONG = replace(SMALL, seconds=120, wall_seconds=120)
SLEEP = "import time; time.sleep(3600)"


def start(run: Run, folder: Path, code: str, stop: StopSignal) -> SandboxResult:
    """Run code from this folder. The command lines of its processes contain the folder's name."""
    interpreter = Interpreter(PYTHON, {}, (folder,), script(folder, ""))
    return run(SandboxCommand(script(folder, code), interpreter, limits=LONG), stop)


@pytest.mark.parametrize("run", [run_in_sandbox, run_unsandboxed])
@pytest.mark.parametrize("closing", [False, True], ids=["silent", "with closed output"])
def test_every_run_ends_at_once_whichever_thread_waits_for_it(
    run: Run, closing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if run is run_in_sandbox:
        require_sandbox()
    scripts, temporary = tmp_path / "scripts", tmp_path / "temporary"
    scripts.mkdir()
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    code = ("import os; os.closerange(0, 3)\n" if closing else "") + f"open('begun', 'w')\n{SLEEP}"
    stop, name = StopSignal(), str(scripts)
    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(start, run, scripts, code, stop) for _ in range(3)]
        try:
            wait_until(lambda: len(running(name)) >= 3, "the runs", 90)
        finally:
            stop.set()
        for future in runs:
            with pytest.raises(SandboxStopped):
                future.result()
    assert running(name) == []
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("run", [run_in_sandbox, run_unsandboxed])
def test_nothing_starts_once_the_signal_is_set(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = StopSignal()
    stop.set()
    stop.set()
    assert stop.is_set()
    monkeypatch.setattr("subprocess.Popen", None)
    with pytest.raises(SandboxStopped):
        start(run, tmp_path, "", stop)


@needs_sandbox
def test_a_sandbox_that_is_stopped_while_it_is_built_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Bubblewrap needs a few milliseconds, and Python twenty. Stop a run at every third of a millisecond.
    for moment in range(60):
        stop = StopSignal()
        timer = threading.Timer(moment / 3000, stop.set)
        timer.start()
        with pytest.raises(SandboxStopped):
            start(run_in_sandbox, tmp_path, SLEEP, stop)
        timer.join()
    # A killed process ends when the kernel schedules it.
    wait_until(lambda: running(str(tmp_path)) == [], "the end of it")

    # Before bubblewrap has reported its child, the number of the child is unknown.
    def unknown(self: Worker, *_: object) -> None:
        self._status = b""
        raise SandboxStopped

    monkeypatch.setattr(Worker, "_hears", unknown)
    with pytest.raises(SandboxStopped):
        start(run_in_sandbox, tmp_path, SLEEP, StopSignal())
    wait_until(lambda: running(str(tmp_path)) == [], "the end of the child")
