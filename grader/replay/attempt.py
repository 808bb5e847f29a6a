"""One replay whose failure is a result: what is no fault of the experiment's own has the status XX."""

import errno
import tempfile
import traceback
from pathlib import Path

from grader.replay.replay import Replay
from grader.replay.replayer import Replayer
from grader.replay.requests import Request
from grader.sandbox import Stopped
from grader.syntax.plain_code import suspicions
from harness.errors import UserError, naming

# A disk that is full or cannot be written to: the next experiment would fare no better.
_NO_DISK = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EROFS])


def attempt(replayer: Replayer, request: Request) -> Replay:
    """Make a replay. Raises `Stopped`, and `OSError` for a disk that is full or cannot be written to."""
    try:
        return _blamed(replayer.make(request), request)
    except Stopped:
        raise
    except OSError as error:
        if error.errno not in _NO_DISK:
            return _failed(error)
        with naming(Path(tempfile.gettempdir())):  # where a run without a sandbox writes
            raise
    except UserError as error:  # the data set is not on this machine
        return Replay(status="XX", message=str(error))
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> Replay:
    traceback.print_exc()
    return Replay(status="XX", message=f"the grader failed ({type(error).__name__})")


def _blamed(replay: Replay, request: Request) -> Replay:
    """Return the replay, laid at the machine's door where a signal ended a plain experiment (twice, by now).

    A plain experiment raises no signals; a machine that is short of memory kills, and so does whoever watches over it.
    """
    if replay.status == "SG" and not suspicions(request.source):
        message = f"something outside ended it, twice ({replay.message})"
        return Replay(status="XX", message=message)
    return replay
