"""Makes replays on the workers of a cluster: Dask places them, and places them anew where a worker dies."""

import traceback
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any
from uuid import uuid4

from distributed import Client, Future
from distributed.scheduler import KilledWorker, NoValidWorkerError

from grader.replay.cluster import worker
from grader.replay.cluster.connection import check_connection
from grader.replay.cluster.description import fingerprint
from grader.replay.cluster.messages import Answer, job_of
from grader.replay.cluster.workers import Workers
from grader.replay.engines import Engine
from grader.replay.executor import Keep
from grader.replay.replay import Replay
from grader.replay.replay_data import ReplayData
from grader.replay.requests import Request
from harness.data import EMBEDDED
from harness.errors import UserError

_WAIT_SECONDS = 0.5
# A result that lies ready; where its worker dies just now, it does not come.
_FETCH_SECONDS = 300.0
_LAST_FETCH_SECONDS = 5.0  # of what lies ready when everything is given up
# Dask gives a task up for reasons of its own: workers died in whose queue it was, none is left, a line broke.
_GIVEN_UP = (KilledWorker, NoValidWorkerError, CancelledError, OSError)


@dataclass(frozen=True)
class _Sent:
    """A request that is with the cluster, the workers that it may be given to, and since when (perf_counter)."""

    request: Request
    future: Future[Any]
    addresses: frozenset[str]
    since: float

    def keep(self, keep: Keep, replay: Replay) -> None:
        """Give the replay away."""
        keep(self.request, replay, perf_counter() - self.since)


class ClusterExecutor:
    """Sends as many requests as the workers have places, so that one which comes later gets its share."""

    def __init__(self, client: Client, workers: Workers, data: ReplayData, engine: Engine) -> None:
        self._client = client
        self._workers = workers
        self._data = data
        self._engine = engine
        self._session = f"trainwreck-{uuid4().hex}"
        self._waiting: deque[Request] = deque()
        self._sent: dict[str, _Sent] = {}
        self._ended: SimpleQueue[Future[Any]] = SimpleQueue()
        self._files: dict[str, Sequence[Future[Any]]] = {}

    def replay(self, requests: Iterable[Request], keep: Keep) -> None:
        """Make the replays; see `Executor`. Workers end what runs within a second after this was left early."""
        self._waiting.extend(requests)
        try:
            while self._waiting or self._sent:
                self._workers.look()
                self._call_back()
                while self._waiting and len(self._sent) < self._workers.places:
                    self._send(self._waiting.popleft(), keep)
                with suppress(Empty):
                    self._take(self._ended.get(timeout=_WAIT_SECONDS), keep)
        except BaseException:
            self._give_up(keep)
            raise

    def _send(self, request: Request, keep: Keep) -> None:
        try:
            files = self._files_of(request.settings.dataset)
        except UserError as error:  # the data set is not on this machine
            keep(request, Replay(status="XX", message=str(error)), 0.0)
            return
        key = f"replay-{uuid4().hex}"
        job = job_of(
            request,
            key=key,
            session=self._session,
            fingerprint=fingerprint(self._workers.ours),
            engine=self._engine,
        )
        addresses = frozenset(self._workers.fit)
        future = self._client.submit(
            worker.replay, job.model_dump_json().encode(), *files, key=key, workers=sorted(addresses)
        )
        self._sent[key] = _Sent(request, future, addresses, perf_counter())
        future.add_done_callback(self._ended.put)

    def _files_of(self, dataset: str) -> Sequence[Future[Any]]:
        """Return the files of a data set, which Dask brings once to each worker that needs them."""
        if dataset in EMBEDDED:
            return ()
        files = self._files.get(dataset, ())
        if not files or any(file.status in ("error", "cancelled", "lost") for file in files):
            contents = (self._data.subset(dataset), self._data.heldout(dataset))
            files = [self._client.submit(bytes, item, key=f"data-{uuid4().hex}") for item in contents]
            self._files[dataset] = files
        return files

    def _take(self, future: Future[Any], keep: Keep) -> None:
        sent = self._sent.pop(str(future.key), None)
        if sent is None:  # it was called back
            return
        try:
            answer = self._answer(future, _FETCH_SECONDS)
        except _GIVEN_UP:
            check_connection(self._client)
            self._wait_again(sent)
            return
        if answer.replay is None:
            self._workers.refuse(answer.address, answer.unfit)
            self._wait_again(sent)
            return
        sent.keep(keep, answer.replay)

    def _answer(self, future: Future[Any], seconds: float) -> Answer:
        try:
            return Answer.model_validate_json(future.result(timeout=seconds))
        except _GIVEN_UP:
            raise
        except Exception as error:
            traceback.print_exc()
            replay = Replay(status="XX", message=f"the grader failed ({type(error).__name__})")
            return Answer(address="", replay=replay)

    def _call_back(self) -> None:
        """Take back what may be given to none of the workers that are left."""
        for key, sent in list(self._sent.items()):
            if not sent.addresses & self._workers.fit:
                del self._sent[key]
                self._wait_again(sent)

    def _wait_again(self, sent: _Sent) -> None:
        sent.future.cancel()
        self._waiting.appendleft(sent.request)

    def _give_up(self, keep: Keep) -> None:
        """Keep what has ended beside what ended this, and have nothing else made."""
        self._waiting.clear()
        sent, self._sent = self._sent, {}
        for one in sent.values():
            if one.future.status == "finished":
                with suppress(*_GIVEN_UP):
                    answer = self._answer(one.future, _LAST_FETCH_SECONDS)
                    if answer.replay is not None:
                        one.keep(keep, answer.replay)
        if self._client.status == "running":
            self._client.cancel([one.future for one in sent.values()])
