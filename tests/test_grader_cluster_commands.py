"""`grader score --cluster` as an instructor gives it, and Ctrl-C, on real workers."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from cluster_lab import PATIENCE, Lab, cluster, until
from distributed import Client
from honest_class import HonestClass
from intake_archives import taken
from test_imports import loaded

from grader.cli import cli
from grader.replay import cluster as module
from grader.replay.cluster import open_cluster
from grader.replay.request import requests_of
from harness.errors import UserError

# What an instructor at a terminal stops, or a machine that is short of memory ends.
SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from cluster_stand_in import description
from grader.replay import cluster
from grader.report.progress import Progress
from grader.replay.replays import Replays
from grader.replay.request import Request
from harness.recipe import load_recipe
from harness.run.settings import RunSettings

cluster._description = description
folder = Path({folder!r})
sources = ["done", f"wait {{folder}}"]
recipe, settings = load_recipe("huge_lr"), RunSettings(seed=42, dataset="digits")
requests = [Request(recipe, settings, source, source, trusted=False) for source in sources]
with cluster.open_cluster({address!r}, folder, print) as executor:
    Replays(executor, folder / "memory", fresh=False).make("replays", [("ada", one) for one in requests], Progress())
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_grader_that_is_stopped_leaves_nothing_running(how: signal.Signals, tmp_path: Path) -> None:
    with cluster(tmp_path) as lab:
        lab.start("one")
        script = SCRIPT.format(folder=str(tmp_path), address=lab.address)
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
        with subprocess.Popen(
            [sys.executable, "-P", "-c", script], env=environment, stderr=subprocess.PIPE, text=True
        ) as grader:
            try:
                until(lambda: list(tmp_path.glob("begun-*")) and list(tmp_path.glob("memory/*/*.json")))
                grader.send_signal(how)
                _, said = grader.communicate(timeout=PATIENCE)
            finally:
                grader.kill()
        assert grader.returncode == -how
        if how == signal.SIGINT:
            assert said.strip().endswith("KeyboardInterrupt")
        until((tmp_path / "stopped").exists)


@pytest.mark.slow
def test_a_class_gets_the_same_bytes_from_a_cluster_that_loses_a_worker(
    honest: HonestClass, tmp_path: Path
) -> None:
    for name, data in honest.tarballs.items():
        (tmp_path / name).write_bytes(data)
    missing = [requests_of(taken(tmp_path / name))["fixed"] for name in honest.tarballs]
    honest.remember(tmp_path / "known")
    honest.remember(tmp_path / "some", without=missing)
    with cluster(tmp_path) as lab:
        pids = dict(zip(("one", "two"), lab.start("one", "two", stand_in=False), strict=True))
        with score(tmp_path, "some", "there", "--cluster", lab.address, "--jobs", "2") as grader:
            killed = worker_at_work(lab)
            os.kill(pids[killed], signal.SIGKILL)
            _, said = grader.communicate(timeout=PATIENCE)
        assert (grader.returncode, said) == (0, "")
    with score(tmp_path, "known", "here", "--jobs", "1") as grader:
        grader.communicate(timeout=PATIENCE)
    here, there = (
        {path.name: path.read_bytes() for path in (tmp_path / out).iterdir()} for out in ("here", "there")
    )
    assert "scores.json" in here
    assert here == there


def score(folder: Path, memory: str, out: str, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "grader", "score", ".", "--out", out, *words],
        cwd=folder,
        env={**os.environ, "TRAINWRECK_REPLAYS": str(folder / memory)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def worker_at_work(lab: Lab) -> str:
    """Wait until a worker makes a replay, and return its name."""
    found: list[str] = []
    with Client(lab.address, set_as_default=False) as client:

        def busy() -> bool:
            names = {
                address: worker["name"] for address, worker in client.scheduler_info()["workers"].items()
            }
            found[:] = [names[address] for address, keys in client.processing().items() if keys]
            return bool(found)

        until(busy)
    return found[0]


def test_a_cluster_runs_nothing_without_a_sandbox(tmp_path: Path) -> None:
    words = ["score", str(tmp_path), "--cluster", "tcp://localhost:8786", "--trust-submissions"]
    done = CliRunner().invoke(cli, words)
    assert isinstance(done.exception, UserError)
    assert "A cluster runs students' code in a sandbox only" in str(done.exception)


def test_without_dask_it_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with (
        pytest.raises(UserError, match=r"not installed: .* -m pip install -e '.*\[cluster\]'"),
        open_cluster("tcp://localhost:8786", tmp_path, print),
    ):
        pass


def test_without_a_cluster_nobody_needs_dask() -> None:
    assert loaded("import grader.grade") & {"dask", "distributed"} == set()
