"""Make replays on the workers of a Dask cluster. Requests and results are sent as JSON bytes.

Dask sends replays to free workers. If a worker dies, Dask repeats its replays on other workers. Every worker must have
a working sandbox, the same code and package versions as this machine, and a processor that gives the same bytes. If a
worker differs, the command stops and names the worker.
"""

import asyncio
import dataclasses
import json
import logging
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from functools import cache, partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from grader.replay.data import DataFiles, ReplayData
from grader.replay.replay import Replay
from grader.replay.replayer import Replayer, open_sandbox
from grader.replay.replays import Executor, Made
from grader.replay.request import Request, code_hash, machine_state
from grader.sandbox import sandbox_problem
from harness.data import EMBEDDED
from harness.doctor.report import examine_machine
from harness.errors import UserError
from harness.recipes.cases import Case, CaseTable
from harness.recipes.catalogue import load_recipe
from harness.recipes.suite import install_command
from harness.run.settings import RunSettings

CONNECT_SECONDS = 10
# How long to wait if the cluster has no worker. Dask's nanny process restarts a dead worker within seconds.
WORKER_WAIT_SECONDS = 120.0
_LOOK_SECONDS = 1.0
_AGAIN = "and run the same command again. Finished replays are kept."
_LOADED = code_hash()  # the hash of the code that this process has imported; the files may change later


# --- On a worker ---


@cache
def description() -> Mapping[str, str]:
    """Return the properties that must be equal on a worker and on the grader's machine."""
    return {
        "code": _LOADED,
        # The error messages of Python depend on its minor version.
        "Python": platform.python_version().rpartition(".")[0],
        "torch": version("torch").partition("+")[0],
        "NumPy": version("numpy"),
        # Without portable numerics, only machines with the same processor and software give equal bytes.
        "platform": f"{platform.machine()}, portable" if examine_machine()["portable"] else machine_state(),
    }


def _unfit_reason(wanted: Mapping[str, str]) -> str:
    """Return why this worker cannot make replays for a grader with the description `wanted`, or ""."""
    ours = description()
    differing = [
        f"{name} {ours[name]}, on the grader's machine {wanted.get(name)}"
        for name in ours
        if wanted.get(name) != ours[name]
    ]
    if wanted.get("code") != ours["code"] or code_hash() != _LOADED:
        return (
            "it has another version of trainwreck: install the commit of the grader's machine, and restart the worker"
        )
    if differing:
        return f"it differs ({', '.join(differing)}): install the grader's versions, or remove this worker"
    return sandbox_problem() or ""


@cache
def _replayer() -> Replayer:
    """Return the replayer of this worker process. Its sandbox lasts until the process ends."""
    from distributed import get_worker

    sandbox = _open_sandboxes.enter_context(open_sandbox("warm", get_worker().state.nthreads))
    return Replayer(sandbox, ReplayData(Path("/nonexistent")))


_open_sandboxes = ExitStack()  # never closed: the sandbox lasts as long as this process


def replay(job: bytes, subset: bytes = b"", heldout: bytes = b"") -> bytes:
    """Make one replay on a worker. Return it as JSON; if the worker cannot make replays, return the reason as JSON.

    subset, heldout: the files of the training subset and of the held-out examples; empty for a built-in data set.
    """
    from distributed import get_worker

    asked = json.loads(job)
    wanted = asked.pop("wanted")
    named, case = asked.pop("recipe"), asked.pop("case")
    recipe = CaseTable.model_validate(case).case() if case else load_recipe(named)
    request = Request(recipe, RunSettings(**asked.pop("settings")), **asked)
    made = Replay(status="XX")
    unfit = _unfit_reason(wanted)
    try:
        if not unfit:
            if subset:
                _replayer().data.accept(request.settings.dataset, DataFiles(subset, heldout))
            made = _replayer().replay(request)
            unfit = _unfit_reason(wanted) if made.status == "XX" else ""
    except OSError as error:  # the worker's disk is full
        unfit = f"{error}: fix this error, and restart the worker"
    worker = get_worker()
    answer = {"unfit": f"{worker.name} ({worker.address}): {unfit}"} if unfit else made.model_dump(mode="json")
    return json.dumps(answer).encode()


# --- On the grader's machine ---


