"""What one worker is asked before it gets anything to do: what it is."""

import json
from collections.abc import Callable
from concurrent.futures import CancelledError
from importlib import import_module
from typing import Any
from uuid import uuid4

from distributed import Client, Future
from distributed.scheduler import KilledWorker

from grader.replay.cluster import worker
from grader.replay.cluster.description import Description, difference
from harness.errors import UserError

_FETCH_SECONDS = 10.0
# Before all replays that wait for the same worker.
_FIRST = 10
# Dask's words for a task whose function the scheduler cannot import.
_UNREADABLE = "Error during deserialization of the task graph"


class Unanswered(Exception):
    """The worker is gone, or its answer is."""


class Question:
    """It has two parts: a function of ours would end a worker that cannot import it, so that comes first."""

    def __init__(self, client: Client, address: str) -> None:
        self._client = client
        self._address = address
        self._future = self._submit(import_module, worker.__name__)
        self._imported = False

    def is_answered(self) -> bool:
        """Say whether there is an answer, whatever it is."""
        if self._future.status == "finished" and not self._imported:
            self._imported = True
            self._future = self._submit(worker.describe)
        return bool(self._future.done())

    def objection(self, ours: Description) -> str:
        """Return why this worker cannot do what this machine does, or nothing.

        Raises `Unanswered`, and `UserError` where the scheduler is to blame.
        """
        try:
            theirs, problem = json.loads(self._future.result(timeout=_FETCH_SECONDS))
        except (KilledWorker, CancelledError, TimeoutError):
            raise Unanswered from None
        except Exception as error:  # whatever another installation says
            told = " ".join(str(error).split())
            if _UNREADABLE in told:
                raise UserError(
                    "The scheduler has no trainwreck: start it from the same installation as its workers."
                    " Nothing was scored."
                ) from None
            return f"trainwreck does not answer there ({type(error).__name__}: {told})"
        return difference(ours, theirs) or problem or ""

    def withdraw(self) -> None:
        """Want no answer any more."""
        self._future.cancel()

    def _submit(self, function: Callable[..., object], *words: str) -> Future[Any]:
        return self._client.submit(
            function, *words, key=f"question-{uuid4().hex}", workers=[self._address], priority=_FIRST
        )
