"""Make one replay: run an experiment in a sandbox, then evaluate its weights in a sandbox without student code."""

import errno
import json
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, get_args

from grader.private import without_folders
from grader.replay.data import ReplayData
from grader.replay.inside import INSIDE
from grader.replay.replay import CheckResult, Evaluation, Replay
from grader.replay.request import RUN_LIMITS, Request
from grader.sandbox import (
    ForkingSandbox,
    Interpreter,
    Limits,
    SandboxCommand,
    SandboxResult,
    SandboxStopped,
    StopSignal,
    run_in_sandbox,
    running_python,
)
from grader.syntax.plain_edit import plain_edit
from harness.canonical_setup import run_environment
from harness.checks import mechanism_checks
from harness.errors import UserError, name_place
from harness.recipes.suite import PACKAGES, suite_path
from harness.submission.check_run import shape_fault
from harness.submission.limits import LOG_BYTES, MIB

Sandbox = Callable[[SandboxCommand, StopSignal | None], SandboxResult]
Engine = Literal["warm", "fresh"]
ENGINES: tuple[Engine, ...] = get_args(Engine)

HARNESS_BROKE = "the harness itself failed while it ran this experiment"
# If the disk is full or read-only, every replay fails, so these errors stop the command.
_NO_DISK = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EROFS])
_NOT_RUN = (
    "the grader did not run it, because with these settings the other runs of the submission leave too little time"
)
_TIME_UP = "the run and the evaluation of its weights took longer than the time limit"
# The files that a finished run writes.
_RESULTS = ("metrics.log", "checkpoint.pt")


class Replayer:
    """Makes replays in a sandbox. `data` is the folder that contains MNIST and CIFAR-10, or data in memory."""

    def __init__(self, sandbox: Sandbox, data: Path | ReplayData, limits: Limits = RUN_LIMITS) -> None:
        self._sandbox = sandbox
        self.data = data if isinstance(data, ReplayData) else ReplayData(data)
        self.limits = limits
        self._stop = StopSignal()

    def stop(self) -> None:
        """Stop the replays in all threads; they raise `SandboxStopped`. The replayer cannot be used afterwards."""
        self._stop.set()

    def replay(self, request: Request) -> Replay:
        """Make a replay and return it. If it fails and this is not the experiment's fault, its status is XX.

        Raises `SandboxStopped`, and `OSError` for a full or read-only disk.
        """
        replay = self._replay(request)
        if (message := without_folders(replay.message)) != replay.message:  # students' pages show the message
            print(f"{request.recipe.id}: {replay.message}", file=sys.stderr)
        return replay.model_copy(update={"message": message})

    def _replay(self, request: Request) -> Replay:
        try:
            replay = self.make(request)
        except SandboxStopped:
            raise
        except UserError as error:  # the data set is not on this machine
            return Replay(status="XX", message=str(error))
        except Exception as error:
            if isinstance(error, OSError) and error.errno in _NO_DISK:
                with name_place(
                    Path(tempfile.gettempdir())
                ):  # a run without a sandbox writes into the temporary folder
                    raise
            traceback.print_exc()
            return Replay(status="XX", message=f"the grader failed ({type(error).__name__})")
        if replay.status == "SG" and not plain_edit(request.recipe.broken_source(), request.source):
            # Code that may be replayed cannot send signals, but a machine without free memory kills processes.
            message = f"the run was ended twice from outside the experiment ({replay.message})"
            return Replay(status="XX", message=message)
        return replay

    def make(self, request: Request) -> Replay:
        """Run the experiment and evaluate its weights. If the machine may have caused a failure, try once more.

        Raises `UserError` if the data set is not on this machine.
        """
        runs = _RequestRuns(request, self)
        replay = runs.make()
        if replay.status in ("XX", "SG") and not replay.lasting and runs.left > 0:
            replay = runs.make()
        return replay.model_copy(update={"seconds": round(request.seconds - runs.left, 2)})

    def run(self, command: SandboxCommand) -> SandboxResult:
        """Run a script in the sandbox, unless `stop` was called; see `grader.sandbox.run_in_sandbox`."""
        return self._sandbox(command, self._stop)


class _TimeUp(Exception):
    """Raised if the runs for a request have used up the time for this request."""


