"""The workers that a scheduler has: each is asked what it is before it gets anything to do, and may be refused."""

import time
from collections.abc import Callable
from functools import cached_property

from distributed import Client

from grader.replay.cluster.connection import scheduler_info
from grader.replay.cluster.description import Description, describe
from grader.replay.cluster.question import Question, Unanswered
from harness.errors import UserError

# How long it is waited for a worker where there is none. A nanny starts one anew within seconds; the first answer of
# many that share a machine takes longer.
PATIENCE_SECONDS = 120.0
_LOOK_SECONDS = 0.5


class Workers:
    """Keeps account of them by their addresses; `say` tells the instructor what becomes of them."""

    def __init__(
        self, client: Client, say: Callable[[str], None], patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._client = client
        self._say = say
        self._patience = patience_seconds
        self._names: dict[str, str] = {}
        self._asked: dict[str, Question] = {}
        self._refused: set[str] = set()
        self._threads: dict[str, int] = {}
        self._looked: float | None = None
        self._deserted: float | None = None  # since when nobody has been there that fits
        self._begun = False

    @cached_property
    def ours(self) -> Description:
        """What this machine is, and every worker has to be."""
        return describe()

    @property
    def fit(self) -> set[str]:
        """The addresses of those that may be given replays."""
        return set(self._threads)

    @property
    def places(self) -> int:
        """How many replays they make at a time."""
        return sum(self._threads.values())

    def look(self) -> None:
        """Find out who has come and who has gone, at most twice a second.

        Raises `UserError` where no worker is left that fits, or the scheduler is gone.
        """
        now = time.monotonic()
        if self._looked is not None and now < self._looked + _LOOK_SECONDS:
            return
        self._looked = now
        scheduler = scheduler_info(self._client)
        there = scheduler["workers"]
        for address in self._names.keys() - there.keys():
            self._forget(address)
        for address in sorted(there.keys() - self._names.keys()):
            name = str(there[address]["name"])
            self._names[address] = address if name == address else f"{name} ({address})"
            self._asked[address] = Question(self._client, address)
        for address, question in [item for item in self._asked.items() if item[1].is_answered()]:
            del self._asked[address]
            self._judge(address, question, there[address]["nthreads"])
        self._wait_for_some(scheduler["address"], now)

    def refuse(self, address: str, reason: str) -> None:
        """Give a worker nothing any more, and say so."""
        self._threads.pop(address, None)
        if address in self._names and address not in self._refused:
            self._refused.add(address)
            self._say(f"Refused: worker {self._names[address]}: {reason.rstrip('.')}.")

    def _judge(self, address: str, question: Question, threads: int) -> None:
        try:
            objection = question.objection(self.ours)
        except Unanswered:
            self._forget(address)
            return
        if objection:
            self.refuse(address, objection)
        else:
            self._threads[address] = threads
            self._begun = True

    def _forget(self, address: str) -> None:
        del self._names[address]
        self._threads.pop(address, None)
        self._refused.discard(address)
        if (question := self._asked.pop(address, None)) is not None:
            question.withdraw()

    def _wait_for_some(self, where: str, now: float) -> None:
        """Raise `UserError` where waiting for a worker has no end."""
        if self._threads:
            self._deserted = None
            return
        if self._refused and not self._begun and not self._asked:
            raise UserError(
                f"None of the workers of {where} can make replays; above is why, and what to do. Nothing was scored."
            )
        if self._deserted is None:
            self._deserted = now
            if not self._asked:
                self._say(f"Waiting for a worker of {where}, {self._patience:.0f} s at most.")
        elif now > self._deserted + self._patience:
            raise UserError(
                f"{where} has no worker (left) that can make replays: start some, and give the same command again;"
                " what was replayed by then is not replayed again."
            )
