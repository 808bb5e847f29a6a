"""Make one replay: run an experiment in a sandbox, then judge its weights in another one without student code."""

import errno
import io
import json
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from grader.intake.archive import MIB
from grader.intake.submission import LOG_BYTES
from grader.replay.data import ReplayData
from grader.replay.inside import INSIDE
from grader.replay.replay import CheckResult, Evaluation, Replay
from grader.replay.request import RUN_LIMITS, Request
from grader.sandbox import Command, Limits, SandboxResult, Stopped, StopSignal, WarmSandbox, run_in_sandbox
from grader.score.solutions import mechanisms_of
from grader.syntax.plain_edit import plain_edit
from harness.canonical_setup import run_environment
from harness.errors import UserError, naming
from harness.recipe import ROOT, Recipe
from harness.submission.check_run import shape_fault

Sandbox = Callable[[Command, StopSignal | None], SandboxResult]
Engine = Literal["warm", "fresh"]
ENGINES: tuple[Engine, ...] = get_args(Engine)

HARNESS_BROKE = "the harness broke while it ran this experiment"
# A disk that is full or read-only fails every replay alike.
_NO_DISK = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EROFS])
# The files that a finished run leaves.
_RESULTS = ("metrics.log", "checks.json", "checkpoint.pt")


class Replayer:
    """Makes replays in a sandbox. `data` is the folder of MNIST and CIFAR-10, or data that were read already."""

    def __init__(self, sandbox: Sandbox, data: Path | ReplayData, limits: Limits = RUN_LIMITS) -> None:
        self._sandbox = sandbox
        self.data = data if isinstance(data, ReplayData) else ReplayData(data)
        self._limits = limits
        self._stop = StopSignal()

    def stop(self) -> None:
        """End the replays that any thread is making, with `Stopped`. No more can be made afterwards."""
        self._stop.set()

    def replay(self, request: Request) -> Replay:
        """Make a replay; a failure that is not the experiment's own becomes the status XX.

        Raises `Stopped`, and `OSError` for a disk that is full or read-only.
        """
        try:
            replay = self.make(request)
        except Stopped:
            raise
        except UserError as error:  # the data set is not on this machine
            return Replay(status="XX", message=str(error))
        except Exception as error:
            if isinstance(error, OSError) and error.errno in _NO_DISK:
                with naming(Path(tempfile.gettempdir())):  # where a run without a sandbox writes
                    raise
            traceback.print_exc()
            return Replay(status="XX", message=f"the grader failed ({type(error).__name__})")
        if replay.status == "SG" and not plain_edit(request.recipe.broken_source(), request.source):
            # A plain edit raises no signals; a machine that is short of memory kills processes.
            return Replay(status="XX", message=f"something outside ended it, twice ({replay.message})")
        return replay

    def make(self, request: Request) -> Replay:
        """Run the experiment and evaluate its weights; repeat once what may be the machine's fault.

        Raises `UserError` if the data set is not on this machine.
        """
        replay = self._make_once(request)
        return self._make_once(request) if replay.status in ("XX", "SG") else replay

    def _make_once(self, request: Request) -> Replay:
        job = {
            "settings": asdict(request.settings),
            "checks": list(mechanisms_of(request.recipe.id)),
            "source": request.source,
            "platform": request.trusted,
        }
        dataset = request.settings.dataset
        result = self._run("replay.py", {"job.json": json.dumps(job).encode()}, dataset)
        if result.status != "OK":
            ours = request.trusted or request.source == request.recipe.healthy_source()
            return _unfinished(result, ours=ours)
        replay = _read_replay(result, trusted=request.trusted)
        if replay.status != "OK":
            return replay
        weights = result.files["checkpoint.pt"]
        evaluation = self._evaluate(request.recipe, dataset, {"checkpoint.pt": weights})
        if evaluation is not None and evaluation.problem and not request.trusted:
            evaluation = self._evaluate_network(request, weights, evaluation)
        if evaluation is None:
            return Replay(status="XX", message="the evaluation of the weights did not come to an end")
        return replay.model_copy(update={"evaluation": evaluation})

    def _evaluate_network(self, request: Request, weights: bytes, otherwise: Evaluation) -> Evaluation | None:
        """Judge a network of the student's own by its outputs for images without labels.

        That runs the student's code, in a sandbox that holds no held-out label. `otherwise` is the result if the code
        gives no outputs.
        """
        dataset = request.settings.dataset
        with np.load(io.BytesIO(self.data.heldout(dataset))) as arrays:
            unlabelled = io.BytesIO()
            np.savez(unlabelled, allow_pickle=False, images=arrays["images"])
        inputs = {
            "job.json": json.dumps({"dataset": dataset}).encode(),
            "experiment.py": request.source.encode(),
            "heldout.npz": unlabelled.getvalue(),
            "checkpoint.pt": weights,
        }
        result = self._run("predict.py", inputs, dataset)
        if result.status != "OK" or "outputs.npz" not in result.files:
            ours = result.status == "XX" or result.signal == signal.SIGKILL
            return None if ours else otherwise
        outputs = {"outputs.npz": result.files["outputs.npz"]}
        evaluation = self._evaluate(request.recipe, dataset, outputs)
        return evaluation and evaluation.model_copy(update={"own_network": True})

    def _evaluate(self, recipe: Recipe, dataset: str, judged: Mapping[str, bytes]) -> Evaluation | None:
        """Judge weights, or outputs, with the recipe's own model on held-out data; return None if we failed."""
        inputs = {
            "job.json": json.dumps({"dataset": dataset}).encode(),
            "experiment.py": recipe.healthy_source().encode(),
            "heldout.npz": self.data.heldout(dataset),
            **judged,
        }
        result = self._run("evaluate.py", inputs, dataset)
        if result.status != "OK":
            # A checkpoint that crashes its reader, or needs too much memory or time, cannot be read. SIGKILL is the
            # machine's: it is short of memory.
            ours = result.status in ("XX", "RE") or result.signal == signal.SIGKILL
            return None if ours else Evaluation(problem="it cannot be read")
        return Evaluation.model_validate_json(result.files["evaluation.json"])

    def _run(self, script: str, inputs: Mapping[str, bytes], dataset: str) -> SandboxResult:
        words = [sys.executable, "-P", str(INSIDE / script)]
        inputs = {**inputs, **self.data.inputs(dataset)}
        return self.run(Command(words, inputs, replay_environment(), self._limits, visible_folders()))

    def run(self, command: Command) -> SandboxResult:
        """Run a command in the sandbox until `stop`; see `grader.sandbox.run_in_sandbox`."""
        return self._sandbox(command, self._stop)