class _RequestRuns:
    """All runs for one request, which share one time limit. left: the number of remaining seconds."""

    def __init__(self, request: Request, replayer: Replayer) -> None:
        self._request = request
        self._replayer = replayer
        self.left = request.seconds

    def make(self) -> Replay:
        """Run the experiment and evaluate its weights, once."""
        if self.left <= 0:
            return Replay(status="XX", message=_NOT_RUN, lasting=True)
        try:
            return self._make()
        except _TimeUp:
            return Replay(status="TO", message=_TIME_UP)

    def _make(self) -> Replay:
        request = self._request
        job = {
            "settings": asdict(request.settings),
            "checks": mechanism_checks(request.source) if request.kind == "checks" else (),
            "behaviour": request.kind == "behaviour",
            "source": request.source,
            "platform": request.trusted,
        }
        script = "replay.py" if request.kind == "run" else "check.py"
        result = self._run(script, {"job.json": json.dumps(job).encode()})
        if result.status != "OK":
            ours = request.trusted or request.source == request.recipe.healthy_source()
            replay = _failed_replay(result, ours=ours)
            # The suite's own code exceeds a limit with these settings, so another attempt would fail, too.
            lasting = replay.status == "XX" and result.status in ("TO", "ML", "OL") and not request.is_ours
            return replay.model_copy(update={"lasting": lasting})
        if request.kind == "checks":
            return _read_checks(result, mechanism_checks(request.source))
        if request.kind == "behaviour":
            return _read_behaviour(result)
        replay = _read_replay(result, trusted=request.trusted)
        if replay.status != "OK":
            return replay
        evaluation = self._evaluate(result.files["checkpoint.pt"])
        if evaluation is None:
            return Replay(status="XX", message="the evaluation of the weights did not finish")
        return replay.model_copy(update={"evaluation": evaluation})

    def _evaluate(self, weights: bytes) -> Evaluation | None:
        """Evaluate weights in the recipe's network on held-out data. Return None if the grader itself failed."""
        inputs = {
            "job.json": json.dumps({"dataset": self._dataset}).encode(),
            "experiment.py": self._request.recipe.healthy_source().encode(),
            "heldout.npz": self._replayer.data.files(self._dataset).heldout,
            "checkpoint.pt": weights,
        }
        result = self._run("evaluate.py", inputs)
        if result.status == "TO":
            raise _TimeUp
        if result.status != "OK":
            # If a checkpoint crashes the reader, or makes it exceed its memory limit, the checkpoint counts as
            # unreadable. SIGKILL means that the machine has no free memory.
            ours = result.status in ("XX", "RE") or result.signal == signal.SIGKILL
            return None if ours else Evaluation(problem="it cannot be read")
        return Evaluation.model_validate_json(result.files["evaluation.json"])

    @property
    def _dataset(self) -> str:
        return self._request.settings.dataset

    def _run(self, script: str, inputs: Mapping[str, bytes]) -> SandboxResult:
        """Run a script of the grader in the sandbox. Raises `_TimeUp` if no time is left."""
        if self.left <= 0:
            raise _TimeUp
        inputs = {**inputs, **self._replayer.data.inputs(self._dataset)}
        limits = replace(self._replayer.limits, seconds=self.left)
        result = self._replayer.run(SandboxCommand(INSIDE / script, replay_interpreter(), inputs, limits))
        self.left -= result.seconds
        return result


@cache
def replay_environment() -> Mapping[str, str]:
    """Return the environment variables of every process in the sandbox."""
    return run_environment("portable", base={"PATH": "/usr/bin:/bin"})


@cache
def visible_folders() -> Sequence[Path]:
    """Return the folders that are visible in the sandbox: Python, its packages, the harness, the grader's scripts."""
    return [Path(sys.base_prefix), Path(sys.prefix), PACKAGES / "harness", suite_path("trainwreck"), INSIDE]


@cache
def replay_interpreter() -> Interpreter:
    """Return the settings of the Python process that runs the grader's scripts and imports torch only once."""
    words = (str(running_python()), "-P")
    return Interpreter(words, replay_environment(), visible_folders(), INSIDE / "preload.py")


def _read_replay(result: SandboxResult, *, trusted: bool) -> Replay:
    if missing := [name for name in _RESULTS if name not in result.files]:
        problem = f"it ended without an error, but did not write {missing[0]}; perhaps the experiment exits the process"
        return Replay(status="RE", message=f"the run left no complete result: {problem}")
    if len(result.files["metrics.log"]) > LOG_BYTES:
        return Replay(status="OL", message=f"it wrote a log of more than {LOG_BYTES // MIB} MiB")
    try:
        log = result.files["metrics.log"].decode("utf-8")
        platform: dict[str, Any] | None = json.loads(result.files["platform.json"]) if trusted else None
        replay = Replay(
            status="OK",
            log=log,
            log_sha256=sha256(result.files["metrics.log"]).hexdigest(),
            checkpoint_sha256=sha256(result.files["checkpoint.pt"]).hexdigest(),
            platform=platform,
        )
        if fault := shape_fault("metrics.log", replay.records()):
            raise ValueError(fault)
    except Exception as error:
        # The process reported success but wrote no valid files. Only code in the experiment can cause this.
        return Replay(status="RE", message=f"the run left no complete result ({type(error).__name__})")
    return replay


def _read_checks(result: SandboxResult, names: Sequence[str]) -> Replay:
    try:
        found = json.loads(result.stdout)
        checks = tuple(CheckResult(check=name, **found[name]) for name in names)
    except Exception as error:  # only the experiment's own code can cause that
        return Replay(
            status="RE", message=f"the process that ran the checks left no complete result ({type(error).__name__})"
        )
    return Replay(status="OK", checks=checks)


def _read_behaviour(result: SandboxResult) -> Replay:
    try:
        found = json.loads(result.stdout)["behaviour"]
        if problem := found.get("problem"):
            return Replay(status="RE", message=problem)
        return Replay(status="OK", behaviour=found["figures"])
    except Exception as error:  # only the experiment's own code can cause that
        return Replay(
            status="RE",
            message=f"the process that measured the behaviour left no complete result ({type(error).__name__})",
        )


def _failed_replay(result: SandboxResult, *, ours: bool) -> Replay:
    message = result.files.get("error.txt", b"").decode("utf-8", "replace") or result.message
    if ours:  # the suite's own code does not fail without a reason outside it
        last = result.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return Replay(status="XX", message=f"{result.status}: {message} {' '.join(last)}".strip())
    if result.status == "RE" and result.exit_code == 3:
        return Replay(status="XX", message=HARNESS_BROKE)
    return Replay(status=result.status, message=message[:2000])


@contextmanager
def open_sandbox(engine: Engine, jobs: int) -> Iterator[Sandbox]:
    """Yield a sandbox for `jobs` threads. Its workers fork for each run ("warm") or make only one run each ("fresh").

    A worker can fork only if this machine allows nested namespaces. If not, "warm" works like "fresh".
    """
    if engine == "fresh":
        yield run_in_sandbox
        return
    with closing(ForkingSandbox(jobs)) as sandbox:
        yield sandbox
