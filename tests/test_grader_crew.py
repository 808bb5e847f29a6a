"""The work of a crew is the same whoever does it; a process that ends costs nobody but the item that ended it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from grader.crew import Crew

ENDS_THE_PROCESS = 3
PATIENCE = 60  # seconds

SLEEPERS = """
import os, sys, time
from grader.crew import Crew


def work(item):
    print(os.getpid(), flush=True)
    time.sleep(600)


if __name__ == "__main__":
    with Crew(2, worth=0, look=0) as crew:
        crew.each(abs, [1], lost=None, noted=lambda item, seconds: None)
        crew.each(work, [1, 2, 3, 4], lost=None, noted=lambda item, seconds: None)
"""


def at_once(size: int = 2) -> Crew:
    """Return a crew whose processes are started for whatever there is to do."""
    return Crew(size, worth=0, look=0)


def process_of(item: int) -> tuple[int, int]:
    return item, os.getpid()


def touched(path: str) -> tuple[str, int]:
    Path(path).touch()
    return path, os.getpid()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ends_at_three(item: int) -> str:
    if item == ENDS_THE_PROCESS:
        os._exit(1)
    return f"done {item}"


def ends_once(marker: str) -> str:
    if not Path(marker).exists():
        Path(marker).touch()
        os._exit(1)
    return "done"


def fails_at_three(item: int) -> int:
    if item == ENDS_THE_PROCESS:
        raise ValueError("three")
    return item


def lost(item: int) -> str:
    return f"lost {item}"


def never_lost(item: object) -> NoReturn:
    raise AssertionError(item)


def test_results_come_in_the_order_of_the_items_whoever_made_them() -> None:
    items = list(range(20))
    noted: list[int] = []
    for crew in (Crew(1), Crew(2), at_once()):
        noted.clear()
        with crew:
            found = crew.each(process_of, items, lost=never_lost, noted=lambda item, _: noted.append(item))
            assert [item for item, _ in found] == items
            assert sorted(noted) == items
            assert crew.each(process_of, [], lost=never_lost, noted=lambda item, _: None) == []
    others = {process for _, process in found} - {os.getpid()}
    assert 1 <= len(others) <= 2


def test_what_comes_one_by_one_is_begun_as_it_comes_where_processes_run(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with at_once() as crew:
        unstarted = crew.batch(touched, lost=never_lost)
        unstarted.add(str(first))
        assert not crew.is_started
        crew.each(process_of, [0, 1], lost=never_lost, noted=lambda item, _: None)
        assert not first.exists()
        begun = crew.batch(touched, lost=never_lost)
        begun.add(str(second))
        wait_for(second.exists)
        begun.add(str(first))
        noted: list[str] = []
        found = begun.results(lambda item, _: noted.append(item))
        assert [path for path, _ in found] == [str(second), str(first)]
        assert {process for _, process in found}.isdisjoint({os.getpid()})
        assert sorted(noted) == [str(first), str(second)]
        assert [path for path, _ in unstarted.results(lambda item, _: None)] == [str(first)]


def test_few_or_quick_items_are_not_worth_a_process() -> None:
    with Crew(2) as crew:
        found = crew.each(process_of, range(100), lost=never_lost, noted=lambda item, _: None)
    assert {process for _, process in found} == {os.getpid()}


def test_an_item_that_ends_its_process_costs_no_other_item() -> None:
    with at_once() as crew:
        crew.each(process_of, [0, 1], lost=never_lost, noted=lambda item, _: None)
        found = crew.each(ends_at_three, range(6), lost=lost, noted=lambda item, _: None)
        assert found == ["done 0", "done 1", "done 2", "lost 3", "done 4", "done 5"]


def test_a_process_that_was_killed_once_is_replaced(tmp_path: Path) -> None:
    markers = [str(tmp_path / "one"), str(tmp_path / "two")]
    for marker in markers:
        Path(marker).touch()
    Path(markers[1]).unlink()
    with at_once() as crew:
        crew.each(process_of, [0, 1], lost=never_lost, noted=lambda item, _: None)
        assert crew.each(ends_once, markers, lost=str, noted=lambda item, _: None) == ["done", "done"]


@pytest.mark.parametrize("crew", [Crew(1), at_once()], ids=["here", "side by side"])
def test_an_error_ends_it(crew: Crew) -> None:
    with crew, pytest.raises(ValueError, match="three"):
        crew.each(fails_at_three, range(6), lost=int, noted=lambda item, _: None)


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT])
def test_no_process_outlives_the_grader(signal_number: int, tmp_path: Path) -> None:
    script = tmp_path / "sleepers.py"
    script.write_text(SLEEPERS)
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that starts a command in the background has it ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as grader:
        assert grader.stdout is not None
        assert grader.stderr is not None
        workers = {int(grader.stdout.readline()) for _ in range(2)}
        if signal_number == signal.SIGKILL:
            grader.kill()
            until = time.monotonic() + PATIENCE
            while any(Path(f"/proc/{worker}").exists() for worker in workers):
                assert time.monotonic() < until
                time.sleep(0.1)
        else:
            # As a terminal does: to all of them. Only the grader may act on it.
            os.killpg(grader.pid, signal_number)
            time.sleep(0.5)
            assert all(Path(f"/proc/{worker}").exists() for worker in workers)
            grader.kill()
            assert "sleep" not in grader.stderr.read()