@cache
def replay_environment() -> Mapping[str, str]:
    """Return the environment of every process in the sandbox."""
    return run_environment("portable", base={"PATH": "/usr/bin:/bin"})


@cache
def visible_folders() -> Sequence[Path]:
    """Return the folders that a process in the sandbox may read: Python, its packages, the harness, our scripts."""
    return [Path(sys.base_prefix), Path(sys.prefix), ROOT / "harness", INSIDE]


def _read_replay(result: SandboxResult, *, trusted: bool) -> Replay:
    if missing := [name for name in _RESULTS if name not in result.files]:
        problem = f"it ended without an error and without {missing[0]}; does the experiment end the process?"
        return Replay(status="RE", message=f"the run left no whole result: {problem}")
    if len(result.files["metrics.log"]) > LOG_BYTES:
        return Replay(status="OL", message=f"it wrote a log of more than {LOG_BYTES // MIB} MiB")
    try:
        log = result.files["metrics.log"].decode("utf-8")
        checks = json.loads(result.files["checks.json"])
        platform: dict[str, Any] | None = json.loads(result.files["platform.json"]) if trusted else None
        replay = Replay(
            status="OK",
            log=log,
            log_sha256=sha256(result.files["metrics.log"]).hexdigest(),
            checkpoint_sha256=sha256(result.files["checkpoint.pt"]).hexdigest(),
            checks=tuple(CheckResult.model_validate(item) for item in checks),
            platform=platform,
        )
        if fault := shape_fault("metrics.log", replay.records()):
            raise ValueError(fault)
    except Exception as error:
        # The process claimed success and left something else: only the experiment's own code does that.
        return Replay(status="RE", message=f"the run left no whole result ({type(error).__name__})")
    return replay


def _unfinished(result: SandboxResult, *, ours: bool) -> Replay:
    message = result.files.get("error.txt", b"").decode("utf-8", "replace") or result.message
    if ours:  # the suite's own code never fails by itself
        last = result.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return Replay(status="XX", message=f"{result.status}: {message} {' '.join(last)}".strip())
    if result.status == "RE" and result.exit_code == 3:
        return Replay(status="XX", message=HARNESS_BROKE)
    return Replay(status=result.status, message=message[:2000])


@contextmanager
def open_sandbox(engine: Engine, jobs: int) -> Iterator[Sandbox]:
    """Give a sandbox for `jobs` threads: "warm" forks each run from a process that has imported torch.

    Where processes cannot be forked inside a sandbox, "warm" starts a fresh process for each run, as "fresh" does.
    """
    if engine == "fresh":
        yield run_in_sandbox
        return
    warm = WarmSandbox(INSIDE / "preload.py", replay_environment(), visible_folders(), jobs=jobs)
    try:
        yield warm
    finally:
        warm.close()