@contextmanager
def open_cluster(address: str, data_folder: Path, say: Callable[[str], None]) -> Iterator[Callable[[], Executor]]:
    """Connect to the scheduler at tcp://host:8786, and yield a function that starts an executor on its cluster.

    say: a function that prints a message; it is called when the executor must wait for a worker.
    Dask's configuration decides about TLS. Raises `UserError` if Dask is not installed or no scheduler answers.
    """
    if find_spec("distributed") is None:
        raise UserError(f"--cluster needs Dask distributed, which is not installed: {install_command('cluster')}")
    from distributed import Client, Security
    from distributed.comm.core import connect

    async def check_address() -> None:
        comm = await connect(address, timeout=CONNECT_SECONDS, **security.get_connection_args("client"))
        await comm.close()

    # Silence Dask's messages about a lost connection, because this module reports it.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    security = Security()
    try:
        # Check the connection first: if only one side uses TLS, a Dask client would wait for minutes.
        asyncio.run(asyncio.wait_for(check_address(), CONNECT_SECONDS))
        client = Client(address, timeout=CONNECT_SECONDS, security=security)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise UserError(
            f"No Dask scheduler answers at {address} ({reason}): start `dask scheduler`, or check --cluster."
            " No submission was scored."
        ) from None
    try:
        yield partial(_Cluster, client, ReplayData(data_folder), say)
    finally:
        with suppress(TimeoutError):
            client.close(timeout=CONNECT_SECONDS)


class _Cluster:
    def __init__(self, client: Any, data: ReplayData, say: Callable[[str], None]) -> None:
        self._client = client
        self._data = data
        self._say = say
        self._files: dict[str, Sequence[Any]] = {}
        self._sent: dict[Any, Request] = {}
        self._unsent: list[Made] = []

    @property
    def most(self) -> int:
        """The maximum number of submitted, unfinished replays: two for each thread of the workers."""
        # Ask the scheduler each time, because workers may join later.
        return 2 * sum(worker["nthreads"] for worker in self._client.scheduler_info()["workers"].values()) or 2

    def submit(self, request: Request) -> None:
        """Send a request for a replay to the cluster. Raises `UserError` if the cluster cannot be reached any more."""
        self._wait_for_a_worker()
        try:
            self._sent[self._send(request)] = request
        except UserError as error:  # the data set is not on this machine
            self._unsent.append((request, Replay(status="XX", message=str(error))))

    def wait_for_one(self) -> Made:
        """Wait for a finished replay, and return it. Raises `UserError` if the cluster or a worker cannot be used."""
        from distributed import wait

        if self._unsent:
            return self._unsent.pop()
        while not (done := [future for future in self._sent if future.done()]):
            with suppress(TimeoutError, CancelledError):
                wait(list(self._sent), timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED")
            self._wait_for_a_worker()
        return self._sent.pop(done[0]), self._receive(done[0])

    def close(self) -> None:
        """Cancel the unfinished replays."""
        if self._client.status == "running":
            self._client.cancel(list(self._sent))

    def _wait_for_a_worker(self) -> None:
        deadline = 0.0
        while not self._client.scheduler_info()["workers"] or self._client.status != "running":
            if self._client.status != "running":
                raise UserError(f"The connection to the scheduler was lost: check that it runs, {_AGAIN}")
            if not deadline:
                deadline = time.monotonic() + WORKER_WAIT_SECONDS
                self._say(f"Waiting for a worker, at most {WORKER_WAIT_SECONDS:.0f} s.")
            elif time.monotonic() > deadline:
                raise UserError(f"The cluster has no worker: start workers, {_AGAIN}")
            time.sleep(_LOOK_SECONDS)

    def _send(self, request: Request) -> Any:
        """Start a replay on the cluster, and return a Dask future. Dask sends the files of a data set to every worker.

        Raises `UserError` if the data set is not on this machine.
        """
        dataset = request.settings.dataset
        if dataset not in EMBEDDED and dataset not in self._files:
            # A list makes Dask send each file separately.
            files = list(self._data.files(dataset))
            self._files[dataset] = self._client.scatter(files, hash=False, broadcast=True)
        fields = {field.name: getattr(request, field.name) for field in dataclasses.fields(request)}
        case = request.recipe
        job = fields | {
            "recipe": request.recipe.id, "settings": asdict(request.settings), "wanted": description(),
            # Send the table that describes the case, because a worker does not have the course file.
            "case": case.table.model_dump() if isinstance(case, Case) and case.course else None,
        }  # fmt: skip
        return self._client.submit(replay, json.dumps(job).encode(), *self._files.get(dataset, ()), pure=False)

    def _receive(self, future: Any) -> Replay:
        """Return the replay that a worker made. Raises `UserError` if the worker cannot make replays."""
        from distributed import KilledWorker

        try:
            answer = future.result()
        except KilledWorker as error:
            return Replay(
                status="XX", message=f"several workers died while they replayed the experiment ({str(error)[:300]})"
            )
        except Exception as error:
            self._wait_for_a_worker()
            raise UserError(
                f"A worker does not answer ({str(error)[:300]}): install trainwreck on the worker, {_AGAIN}"
            ) from None
        if unfit := json.loads(answer).get("unfit"):
            raise UserError(f"A worker cannot make replays: {unfit.rstrip('.')}, {_AGAIN}")
        return Replay.model_validate_json(answer)
