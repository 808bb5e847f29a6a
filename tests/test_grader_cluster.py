"""A real scheduler and workers in processes of their own; what they replay is made up (`cluster_stand_in`)."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_lab import PATIENCE, Lab, cluster, until
from cluster_stand_in import BROKEN, description

from grader.replay import cluster as module
from grader.replay.cluster import open_cluster
from grader.replay.data import ReplayData
from grader.replay.replay import Replay
from grader.replay.replays import Replays
from grader.replay.request import Request
from grader.report.progress import Progress
from harness.errors import UserError
from harness.recipe import load_recipe
from harness.run.settings import RunSettings

RECIPE = load_recipe("huge_lr")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with cluster(tmp_path_factory.mktemp("cluster")) as lab:
        yield lab


@pytest.fixture
def lab(shared: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setattr(ReplayData, "subset", lambda *_: b"subset")
    monkeypatch.setattr(ReplayData, "heldout", lambda *_: b"heldout")
    monkeypatch.setattr(module, "_description", description)
    yield shared
    shared.end_workers()


def request(source: str, dataset: str = "digits") -> Request:
    return Request(RECIPE, RunSettings(seed=42, dataset=dataset), source, source, trusted=False)


class Class:
    """Replays on a cluster, as a class has them, in a thread of its own; what was said of workers."""

    def __init__(self, lab: Lab, folder: Path, *requests: Request) -> None:
        self._lab = lab
        self._memory = folder / "memory"
        self.requests = requests
        self.said: list[str] = []
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with open_cluster(self._lab.address, Path("/nonexistent"), self.said.append) as executor:
                self._replays = Replays(executor, self._memory, fresh=False)
                self._replays.make("replays", [("ada", one) for one in self.requests], Progress())
        except BaseException as error:
            self.error = error

    def end(self) -> dict[str, Replay]:
        """Wait for the end, and return what each source got. Raises what ended it."""
        self._thread.join()
        if self.error is not None:
            raise self.error
        return {one.source: self._replays.of(one) for one in self.requests}

    def remembered(self) -> int:
        """Return how many replays are remembered."""
        return len(list(self._memory.glob("*/*.json")))


def waiting(folder: Path, number: int) -> Request:
    (folder / str(number)).mkdir(exist_ok=True)
    return request(f"wait {folder / str(number)}")


def begun(folder: Path) -> list[int]:
    """Return the processes that began the replays waiting below a folder, in whatever order."""
    return [int(path.name.split("-")[1]) for path in folder.glob("*/begun-*")]


def go(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name.isdigit():
            (path / "go").touch()


def test_replays_come_back_whole_and_data_sets_travel(lab: Lab, tmp_path: Path) -> None:
    lab.start("one")
    found = Class(lab, tmp_path, request("one"), request("two"), request("three", "mnist")).end()
    assert {source: replay.log_sha256 for source, replay in found.items()} == {
        "one": "one",
        "two": "two",
        "three": "subsetheldout",
    }


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_worker_was_at_when_it_ended_is_replayed_by_another(
    how: signal.Signals, lab: Lab, tmp_path: Path
) -> None:
    lab.start("one", "two")
    course = Class(lab, tmp_path, *(waiting(tmp_path, number) for number in range(4)))
    until(lambda: len(set(begun(tmp_path))) == 2)
    killed, left = begun(tmp_path)
    os.kill(killed, how)
    [process] = [process for process in lab.workers if process.pid == killed]
    process.wait(PATIENCE)
    go(tmp_path)
    found = course.end()
    assert [replay.status for replay in found.values()] == ["OK"] * 4
    assert killed in begun(tmp_path)
    assert begun(tmp_path).count(left) == 4
    assert course.said == []


def test_what_several_workers_die_under_is_not_judged_and_nothing_else_suffers(
    lab: Lab, tmp_path: Path
) -> None:
    lab.start("one", "two", "three", "four")
    found = Class(lab, tmp_path, request("die"), *(request(f"sound {number}") for number in range(8))).end()
    died = found.pop("die")
    assert died.status == "XX"
    assert died.message.startswith("3 workers died while they replayed it: ")
    assert sum(f"{name} (tcp" in died.message for name in ("one", "two", "three", "four")) == 3
    assert {replay.status for replay in found.values()} == {"OK"}
    assert sum(process.poll() is None for process in lab.workers) == 1


def test_who_differs_is_refused_by_name_and_gets_nothing(lab: Lab, tmp_path: Path) -> None:
    lab.launch("other", STAND_IN_CODE="another")
    lab.launch("bare", STAND_IN_SANDBOX="The sandbox needs bubblewrap.")
    [good] = lab.start("good")
    course = Class(lab, tmp_path, *(waiting(tmp_path, number) for number in range(4)))
    until(lambda: len(course.said) == 2 and begun(tmp_path))
    lab.launch("late", STAND_IN_CODE="another")
    later = lab.launch("later")
    until(lambda: len(course.said) == 3 and len(begun(tmp_path)) == 2)
    go(tmp_path)
    course.end()
    assert set(begun(tmp_path)) == {good, later}
    other, bare, late = (
        next(line for line in course.said if f"worker {name} (tcp://" in line)
        for name in ("other", "bare", "late")
    )
    assert other.endswith(
        "its trainwreck is another one: install the commit that is here, and restart the worker."
    )
    assert bare.endswith("The sandbox needs bubblewrap.")
    assert "another one" in late


def test_where_nobody_fits_nothing_is_replayed(lab: Lab, tmp_path: Path) -> None:
    lab.start("bare", bare=True)
    course = Class(lab, tmp_path, request("one"))
    with pytest.raises(UserError, match=r"No worker of tcp.* can make replays"):
        course.end()
    assert "No module named 'grader'" in course.said[0]
    assert course.remembered() == 0


def test_a_scheduler_without_trainwreck_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_description", description)
    with cluster(tmp_path, bare=True) as own:
        own.start("one")
        with pytest.raises(UserError, match="The scheduler has no trainwreck"):
            Class(own, tmp_path, request("one")).end()


def test_a_class_does_not_wait_for_workers_for_ever(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.0)
    course = Class(lab, tmp_path, request("one"))
    with pytest.raises(UserError, match="has no worker: start some"):
        course.end()
    assert [line.split(" of ")[0] for line in course.said] == ["Waiting for a worker"]


def test_a_worker_whose_sandbox_breaks_down_spoils_nothing(lab: Lab, tmp_path: Path) -> None:
    lab.start("one", "two")
    sources = [f"break {tmp_path / 'broken'}", *(f"sound {number}" for number in range(6))]
    course = Class(lab, tmp_path, *map(request, sources))
    assert {replay.status for replay in course.end().values()} == {"OK"}
    [said] = course.said
    assert said.startswith("Refused: worker ")
    assert said.endswith(f": {BROKEN}.")


def remembered(course: Class) -> list[str | None]:
    found = (path.read_text().partition("\n")[2] for path in course._memory.glob("*/*.json"))
    return [Replay.model_validate_json(text).log_sha256 for text in found]


def test_what_is_finished_is_kept_when_the_scheduler_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_description", description)
    monkeypatch.setattr(module, "CONNECT_SECONDS", 5)
    with cluster(tmp_path) as own:
        own.start("one")
        course = Class(own, tmp_path, request("done"), waiting(tmp_path, 1))
        until(lambda: begun(tmp_path) and course.remembered())
        own.scheduler.kill()
        with pytest.raises(UserError, match="connection to the scheduler was lost"):
            course.end()
        assert remembered(course) == ["done"]


def test_a_scheduler_that_is_not_there_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECT_SECONDS", 1)
    for address in ("tcp://127.0.0.1:9", "odd://127.0.0.1:9"):
        with (
            pytest.raises(UserError, match="No Dask scheduler answers"),
            open_cluster(address, Path(), print),
        ):
            pass
