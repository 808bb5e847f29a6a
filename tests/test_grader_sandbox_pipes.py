"""Stopping runs from outside, as Ctrl-C does: at once, in every thread, with nothing left of them."""

import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from commands import wait_until
from sandbox_marks import needs_sandbox, require_sandbox
from sandboxed import MIB, SMALL, python_command, running

from grader.sandbox import Command, SandboxResult, Stopped, StopSignal, run_in_sandbox, run_unsandboxed
from grader.sandbox.pipes import Readings, close_all, open_pipes, read_pipes


def soon() -> float:
    return time.monotonic() + 10


def test_pipes_are_read_side_by_side_to_their_ends() -> None:
    reading, writing = open_pipes("one", "two")

    def write() -> None:
        for _ in range(50):  # more than both pipes hold
            os.write(writing["two"], b"b" * 10_000)
            os.write(writing["one"], b"a" * 10_000)
        os.close(writing["one"])
        os.close(writing["two"])

    thread = threading.Thread(target=write)
    thread.start()
    readings = read_pipes(reading, {"one": 10**6, "two": 10**6}, soon())
    thread.join()
    assert readings.content == {"one": b"a" * 500_000, "two": b"b" * 500_000}
    assert (readings.timed_out, readings.overflowed) == (False, None)


def test_reading_stops_when_a_pipe_is_over_its_room_or_time_is_up_and_keeps_what_came() -> None:
    reading, writing = open_pipes("one", "two")
    os.write(writing["one"], b"a" * 60)
    os.write(writing["two"], b"b" * 60)
    readings = read_pipes(reading, {"one": 100, "two": 50}, soon())
    assert (readings.overflowed, readings.content["two"]) == ("two", b"b" * 50)
    close_all(writing)
    reading, writing = open_pipes("one")
    os.write(writing["one"], b"first")
    readings = read_pipes(reading, {"one": 100}, time.monotonic() + 0.1)
    assert (readings.timed_out, readings.content) == (True, {"one": b"first"})
    close_all(writing)


def test_what_lay_in_the_pipes_when_time_was_up_came_in_time() -> None:
    # As where this process was stopped, with Ctrl-Z, past the end of the one that it reads from.
    reading, writing = open_pipes("one", "two")
    fcntl.fcntl(writing["one"], fcntl.F_SETPIPE_SZ, MIB)
    os.write(writing["one"], b"a" * MIB)
    os.write(writing["two"], b"b")
    close_all(writing)
    readings = read_pipes(reading, {"one": 2 * MIB, "two": 2 * MIB}, time.monotonic() - 60)
    assert readings.content == {"one": b"a" * MIB, "two": b"b"}
    assert not readings.timed_out


def test_no_time_is_up_for_a_process_that_has_ended() -> None:
    reading, writing = open_pipes("one")
    os.write(writing["one"], b"the end, and ")

    def write() -> None:
        for _ in range(30):  # more than the pipe holds, and not at once
            os.write(writing["one"], b"x" * 10_000)
            time.sleep(0.001)
        os.close(writing["one"])

    thread = threading.Thread(target=write)
    thread.start()
    readings = read_pipes(
        reading,
        {"one": MIB},
        time.monotonic() - 60,
        ended=lambda sizes: sizes["one"] >= len(b"the end"),
    )
    thread.join()
    assert readings.content == {"one": b"the end, and " + b"x" * 300_000}
    assert not readings.timed_out


Run = Callable[[Command, StopSignal], SandboxResult]
# More than the test takes, on a machine with much else to do: nothing but the signal is to end these runs.
LONG = replace(SMALL, wall_seconds=120)


def start(run: Run, code: str, stop: StopSignal, visible: tuple[Path, ...] = ()) -> SandboxResult:
    return run(python_command(code, LONG, visible), stop)


@pytest.mark.parametrize("run", [run_in_sandbox, run_unsandboxed])
@pytest.mark.parametrize("closing", [False, True], ids=["silent", "with closed output"])
def test_every_run_ends_at_once_whichever_thread_waits_for_it(
    run: Run, closing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if run is run_in_sandbox:
        require_sandbox()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    name = f"stopped-{os.getpid()}-{run.__name__}-{closing}"
    close = "import os; os.closerange(0, 3)" if closing else ""
    stop = StopSignal()
    with ThreadPoolExecutor(3) as pool:
        runs = [
            pool.submit(start, run, f"{name!r}\n{close}\nimport time; time.sleep(3600)", stop)
            for _ in range(3)
        ]
        try:
            wait_until(lambda: len(running(name)) == 3, "the runs", 90)
        finally:
            stop.set()
        for future in runs:
            with pytest.raises(Stopped):
                future.result()
    assert running(name) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("run", [run_in_sandbox, run_unsandboxed])
def test_nothing_starts_once_the_signal_is_set(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = StopSignal()
    stop.set()
    stop.set()
    assert stop.is_set()
    monkeypatch.setattr("subprocess.Popen", None)
    with pytest.raises(Stopped):
        start(run, "", stop)


@needs_sandbox
def test_a_sandbox_that_is_stopped_while_it_is_built_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"half-built-{os.getpid()}"
    (tmp_path / name).mkdir()
    visible = (tmp_path / name,)
    # Bubblewrap needs a few milliseconds; it is stopped at every fifth of one.
    for moment in range(60):
        stop = StopSignal()
        timer = threading.Timer(moment / 5000, stop.set)
        timer.start()
        with pytest.raises(Stopped):
            start(run_in_sandbox, "import time; time.sleep(3600)", stop, visible)
        timer.join()
    # A killed process ends when it is scheduled.
    wait_until(lambda: running(name) == [], "the end of it")

    # Bubblewrap dies when it reports its child to a pipe that nobody reads. The child has no report to be found by.
    def read_nothing(pipes: Mapping[str, int], *_: object) -> Readings:
        close_all(pipes)
        time.sleep(0.2)
        return Readings(dict.fromkeys(pipes, b""), stopped=True)

    monkeypatch.setattr("grader.sandbox.run.read_run", read_nothing)
    with pytest.raises(Stopped):
        start(run_in_sandbox, "import time; time.sleep(3600)", StopSignal(), visible)
    wait_until(lambda: running(name) == [], "the end of the child")
