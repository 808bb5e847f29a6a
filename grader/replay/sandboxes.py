"""The two ways to run an experiment in the sandbox: in a process that forks for each run, or in a fresh one."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grader.replay.engines import Engine
from grader.replay.inside import FOLDER
from grader.replay.replayer import Sandbox, replay_environment, visible_folders
from grader.sandbox import Limits, WarmSandbox, run_in_sandbox


@contextmanager
def open_sandbox(engine: Engine, jobs: int) -> Iterator[Sandbox]:
    """Give the sandbox of an engine to so many callers at a time; what it keeps running ends with the block."""
    if engine == "fresh":
        yield run_in_sandbox
        return
    warm = WarmSandbox(FOLDER / "preload.py", replay_environment(), visible_folders(), jobs=jobs)
    try:
        yield warm
    finally:
        warm.close()


def warm_works() -> bool:
    """Say whether runs can be forked here; where not, `warm` does as `fresh` does."""
    empty = Path(os.devnull)
    warm = WarmSandbox(empty, {}, visible_folders(), jobs=1)
    try:
        warm(
            [sys.executable, "-P", str(empty)],
            inputs={},
            environment={},
            limits=Limits(),
            visible=visible_folders(),
        )
        return not warm.failure
    finally:
        warm.close()
