"""Trials and probes: find out in a child process what the training does if one thing changes.

In a trial the script's own loop goes on in the child, with one thing changed. In a probe the child calls a function on
the networks and inputs that the watch has kept. The parent waits for the answer. Its own state, files and random
numbers stay as they are.

Children are forked where that is safe: on Linux, with a training on the CPU. Elsewhere `can_fork` is false. The command
runs the script once more for each trial then, and makes probes in the watched process, which ends after them.
"""

import ctypes
import gc
import json
import multiprocessing
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _DatasetKind, _MultiProcessingDataLoaderIter

from trainwreck.guard import redirect_writes
from trainwreck.patience import patient
from trainwreck.places import interactive_shell

_PR_SET_PDEATHSIG = 1  # of <sys/prctl.h>; children are forked on Linux alone
_GRACE = patient(5.0)  # seconds that a child may take beyond its limit
MOST_COPIED = 512 * 2**20  # bytes of weights, gradients and states, which a child that trains copies


@dataclass
class Trial:
    """One change of the training, and how long the child goes on.

    steps, seconds: the most updates, and the time limit. same_batch: each loader gives its latest batch for ever; a
    training without a loader gives its networks and losses their latest inputs and targets. edit: what changes this
    batch first. rate: the factor of all learning rates. dropout: whether dropout acts. answers: "right" or "wrong" if
    networks give these answers in evaluations.
    """

    steps: int = 40
    seconds: float = patient(15.0)
    same_batch: bool = False
    edit: Callable[[Any], Any] | None = None
    rate: float = 1.0
    dropout: bool = True
    answers: str = ""
    first_step: int = 0
    began: float = 0.0

    def begin(self, step: int) -> None:
        """Begin at this update, in the process that makes the trial."""
        self.first_step, self.began = step, time.monotonic()

    def is_over(self, step: int) -> bool:
        """Return whether the child has seen enough at this update."""
        return step >= self.first_step + self.steps or time.monotonic() > self.began + self.seconds


Probe = Callable[[], Any]


def is_alone() -> bool:
    """Return whether no other process trains together with this one, for which a trial would wait for ever."""
    return os.environ.get("WORLD_SIZE", "1") == "1"


def can_fork() -> bool:
    """Return whether a child can be forked here, and can do no harm.

    It cannot on Windows, on macOS, and once CUDA is in use. In a group of processes, a child would take part in the
    exchange of gradients. It would also take the answers of processes that the script has started, such as those of
    environments; workers of loaders are no obstacle. In the kernel of a notebook, a child would print into the
    notebook, share the kernel's sockets without the threads that serve them, and go on as a second kernel once its cell
    ends.
    """
    if not hasattr(os, "fork") or sys.platform == "darwin" or torch.cuda.is_initialized():
        return False
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return False
    return interactive_shell() is None and not _has_processes()


def _has_processes() -> bool:
    """Return whether the script has started processes that are no workers of a loader."""
    started = {process.pid for process in multiprocessing.active_children()}
    return bool(started) and bool(started - {worker.pid for one in _iterators() for worker in one._workers})


def _iterators() -> list[Any]:
    """Return all iterators over loaders with workers in this process, also those that began before the watch."""
    return [one for one in gc.get_objects() if type(one) is _MultiProcessingDataLoaderIter]


def _leave_workers() -> None:
    """In a child, read the data sets here: the workers of loaders belong to the parent, which waits for their batches.

    An iterator goes on behind the batches that it has asked the workers for.
    """
    for one in _iterators():
        _kept.append(one)  # its deletion would stop the workers
        fetcher = _DatasetKind.create_fetcher(
            one._dataset_kind, one._dataset, one._auto_collation, one._collate_fn, one._drop_last
        )
        one._next_data = lambda one=one, fetcher=fetcher: fetcher.fetch(one._next_index())
    for loader in gc.get_objects():
        if issubclass(type(loader), DataLoader):
            loader.num_workers = loader.timeout = 0


def run_probe(probe: Probe, seconds: float = patient(20.0)) -> Any:
    """Return the answer of a probe, which a child computes, or None if it takes too long.

    The answer must fit into JSON. Raises `RuntimeError` with the traceback if the probe raises.
    """
    child = _fork()
    if child is None:  # this is the child
        torch.set_num_threads(1)  # the threads of the parent's pool do not exist here
        try:
            answer: dict[str, Any] = {"answer": probe()}
        except BaseException:
            answer = {"error": traceback.format_exc(limit=-4)}
        send_answer(answer)
    return _receive(child, seconds)


def begin_trial(trial: Trial, step: int) -> Any | None:
    """Return the answer of a trial in the parent, or None in the child, where the script's loop must go on.

    A child that sends no answer in time gives `{}` in the parent.
    """
    child = _fork()
    if child is None:
        torch.set_num_threads(1)
        _leave_workers()
        trial.begin(step)
        return None
    return _receive(child, trial.seconds) or {}


_answers: list[int] = []  # in a child, the file that its answer goes to
_kept: list[Any] = []  # in a child, the iterators of the parent


def _fork() -> tuple[int, int, Path] | None:
    """Fork a child that writes no file of the user.

    Return its number, the end of a pipe, and the folder that its files go to; None in the child.
    """
    box = Path(tempfile.mkdtemp(prefix="trainwreck-"))
    sys.stdout.flush()
    sys.stderr.flush()
    end, start = os.pipe()
    with warnings.catch_warnings():  # Python 3.12 warns of other threads: the child uses none of them
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        os.close(start)
        return child, end, box
    os.close(end)
    with suppress(OSError):  # a sandbox may forbid it, and then ends all processes itself
        os.setpgid(0, 0)  # so that the parent can end it with its own children
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # so that it ends with its parent, however that ends
    _answers[:] = [start]
    redirect_writes(box)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    return None


def send_answer(answer: Any) -> NoReturn:
    """Send the answer of this child, and end it, also if the parent no longer waits: the script must not go on here."""
    try:
        data = json.dumps(answer, default=str).encode()
        while data:
            data = data[os.write(_answers[0], data) :]
    finally:
        os._exit(0)


def _receive(forked: tuple[int, int, Path], seconds: float) -> Any:
    """Return the answer of a child, or None without one in time. The child and its own children are ended."""
    child, end, box = forked
    data, limit = b"", time.monotonic() + seconds + _GRACE
    try:
        while select.select([end], [], [], max(0.0, limit - time.monotonic()))[0]:
            piece = os.read(end, 1 << 16)
            if not piece:
                break
            data += piece
    finally:  # also after Ctrl-C
        for stop in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                stop(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(end)
        shutil.rmtree(box, ignore_errors=True)
    if not data:
        return None
    answer = json.loads(data)
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer.get("answer", answer)
