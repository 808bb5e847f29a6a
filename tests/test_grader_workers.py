"""The worker processes: the same results as in this process, and what happens when one of them dies."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import pytest

from grader.workers import Workers

PATIENCE = 120.0  # seconds
FATAL = 3
# Two workers that sleep, and print their process numbers.
SLEEPERS = """
import os, signal, time
from grader.workers import Workers

signal.signal(signal.SIGINT, signal.default_int_handler)

def sleep(item):
    print(os.getpid(), flush=True)
    time.sleep(600)

if __name__ == "__main__":
    with Workers(2, few=0) as workers:
        list(workers.each(sleep, [0, 1], lost=print))
"""


def process_of(item: int) -> int:
    return os.getpid()


def dies_at_three(item: int) -> str:
    if item == FATAL:
        os._exit(1)
    return f"done {item}"


def dies_once(marker: str) -> str:
    if not Path(marker).exists():
        Path(marker).touch()
        os._exit(1)
    return "done"


def fails_at_three(item: int) -> int:
    if item == FATAL:
        raise ValueError("three")
    return item


def never_lost(item: object) -> NoReturn:
    raise AssertionError(item)


def test_few_items_are_done_in_this_process_and_many_in_others() -> None:
    with Workers(2, few=3) as workers:
        assert {pid for _, pid in workers.each(process_of, range(3), never_lost)} == {os.getpid()}
        found = dict(workers.each(process_of, range(20), never_lost))
        assert sorted(found) == [*range(20)]
        assert os.getpid() not in found.values()
        assert list(workers.each(process_of, [], never_lost)) == []
    with Workers(1, few=0) as workers:
        assert {pid for _, pid in workers.each(process_of, range(20), never_lost)} == {os.getpid()}


def test_an_item_that_ends_its_process_costs_no_other_item(tmp_path: Path) -> None:
    with Workers(2, few=0) as workers:
        found = dict(workers.each(dies_at_three, range(6), lost=lambda item: f"lost {item}"))
        assert found == {item: f"lost {item}" if item == FATAL else f"done {item}" for item in range(6)}
        once = str(tmp_path / "marker")
        assert dict(workers.each(dies_once, [once], never_lost)) == {once: "done"}, "it was killed once"


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_ends_it(jobs: int) -> None:
    with Workers(jobs, few=0) as workers, pytest.raises(ValueError, match="three"):
        list(workers.each(fails_at_three, range(6), lost=int))


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT])
def test_no_worker_outlives_the_grader(signal_number: int, tmp_path: Path) -> None:
    script = tmp_path / "sleepers.py"
    script.write_text(SLEEPERS)
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell makes background commands ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as grader:
        assert grader.stdout is not None
        assert grader.stderr is not None
        pids = {int(grader.stdout.readline()) for _ in range(2)}
        if signal_number == signal.SIGINT:
            os.killpg(grader.pid, signal_number)  # as a terminal does; only the grader may act on it
            time.sleep(0.5)
            assert all(Path(f"/proc/{pid}").exists() for pid in pids)
        grader.kill()
        deadline = time.monotonic() + PATIENCE
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert "sleep" not in grader.stderr.read()
