"""A real scheduler and real workers in separate processes, with invented replays (`cluster_lab`)."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from distributed import Client
from helpers.cluster_lab import BROKEN, PATIENCE, Lab, description, until
from helpers.honest_class import HonestClass
from helpers.intake_archives import taken
from test_imports import loaded

from grader.cli import cli
from grader.progress import ProgressBar
from grader.replay import cluster as module
from grader.replay.cluster import open_cluster
from grader.replay.data import DataFiles, ReplayData
from grader.replay.replay import Replay
from grader.replay.replays import Replays
from grader.replay.request import Request, requests_of
from harness.errors import UserError
from harness.recipes.catalogue import load_recipe
from harness.run.settings import RunSettings

RECIPE = load_recipe("huge_lr")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("cluster"))
    yield lab
    lab.close()


@pytest.fixture
def lab(shared: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setattr(ReplayData, "files", lambda *_: DataFiles(b"subset", b"heldout"))
    monkeypatch.setattr(module, "description", description)
    yield shared
    shared.end_workers()


def request(source: str, dataset: str = "digits") -> Request:
    return Request(RECIPE, RunSettings(seed=42, dataset=dataset), source, source, trusted=False)


class Class:
    """The replays of a class on a cluster, in a separate thread, and the messages about workers."""

    def __init__(self, lab: Lab, folder: Path, *requests: Request) -> None:
        self._lab = lab
        self._cache = folder / "cache"
        self.requests = requests
        self.said: list[str] = []
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with open_cluster(self._lab.address, Path("/nonexistent"), self.said.append) as executor:
                self._replays = Replays(executor, self._cache)
                self._replays.make("replays", self.requests, ProgressBar())
        except BaseException as error:
            self.error = error

    def end(self) -> dict[str, Replay]:
        """Wait for the end, and return the replay of each source. Raises the error that ended it."""
        self._thread.join()
        if self.error is not None:
            raise self.error
        return {one.source: self._replays.of(one) for one in self.requests}

    def kept(self) -> int:
        return len(list(self._cache.glob("*/*.json")))


def waiting(folder: Path, number: int) -> Request:
    (folder / str(number)).mkdir(exist_ok=True)
    return request(f"wait {folder / str(number)}")


def begun(folder: Path) -> list[int]:
    """Return the processes that began the replays in a folder, in any order."""
    return [int(path.name.split("-")[1]) for path in folder.glob("*/begun-*")]


def go(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name.isdigit():
            (path / "go").touch()


def test_replays_come_back_whole_and_data_sets_travel(lab: Lab, tmp_path: Path) -> None:
    lab.start("one")
    found = Class(lab, tmp_path, request("one"), request("two"), request("three", "mnist")).end()
    expected = {"one": "one", "two": "two", "three": "subsetheldout"}
    assert {source: replay.log_sha256 for source, replay in found.items()} == expected


def test_what_several_workers_die_under_is_not_judged_and_nothing_else_suffers(lab: Lab, tmp_path: Path) -> None:
    lab.start("one", "two", "three", "four", "five")
    found = Class(lab, tmp_path, request("die"), *(request(f"sound {number}") for number in range(8))).end()
    died = found.pop("die")
    assert (died.status, died.message.startswith("several workers died")) == ("XX", True)
    assert {replay.status for replay in found.values()} == {"OK"}
    assert sum(process.poll() is None for process in lab.workers) == 1


def test_who_comes_late_gets_its_share(lab: Lab, tmp_path: Path) -> None:
    [first] = lab.start("first")
    course = Class(lab, tmp_path, *(waiting(tmp_path, number) for number in range(4)))
    until(lambda: begun(tmp_path))
    later = lab.launch("later")
    until(lambda: len(begun(tmp_path)) == 2)
    go(tmp_path)
    course.end()
    assert set(begun(tmp_path)) == {first, later}


@pytest.mark.parametrize(
    ("worker", "said"),
    [
        ({"code": "another"}, "unfit .*: it has another version of trainwreck: install the commit of the grader"),
        ({"problem": "The sandbox needs bubblewrap."}, r"unfit \(tcp.*: The sandbox needs bubblewrap"),
    ],
)
def test_a_worker_that_does_not_fit_ends_the_command_by_name(
    lab: Lab, tmp_path: Path, worker: dict[str, Any], said: str
) -> None:
    lab.launch("unfit", **worker)
    course = Class(lab, tmp_path, request("one"))
    with pytest.raises(UserError, match=said):
        course.end()
    assert course.kept() == 0


def test_without_a_worker_nothing_is_replayed(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORKER_WAIT_SECONDS", 0.0)
    with pytest.raises(UserError, match="has no worker: start workers"):
        Class(lab, tmp_path, request("one")).end()


def test_a_worker_whose_sandbox_breaks_down_spoils_nothing(lab: Lab, tmp_path: Path) -> None:
    lab.start("one")
    sources = ("sound 1", f"break {tmp_path / 'broken'}")
    course = Class(lab, tmp_path, *map(request, sources))
    with pytest.raises(UserError, match=BROKEN):
        course.end()
    assert course.kept() <= 1


def test_what_is_finished_is_kept_when_the_scheduler_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "description", description)
    monkeypatch.setattr(module, "CONNECT_SECONDS", 5)
    own = Lab(tmp_path)
    try:
        own.start("one")
        course = Class(own, tmp_path, request("done"), waiting(tmp_path, 1))
        until(lambda: begun(tmp_path) and course.kept())
        own.scheduler.kill()
        with pytest.raises(UserError, match="connection to the scheduler was lost"):
            course.end()
        assert course.kept() == 1
    finally:
        go(tmp_path)
        own.close()


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "odd://127.0.0.1:9"])
def test_a_scheduler_that_is_not_there_is_a_mistake(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECT_SECONDS", 1)
    with pytest.raises(UserError, match="No Dask scheduler answers"), open_cluster(address, Path(), print):
        pass


def test_without_dask_it_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert loaded("grader.grade") & {"dask", "distributed"} == set()
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with (
        pytest.raises(UserError, match=r"not installed: .* -m pip install -e '.*\[cluster\]'"),
        open_cluster("tcp://localhost:8786", tmp_path, print),
    ):
        pass


def test_a_cluster_runs_nothing_without_a_sandbox(tmp_path: Path) -> None:
    words = ["score", str(tmp_path), "--cluster", "tcp://localhost:8786", "--trust-submissions"]
    done = CliRunner().invoke(cli, words)
    assert "A cluster always uses the sandbox" in str(done.exception)


@pytest.mark.slow
def test_a_class_gets_the_same_bytes_from_a_cluster_that_loses_a_worker(honest: HonestClass, tmp_path: Path) -> None:
    submissions = tmp_path / "submissions"
    submissions.mkdir()
    for name, data in honest.tarballs.items():
        (submissions / name).write_bytes(data)
    missing = [requests_of(taken(submissions / name), RECIPE)["fixed"] for name in honest.tarballs]
    honest.remember(tmp_path / "known")
    honest.remember(tmp_path / "some", without=missing)
    real = Lab(tmp_path)
    try:
        pids = dict(zip(("one", "two"), real.start("one", "two", real=True), strict=True))
        with score(tmp_path, "some", "there", "--cluster", real.address) as grader:
            os.kill(pids[worker_at_work(real)], signal.SIGKILL)
            _, said = grader.communicate(timeout=PATIENCE)
        assert (grader.returncode, said) == (0, "")
    finally:
        real.close()
    with score(tmp_path, "known", "here") as grader:
        grader.communicate(timeout=PATIENCE)
    here, there = ({path.name: path.read_bytes() for path in (tmp_path / out).iterdir()} for out in ("here", "there"))
    assert "scores.json" in here
    assert here == there


def score(folder: Path, cache: str, out: str, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "grader", "score", "submissions", "--out", out, *words],
        cwd=folder,
        env={**os.environ, "TRAINWRECK_REPLAYS": str(folder / cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def worker_at_work(lab: Lab) -> str:
    """Wait until a worker makes a replay, and return the worker's name."""
    found: list[str] = []
    with Client(lab.address, set_as_default=False) as client:

        def busy() -> bool:
            there = client.scheduler_info()["workers"]
            found[:] = [there[address]["name"] for address, keys in client.processing().items() if keys]
            return bool(found)

        until(busy)
    return found[0]
