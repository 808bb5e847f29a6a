"""What a worker process of the cluster keeps from one replay to the next, and how it makes one."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from distributed import Reschedule, Worker
from distributed.diagnostics.plugin import WorkerPlugin

from grader.replay.attempt import attempt
from grader.replay.cluster.description import Description, describe, fingerprint
from grader.replay.cluster.messages import Job
from grader.replay.cluster.places import Places
from grader.replay.engines import Engine
from grader.replay.replay import Replay
from grader.replay.replay_data import ReplayData
from grader.replay.replayer import Replayer, Sandbox
from grader.replay.sandboxes import open_sandbox
from grader.sandbox import Stopped, sandbox_problem
from grader.score.code_state import code_hash

# Who saw this many workers die under it is not tried again.
DEATHS = 3
# How often a run is asked for whether anybody still waits for it.
_LOOK_SECONDS = 0.5
_NO_DATA = Path("/nonexistent")
_LOADED = code_hash()  # of the modules that this process runs; the files may change under it


class Unfit(Exception):
    """This worker can make no replay any more; the message says why, and what to do."""


class Desk(WorkerPlugin):
    """One for each worker process, closed with it; a place for each of its threads."""

    def setup(self, worker: Worker) -> None:
        """Begin in a worker."""
        self._worker = worker
        threads = worker.state.nthreads
        self._threads = ThreadPoolExecutor(threads)
        self._places = Places(threads)
        self._data = ReplayData(_NO_DATA)
        self._open = ExitStack()
        self._sandboxes: dict[Engine, Sandbox] = {}
        self._running: set[Replayer] = set()
        self._describing = asyncio.Lock()
        self._description: Description | None = None

    async def teardown(self, worker: Worker) -> None:
        """End with the worker, and everything that runs."""
        for replayer in self._running:
            replayer.stop()
        await asyncio.to_thread(self._threads.shutdown)
        await asyncio.to_thread(self._open.close)

    @property
    def name(self) -> str:
        """The worker's name, and its address."""
        name, address = str(self._worker.name), str(self._worker.address)
        return address if name == address else f"{name} ({address})"

    async def description(self) -> Description:
        """Return what this machine is; it is found out once."""
        async with self._describing:
            if self._description is None:
                self._description = await asyncio.to_thread(describe)
            return self._description

    async def problem(self) -> str | None:
        """Return why no replay can be made here, or None."""
        if await asyncio.to_thread(code_hash) != _LOADED:
            return "the files of its trainwreck have changed since it was started: start the worker anew"
        return await asyncio.to_thread(sandbox_problem)

    async def replay(self, job: Job, subset: bytes, heldout: bytes) -> Replay:
        """Make a replay, unless too many workers died under it. Raises `Unfit` where none can be made here.

        Where the kernel takes a whole process away, nobody can say which of its replays was at fault. So one that a
        worker died under has the next process to itself.
        """
        if fingerprint(await self.description()) != job.fingerprint:
            raise Unfit("it is not what it was: start the worker anew")
        begun = list(await self._worker.scheduler.get_metadata(keys=job.record, default=[]))
        if len(begun) >= DEATHS:
            message = f"{len(begun)} workers died while they replayed it: {', '.join(begun)}"
            return Replay(status="XX", message=message)
        if subset:
            self._data.take(str(job.settings["dataset"]), subset, heldout)
        async with self._places.taken(alone=bool(begun)):
            await self._note(job, [*begun, self.name])
            try:
                replay = await self._made(job)
            finally:
                with suppress(OSError):  # the scheduler is gone, and with it the record
                    await self._note(job, begun)
        if replay.status == "XX" and (problem := await self.problem()) is not None:
            raise Unfit(problem)
        return replay

    async def _note(self, job: Job, begun: list[str]) -> None:
        """Have the scheduler remember which workers began this replay and did not end it."""
        await self._worker.scheduler.set_metadata(keys=job.record, value=begun)

    async def _made(self, job: Job) -> Replay:
        try:
            with self._replayer(job.engine) as replayer:
                return await self._watched(job, replayer)
        except Stopped:  # this worker is about to end, or nobody waits any more
            raise Reschedule from None
        except OSError as error:  # no room on its disk
            raise Unfit(f"{error}: mend that, and start the worker anew") from None

    async def _watched(self, job: Job, replayer: Replayer) -> Replay:
        """Make the replay in another thread, and end it where nobody waits for it any more."""
        loop = asyncio.get_running_loop()
        made = loop.run_in_executor(self._threads, attempt, replayer, job.request())
        while not made.done():
            await asyncio.wait({made}, timeout=_LOOK_SECONDS)
            task = self._worker.state.tasks.get(job.key)
            if task is None or task.state == "cancelled":
                replayer.stop()
        return made.result()

    @contextmanager
    def _replayer(self, engine: Engine) -> Iterator[Replayer]:
        if engine not in self._sandboxes:
            opened = self._open.enter_context(open_sandbox(engine, self._worker.state.nthreads))
            self._sandboxes[engine] = opened
        replayer = Replayer(self._sandboxes[engine], self._data)
        self._running.add(replayer)
        try:
            yield replayer
        finally:
            replayer.stop()
            self._running.discard(replayer)
