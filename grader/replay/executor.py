"""What makes many replays side by side: threads of this process, or a cluster."""

from collections.abc import Callable, Iterable
from typing import Protocol

from grader.replay.replay import Replay
from grader.replay.requests import Request

# keep(request, replay, seconds that it took)
Keep = Callable[[Request, Replay, float], None]


class Executor(Protocol):
    """Makes replays, in whatever order."""

    def replay(self, requests: Iterable[Request], keep: Keep) -> None:
        """Make each replay and give it to `keep`, in the caller's thread, as soon as it is there.

        What ends that early, be it Ctrl-C or an error of `keep`, is raised as soon as nothing runs any more and what
        was finished by then has been given to `keep` as well.
        """
