"""Make replays on the workers of a Dask cluster: JSON bytes go there, and JSON bytes come back.

A worker takes part if it has our code, our versions, our platform class and a sandbox that works. A replay whose worker
dies goes to another one, up to three times.
"""

import asyncio
import json
import logging
import platform
import sys
import threading
import time
import traceback
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from concurrent.futures import Future as Reply
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

from grader.replay.data import ReplayData
from grader.replay.provenance import code_hash, machine_state
from grader.replay.replay import Replay
from grader.replay.replayer import Replayer, Sandbox, open_sandbox
from grader.replay.replays import Executor, Made
from grader.replay.request import Request, recipe_of
from grader.sandbox import Stopped, sandbox_problem
from harness.data import EMBEDDED
from harness.doctor.report import examine
from harness.errors import UserError
from harness.recipe import ROOT
from harness.run.settings import RunSettings

CONNECT_SECONDS = 10
# How long to wait if there is no worker. A nanny restarts one within seconds.
PATIENCE_SECONDS = 120.0
_LOOK_SECONDS = 0.5
_DEATHS = 3  # Give up after this many worker deaths.
_FETCH_SECONDS = 300.0
_LOADED = code_hash()  # of the modules that this process runs; the files may change later

Description = Mapping[str, str]


# --- On a worker ---


@cache
def _description() -> Description:
    return {
        "code": _LOADED,
        "Python": ".".join(
            platform.python_version_tuple()[:2]
        ),  # another version words its errors differently
        "torch": version("torch").partition("+")[0],
        "NumPy": version("numpy"),
        # Machines that are not portable agree only with machines of their own kind.
        "platform": f"{platform.machine()}, portable" if examine()["portable"] else machine_state(),
    }


async def describe() -> tuple[Description, str]:
    """Return what this worker is, and why it cannot make replays, or ""."""
    return await asyncio.to_thread(_description), await asyncio.to_thread(_problem)


def _problem() -> str:
    if code_hash() != _LOADED:
        return "the files of its trainwreck have changed since it started: restart the worker"
    return sandbox_problem() or ""


@cache
def _tools() -> tuple[Sandbox, ReplayData]:
    """Return the sandbox and the data of this worker process. The forking process ends with this one."""
    from distributed import get_worker

    opened = open_sandbox("warm", get_worker().state.nthreads)
    _open.append(opened)
    return opened.__enter__(), ReplayData(Path("/nonexistent"))


_open: list[object] = []


def replay(job: bytes, subset: bytes = b"", heldout: bytes = b"") -> bytes:
    """Make one replay; the files of a data set come along unless the harness brings it.

    Returns the JSON of the worker's address and the replay, or of the reason why this worker cannot make it.
    """
    from distributed import Reschedule, get_worker

    worker, asked = get_worker(), json.loads(job)
    request = Request(
        recipe_of(asked["recipe"]), RunSettings(**asked["settings"]), asked["source"], asked["tree"],
        asked["trusted"], asked["repetition"],
    )  # fmt: skip
    answer: dict[str, Any] = {"worker": worker.address}
    try:
        sandbox, data = _tools()
        if subset:
            data.accept(request.settings.dataset, subset, heldout)
        replayer = Replayer(sandbox, data)
        with _stopping(replayer, worker, asked["key"]):
            made = replayer.attempt(request)
        unfit = _problem() if made.status == "XX" else ""
        answer |= {"unfit": unfit} if unfit else {"replay": made.model_dump(mode="json")}
    except Stopped:  # nobody waits for it any more, or this worker is about to end
        raise Reschedule from None
    except OSError as error:  # its disk is full
        answer["unfit"] = f"{error}: fix that, and restart the worker"
    return json.dumps(answer).encode()


