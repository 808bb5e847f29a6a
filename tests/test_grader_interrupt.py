"""Ctrl-C while replays are made: they end at once and leave nothing behind."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from sandbox_marks import needs_sandbox

# Two replays that would sleep until their time is up, each waited for by a thread of its own.
SCRIPT = """
import signal
# As at a terminal, also where whoever started the tests ignores it (a shell does so for what runs in the background).
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from grader.replay.replays import local_executor
from grader.replay.replayer import Replayer
from grader.replay.replays import Replays
from grader.replay.request import Request
from grader.sandbox import run_in_sandbox
from harness.recipe import load_recipe
from harness.run.settings import RunSettings

folder = Path({folder!r})
recipe = load_recipe("huge_lr")
sources = [f"import time\\ntime.sleep(200 + {{number}})\\n" for number in range(2)]
requests = [
    Request(recipe, RunSettings(seed=42, dataset="digits"), source, source, trusted=False) for source in sources
]
wanted = [("ada", request) for request in requests]


class Told:
    def begin(self, stage, total):
        print(0, total)

    def done(self, name, seconds):
        print(name)


executor = local_executor(Replayer(run_in_sandbox, folder), jobs=2)
Replays(executor, folder / "memory", fresh=False).make("replays", wanted, Told())
"""
PATIENCE = 120  # seconds, before the sleepers end by themselves


def descendants(pid: int) -> set[int]:
    """Return the processes below one, itself not included."""
    found: set[int] = set()
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, path.read_text().split()):
            found |= {child} | descendants(child)
    return found


@needs_sandbox
def test_ctrl_c_ends_the_replays_that_other_threads_wait_for(tmp_path: Path) -> None:
    script = SCRIPT.format(folder=str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-P", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as grader:
        try:
            # Two replays, each of bubblewrap, the launcher and the experiment.
            deadline = time.monotonic() + PATIENCE
            while len(started := descendants(grader.pid)) < 6 and time.monotonic() < deadline:
                time.sleep(0.1)
            assert len(started) >= 6
            grader.send_signal(signal.SIGINT)
            _, said = grader.communicate(timeout=PATIENCE)
        finally:
            grader.kill()
    assert grader.returncode == -signal.SIGINT
    assert said.strip().endswith("KeyboardInterrupt")
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]
    assert not list(tmp_path.iterdir())
