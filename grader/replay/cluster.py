"""Make replays on the workers of a Dask cluster: JSON bytes go there, and JSON bytes come back.

A worker takes part if it has our code, our versions, our platform class and a sandbox that works. If a worker
dies, its replays go to other workers; a replay that loses three workers is given up.
"""

import asyncio
import json
import logging
import platform
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from grader.replay.data import DataFiles, ReplayData
from grader.replay.provenance import code_hash, machine_state
from grader.replay.replay import Replay
from grader.replay.replayer import Replayer, open_sandbox
from grader.replay.replays import Executor, Made
from grader.replay.request import Request, recipe_of
from grader.sandbox import sandbox_problem
from harness.data import EMBEDDED
from harness.doctor.report import examine_machine
from harness.errors import UserError
from harness.recipe import ROOT
from harness.run.settings import RunSettings

CONNECT_SECONDS = 10
# How long to wait if there is no worker. A nanny restarts one within seconds.
WORKER_WAIT_SECONDS = 120.0
_LOOK_SECONDS = 0.5
_FETCH_SECONDS = 60.0
_DEATHS = 3  # Give up after this many worker deaths.
_AGAIN = "and give the same command again. Finished replays are kept."
_LOADED = code_hash()  # of the modules that this process runs; the files may change later


# --- On a worker ---


@cache
def description() -> Mapping[str, str]:
    """Return what must be equal on the worker and the grader's machine."""
    return {
        "code": _LOADED,
        # Another minor version words its errors differently.
        "Python": platform.python_version().rpartition(".")[0],
        "torch": version("torch").partition("+")[0],
        "NumPy": version("numpy"),
        # Machines that are not portable agree only with machines of their own kind.
        "platform": f"{platform.machine()}, portable" if examine_machine()["portable"] else machine_state(),
    }


async def unfit_reason(wanted: Mapping[str, str]) -> str:
    """Return why this worker cannot make replays for a grader with this description, or ""."""
    ours = await asyncio.to_thread(description)
    differing = [name for name in ours if wanted.get(name) != ours[name]]
    if "code" in differing:
        return "it has another version of trainwreck: install the commit that is here, and restart the worker"
    if differing:
        pairs = ", ".join(f"{name} {ours[name]}, here {wanted.get(name)}" for name in differing)
        return f"it differs ({pairs}): install the same versions, or leave out machines of another kind"
    return await asyncio.to_thread(_worker_problem)


def _worker_problem() -> str:
    if code_hash() != _LOADED:
        return "the files of its trainwreck have changed since it started: restart the worker"
    return sandbox_problem() or ""


@cache
def _replayer() -> Replayer:
    """Return the replayer of this worker process; its sandbox ends with the process."""
    from distributed import get_worker

    sandbox = _open_sandboxes.enter_context(open_sandbox("warm", get_worker().state.nthreads))
    return Replayer(sandbox, ReplayData(Path("/nonexistent")))


_open_sandboxes = ExitStack()  # never closed: the sandbox lasts as long as this process


def replay(job: bytes, subset: bytes = b"", heldout: bytes = b"") -> bytes:
    """Make one replay; the files of a data set come along unless the harness brings it.

    Returns the JSON of the replay, or of the reason why this worker cannot make it.
    """
    asked = json.loads(job)
    request = Request(recipe_of(asked.pop("recipe")), RunSettings(**asked.pop("settings")), **asked)
    try:
        replayer = _replayer()
        if subset:
            replayer.data.accept(request.settings.dataset, DataFiles(subset, heldout))
        made = replayer.replay(request)
        unfit = _worker_problem() if made.status == "XX" else ""
    except OSError as error:  # its disk is full
        unfit = f"{error}: fix that, and restart the worker"
    return json.dumps({"unfit": unfit} if unfit else made.model_dump(mode="json")).encode()


# --- On the grader's machine ---


@contextmanager
def open_cluster(address: str, data_folder: Path, say: Callable[[str], None]) -> Iterator[Executor]:
    """Yield what makes replays on the workers of the scheduler at tcp://host:8786; `say` reports refused workers.

    Dask's own configuration decides about TLS. Raises `UserError` if Dask is not installed or no scheduler answers.
    """
    if find_spec("distributed") is None:
        command = f"{sys.executable} -m pip install -e '{ROOT}[cluster]'"
        raise UserError(f"--cluster needs Dask distributed, which is not installed: {command}")
    from distributed import Client, Security
    from distributed.comm.core import connect

    async def check_address() -> None:
        comm = await connect(address, timeout=CONNECT_SECONDS, **security.get_connection_args("client"))
        await comm.close()

    # We report a lost connection ourselves.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    security = Security()
    try:
        # If only one side speaks TLS, a client would wait for minutes.
        asyncio.run(asyncio.wait_for(check_address(), CONNECT_SECONDS))
        client = Client(address, timeout=CONNECT_SECONDS, security=security)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise UserError(
            f"No Dask scheduler answers at {address} ({reason}): start one (dask scheduler), or check --cluster."
            " Nothing was scored."
        ) from None
    try:
        yield _Cluster(client, ReplayData(data_folder), say).replay
    finally:
        with suppress(TimeoutError):
            client.close(timeout=CONNECT_SECONDS)


