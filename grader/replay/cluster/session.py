"""Opens a cluster for one class: with its workers, what makes the replays of the class there."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from grader.replay.engines import Engine
from grader.replay.executor import Executor
from grader.replay.replay_data import ReplayData
from harness.errors import UserError
from harness.recipe import ROOT


@contextmanager
def open_cluster(address: str, cache: Path, engine: Engine, say: Callable[[str], None]) -> Iterator[Executor]:
    """Give what makes replays on the workers of the scheduler at an address; `say` tells of those that do not fit.

    Raises `UserError` where Dask is not installed or no scheduler answers.
    """
    if find_spec("distributed") is None:
        command = f"{sys.executable} -m pip install -e '{ROOT}[cluster]'"
        raise UserError(f"--cluster needs Dask distributed, which is not installed: {command}")
    from grader.replay.cluster.connection import connected
    from grader.replay.cluster.executor import ClusterExecutor
    from grader.replay.cluster.workers import Workers

    with connected(address) as client:
        yield ClusterExecutor(client, Workers(client, say), ReplayData(cache), engine)
