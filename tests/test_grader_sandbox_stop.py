"""Stopping runs from outside, as Ctrl-C does: at once, in every thread, with nothing left of them."""

import os
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from commands import wait_until
from sandbox_marks import needs_sandbox, require_sandbox
from sandboxed import SMALL, running

from grader.sandbox import SandboxResult, Stopped, StopSignal, run_in_sandbox, run_trusted
from grader.sandbox.mounts import launcher_python

Run = Callable[..., SandboxResult]
# More than the test takes, on a machine with much else to do: nothing but the signal is to end these runs.
LONG = replace(SMALL, wall_seconds=120)


def start(run: Run, code: str, stop: StopSignal, visible: tuple[Path, ...] = ()) -> SandboxResult:
    command = [str(launcher_python()), "-I", "-S", "-c", code]
    return run(command, inputs={}, environment={}, limits=LONG, visible=visible, stop=stop)


@pytest.mark.parametrize("run", [run_in_sandbox, run_trusted])
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


@pytest.mark.parametrize("run", [run_in_sandbox, run_trusted])
def test_nothing_starts_once_the_signal_is_set(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = StopSignal()
    stop.set()
    stop.set()
    assert stop.is_set()
    monkeypatch.setattr("subprocess.Popen", None)
    with pytest.raises(Stopped):
        start(run, "", stop)


@needs_sandbox
def test_a_sandbox_that_is_stopped_while_it_is_built_leaves_nothing(tmp_path: Path) -> None:
    name = f"half-built-{os.getpid()}"
    (tmp_path / name).mkdir()
    # Bubblewrap needs a few milliseconds; it is stopped at every fifth of one.
    for moment in range(60):
        stop = StopSignal()
        timer = threading.Timer(moment / 5000, stop.set)
        timer.start()
        with pytest.raises(Stopped):
            start(run_in_sandbox, "import time; time.sleep(3600)", stop, (tmp_path / name,))
        timer.join()
    # One that nobody has told of its parent's death is on its way out: a kill takes effect when it is scheduled.
    wait_until(lambda: running(name) == [], "the end of it")


@pytest.mark.parametrize("run", [run_in_sandbox, run_trusted])
def test_a_signal_that_is_not_set_changes_nothing(run: Run) -> None:
    if run is run_in_sandbox:
        require_sandbox()
    stop = StopSignal()
    assert start(run, "print('whole')", stop).stdout == b"whole\n"
    assert not stop.is_set()


def test_a_signal_that_nobody_needs_any_more_leaves_nothing_open() -> None:
    before = sorted(path.name for path in Path("/proc/self/fd").iterdir())
    stop = StopSignal()
    assert len(list(Path("/proc/self/fd").iterdir())) == len(before) + 2
    del stop
    assert sorted(path.name for path in Path("/proc/self/fd").iterdir()) == before