class _Sent(NamedTuple):
    """A request that the worker at an address has."""

    request: Request
    address: str


class _Cluster:
    """Gives each worker as many requests at a time as it has threads, so that a late worker gets its share."""

    def __init__(self, client: Any, data: ReplayData, say: Callable[[str], None]) -> None:
        self._client = client
        self._data = data
        self._say = say
        self._threads: dict[str, int] = {}  # of each known worker, by its address; 0 for a refused one
        self._wait_until = 0.0  # (time.monotonic) for a worker; 0 if there is one
        self._deaths: Counter[str] = Counter()  # of workers that had a request, by its key
        self._files: dict[str, Sequence[Any]] = {}

    def replay(self, requests: Sequence[Request]) -> Generator[Made, None, None]:
        """Make replays; an `Executor`."""
        from distributed import wait

        waiting, sent = deque(requests), dict[Any, _Sent]()
        try:
            while waiting or sent:
                self._update_workers()
                busy = Counter(item.address for item in sent.values())
                for address, threads in self._threads.items():
                    for _ in range(min(threads - busy[address], len(waiting))):
                        request = waiting.popleft()
                        try:
                            sent[self._send(request, address)] = _Sent(request, address)
                        except UserError as error:  # the data set is not on this machine
                            yield request, Replay(status="XX", message=str(error))
                if not sent:
                    time.sleep(_LOOK_SECONDS)
                    continue
                with suppress(TimeoutError, CancelledError):
                    wait(list(sent), timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED")
                for future, item in list(sent.items()):
                    if future.done() or item.address not in self._threads:
                        del sent[future]
                        replay = self._receive(future, item)
                        if replay is None:
                            waiting.appendleft(item.request)
                        else:
                            yield item.request, replay
        finally:
            if self._client.status == "running":
                self._client.cancel(list(sent))

    def _update_workers(self) -> None:
        """Ask new workers whether they fit, and forget lost ones.

        Raises `UserError` if no worker is left, or the scheduler is gone.
        """
        self._check_connection()
        info = self._client.scheduler_info()
        there = info["workers"]
        self._threads = {address: self._threads[address] for address in self._threads.keys() & there.keys()}
        if new := list(there.keys() - self._threads.keys()):
            answers = self._client.run(unfit_reason, description(), workers=new, on_error="return")
            for address, answer in answers.items():
                self._threads[address] = there[address]["nthreads"]
                # An exception: trainwreck is missing there, or has another version.
                missing = isinstance(answer, Exception)
                if reason := f"trainwreck does not answer there ({answer})" if missing else answer:
                    self._refuse(address, f"{there[address]['name']} ({address})", reason)
        if any(self._threads.values()):
            self._wait_until = 0.0
        elif there and len(self._threads) == len(there):
            raise UserError(f"No worker of {info['address']} can make replays; the reasons are above.")
        elif not self._wait_until:
            self._wait_until = time.monotonic() + WORKER_WAIT_SECONDS
            self._say(f"Waiting for a worker of {info['address']}, {WORKER_WAIT_SECONDS:.0f} s at most.")
        elif time.monotonic() > self._wait_until:
            raise UserError(f"{info['address']} has no worker: start some, {_AGAIN}")

    def _refuse(self, address: str, name: str, reason: str) -> None:
        self._threads[address] = 0
        self._say(f"Refused: worker {name}: {' '.join(reason.split()).rstrip('.')}.")

    def _send(self, request: Request, address: str) -> Any:
        """Start a replay on a worker; Dask brings each file of a data set once to each worker that needs it.

        Raises `UserError` if the data set is not on this machine.
        """
        dataset = request.settings.dataset
        if dataset not in EMBEDDED and dataset not in self._files:
            # A list: Dask sends the items of a list.
            self._files[dataset] = self._client.scatter(list(self._data.files(dataset)), hash=False)
        job = {
            "recipe": request.recipe.id, "settings": asdict(request.settings), "source": request.source,
            "tree": request.tree, "trusted": request.trusted, "repetition": request.repetition,
            "seconds": request.seconds,
        }  # fmt: skip
        files = self._files.get(dataset, ())
        return self._client.submit(replay, json.dumps(job).encode(), *files, workers=[address], pure=False)

    def _receive(self, future: Any, sent: _Sent) -> Replay | None:
        """Return the replay that a worker made, or None if another worker has to make it."""
        try:
            if not future.done():
                raise LookupError("the worker is gone")
            answer = json.loads(future.result(timeout=_FETCH_SECONDS))
        except Exception as error:  # its worker is gone, or has another fault
            self._check_connection()
            future.cancel()
            self._files.clear()  # they may have been on that worker
            self._deaths[sent.request.text_key] += 1
            if self._deaths[sent.request.text_key] < _DEATHS:
                return None
            reason = str(error)[:500]
            message = f"{_DEATHS} workers died or failed while they replayed it ({reason})"
            return Replay(status="XX", message=message)
        if "unfit" not in answer:
            return Replay.model_validate(answer)
        if self._threads.get(sent.address):
            self._refuse(sent.address, sent.address, answer["unfit"])
        return None

    def _check_connection(self) -> None:
        if self._client.status != "running":
            raise UserError(f"The connection to the scheduler was lost: check that it runs, {_AGAIN}")