@contextmanager
def _stopping(replayer: Replayer, worker: Any, key: str) -> Iterator[None]:
    """Stop the replay when nobody waits for the task any more: the grader was interrupted."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_LOOK_SECONDS):
            task = worker.state.tasks.get(key)
            if task is None or task.state == "cancelled":
                replayer.stop()

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()


# --- On the grader's machine ---


@contextmanager
def open_cluster(address: str, cache: Path, say: Callable[[str], None]) -> Iterator[Executor]:
    """Give what makes replays on the workers of the scheduler at tcp://host:8786; `say` reports refused workers.

    Dask's own configuration decides about TLS. Raises `UserError` if Dask is not installed or no scheduler answers.
    """
    if find_spec("distributed") is None:
        command = f"{sys.executable} -m pip install -e '{ROOT}[cluster]'"
        raise UserError(f"--cluster needs Dask distributed, which is not installed: {command}")
    from distributed import Client, Security
    from distributed.comm.core import connect

    async def knock() -> None:
        comm = await connect(address, timeout=CONNECT_SECONDS, **security.get_connection_args("client"))
        await comm.close()

    logging.getLogger("distributed.client").setLevel(
        logging.CRITICAL
    )  # we report a lost connection ourselves
    security = Security()
    try:
        # If only one side speaks TLS, a client would wait for minutes.
        asyncio.run(asyncio.wait_for(knock(), CONNECT_SECONDS))
        client = Client(address, timeout=CONNECT_SECONDS, security=security, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise UserError(
            f"No Dask scheduler answers at {address} ({reason}): start one (dask scheduler), or check --cluster."
            " Nothing was scored."
        ) from None
    try:
        yield _Cluster(client, ReplayData(cache), say).replay
    finally:
        with suppress(TimeoutError):
            client.close(timeout=CONNECT_SECONDS)


@dataclass(frozen=True)
class _Sent:
    """A request that the worker at an address has, and since when (perf_counter)."""

    request: Request
    future: Any
    address: str
    begun: float


class _Cluster:
    """Gives each worker as many requests at a time as it has threads, so that a late worker gets its share."""

    def __init__(self, client: Any, data: ReplayData, say: Callable[[str], None]) -> None:
        self._client = client
        self._data = data
        self._say = say
        self._threads: dict[str, int] = {}  # of the workers that may be given replays, by their address
        self._names: dict[str, str] = {}
        self._asked: dict[str, Reply[Any]] = {}
        self._refused: set[str] = set()
        self._deserted: float | None = None  # since when no worker is fit
        self._waiting: deque[Request] = deque()
        self._sent: dict[str, _Sent] = {}
        self._deaths: dict[str, list[str]] = defaultdict(
            list
        )  # workers that died under a request, by its key
        self._ended: SimpleQueue[Any] = SimpleQueue()
        self._files: dict[str, Sequence[Any]] = {}

    def replay(self, requests: Sequence[Request]) -> Generator[Made, None, None]:
        """Make replays; an `Executor`."""
        self._waiting.extend(requests)
        with ThreadPoolExecutor(8) as self._questions:
            try:
                while self._waiting or self._sent:
                    yield from self._look_at_workers()
                    for address in list(self._free_threads()):
                        if self._waiting:
                            yield from self._send(self._waiting.popleft(), address)
                    with suppress(Empty):
                        yield from self._receive(self._ended.get(timeout=_LOOK_SECONDS))
            except GeneratorExit:
                raise
            except BaseException:
                for sent in list(self._sent.values()):
                    if sent.future.status == "finished":
                        yield from self._receive(sent.future)
                raise
            finally:
                if self._client.status == "running":
                    self._client.cancel([sent.future for sent in self._sent.values()])
                self._waiting.clear()
                self._sent.clear()

    def _free_threads(self) -> Iterator[str]:
        """Yield the address of each thread that has nothing to do."""
        busy = Counter(sent.address for sent in self._sent.values())
        for address, threads in self._threads.items():
            for _ in range(threads - busy[address]):
                yield address

    def _send(self, request: Request, address: str) -> Iterator[Made]:
        dataset = request.settings.dataset
        if dataset not in EMBEDDED and dataset not in self._files:
            try:
                contents = (self._data.subset(dataset), self._data.heldout(dataset))
            except UserError as error:  # the data set is not on this machine
                yield request, Replay(status="XX", message=str(error)), 0.0
                return
            # Dask brings each file once to each worker that needs it.
            self._files[dataset] = self._client.scatter(contents, hash=False)
        key = f"replay-{uuid4().hex}"
        job = {
            "key": key, "recipe": request.recipe.id, "settings": asdict(request.settings), "source": request.source,
            "tree": request.tree, "trusted": request.trusted, "repetition": request.repetition,
        }  # fmt: skip
        future = self._client.submit(
            replay, json.dumps(job).encode(), *self._files.get(dataset, ()), key=key,
            workers=[address], pure=False,
        )  # fmt: skip
        self._sent[key] = _Sent(request, future, address, time.perf_counter())
        future.add_done_callback(self._ended.put)

    def _receive(self, future: Any) -> Iterator[Made]:
        from distributed.scheduler import KilledWorker, NoValidWorkerError

        sent = self._sent.pop(future.key, None)
        if sent is None:  # it was sent again
            return
        try:
            answer = json.loads(future.result(timeout=_FETCH_SECONDS))
            if unfit := answer.get("unfit"):
                self._refuse(answer["worker"], unfit)
                self._waiting.appendleft(sent.request)
                return
            made = Replay.model_validate(answer["replay"])
        except (KilledWorker, NoValidWorkerError, CancelledError, OSError):  # its worker is gone
            self._check_connection()
            yield from self._lost(sent)
            return
        except Exception as error:
            if "Error during deserialization of the task graph" in str(error):
                raise UserError(
                    "The scheduler has no trainwreck: start it from the same installation as its workers."
                    " Nothing was scored."
                ) from None
            traceback.print_exc()
            made = Replay(status="XX", message=f"the grader failed ({type(error).__name__})")
        yield sent.request, made, time.perf_counter() - sent.begun

    def _lost(self, sent: _Sent) -> Iterator[Made]:
        """Send a request again whose worker died, or give up."""
        self._files.clear()  # they may have been on that worker
        deaths = self._deaths[sent.request.text_key]
        deaths.append(self._names.get(sent.address, sent.address))
        if len(deaths) < _DEATHS:
            self._waiting.appendleft(sent.request)
            return
        message = f"{len(deaths)} workers died while they replayed it: {', '.join(deaths)}"
        yield sent.request, Replay(status="XX", message=message), time.perf_counter() - sent.begun

    def _look_at_workers(self) -> Iterator[Made]:
        """Ask new workers what they are. Raises `UserError` if no worker is left, or the scheduler is gone."""
        self._check_connection()
        info = self._client.scheduler_info(n_workers=-1)
        there = info["workers"]
        self._names |= {address: f"{worker['name']} ({address})" for address, worker in there.items()}
        for gone in (self._threads.keys() | self._asked.keys() | self._refused) - there.keys():
            self._threads.pop(gone, None)
            self._asked.pop(gone, None)
            self._refused.discard(gone)
        for key, sent in list(self._sent.items()):
            if sent.address not in there:
                del self._sent[key]
                sent.future.cancel()
                yield from self._lost(sent)
        for address in there.keys() - self._threads.keys() - self._asked.keys() - self._refused:
            self._asked[address] = self._questions.submit(
                self._client.run, describe, workers=[address], on_error="return"
            )
        for address, reply in list(self._asked.items()):
            if reply.done():
                del self._asked[address]
                objection = _objection(reply)
                if objection:
                    self._refuse(address, objection)
                else:
                    self._threads[address] = there[address]["nthreads"]
        self._wait_for_workers(info["address"])

    def _refuse(self, address: str, reason: str) -> None:
        self._threads.pop(address, None)
        if address not in self._refused:
            self._refused.add(address)
            self._say(f"Refused: worker {self._names.get(address, address)}: {reason.rstrip('.')}.")

    def _wait_for_workers(self, scheduler: str) -> None:
        now = time.monotonic()
        if self._threads or self._asked:
            self._deserted = None
        elif self._refused:
            raise UserError(f"No worker of {scheduler} can make replays; the reasons are above.")
        elif self._deserted is None:
            self._deserted = now
            self._say(f"Waiting for a worker of {scheduler}, {PATIENCE_SECONDS:.0f} s at most.")
        elif now > self._deserted + PATIENCE_SECONDS:
            raise UserError(
                f"{scheduler} has no worker: start some, and give the same command again. Finished replays are kept."
            )

    def _check_connection(self) -> None:
        if self._client.status != "running":
            raise UserError(
                "The connection to the scheduler was lost: check that it runs, and give the same command again."
                " Finished replays are kept."
            )


def _objection(reply: "Reply[Any]") -> str:
    """Return why a worker that gave this reply gets no replays, or ""."""
    try:
        [answer] = reply.result().values()
    except Exception as error:
        answer = error
    if isinstance(answer, Exception):  # trainwreck is missing there, or is another one
        return f"trainwreck does not answer there ({type(answer).__name__}: {' '.join(str(answer).split())})"
    theirs, problem = answer
    ours = _description()
    differing = [name for name in ours if theirs.get(name) != ours[name]]
    if not differing:
        return str(problem)
    if differing == ["platform"]:
        return "its platform class is another one: grader doctor on both machines says why"
    if differing[0] == "code":
        return "its trainwreck is another one: install the commit that is here, and restart the worker"
    versions = ", ".join(
        f"{name} {theirs.get(name)}, here {ours[name]}" for name in differing if name != "platform"
    )
    return f"it has other versions ({versions}): install the same ones, and restart the worker"
