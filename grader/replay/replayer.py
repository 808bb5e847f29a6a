"""Makes replays: each experiment in a sandbox of its own, its weights judged in another without student code."""

import io
import json
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from grader.intake.gunzip import MIB
from grader.intake.submission import LOG_BYTES
from grader.replay.inside import FOLDER as INSIDE
from grader.replay.replay import CheckResult, Evaluation, Replay
from grader.replay.replay_data import ReplayData
from grader.replay.requests import RUN_LIMITS, Request
from grader.sandbox import Limits, SandboxResult, StopSignal
from grader.score.solutions import mechanisms_of
from harness.canonical_setup import run_environment
from harness.recipe import ROOT, Recipe
from harness.run.settings import RunSettings
from harness.submission.check_run import shape_faults

Sandbox = Callable[..., SandboxResult]

HARNESS_BROKE = "the harness broke while it ran this experiment"


class Replayer:
    """Makes replays with one sandbox; `data` is where MNIST and CIFAR-10 lie, or what holds them."""

    def __init__(self, sandbox: Sandbox, data: Path | ReplayData, limits: Limits = RUN_LIMITS) -> None:
        self._sandbox = sandbox
        self._data = data if isinstance(data, ReplayData) else ReplayData(data)
        self._limits = limits
        self._stop = StopSignal()
        self._environment = replay_environment()

    def stop(self) -> None:
        """End the replays that are being made, in whatever thread, with `Stopped`; none can be made afterwards."""
        self._stop.set()

    def make(self, request: Request) -> Replay:
        """Run the experiment, then evaluate its weights; what may be a fault of ours is tried once more.

        Raises `UserError` where the data set is not on this machine.
        """
        replay = self._make(request)
        # A machine that is out of memory kills, too.
        return self._make(request) if replay.status in ("XX", "SG") else replay

    def _make(self, request: Request) -> Replay:
        job = {
            "settings": asdict(request.settings),
            "checks": list(mechanisms_of(request.recipe.id)),
            "runs": [{"name": "run", "source": request.source}],
            "platform": request.trusted,
        }
        inputs = {"job.json": json.dumps(job).encode(), **self._data.inputs(request.settings.dataset)}
        result = self._run("replay.py", inputs)
        replay = _read_replay(result, trusted=request.trusted)
        if replay.status != "OK":
            return replay
        weights = result.files["run/checkpoint.pt"]
        evaluation = self.evaluate(request.recipe, request.settings, weights)
        if evaluation is not None and evaluation.problem and not request.trusted:
            evaluation = self._evaluate_network(request, weights, evaluation)
        if evaluation is None:
            return Replay(status="XX", message="the evaluation of the weights did not come to an end")
        return replay.model_copy(update={"evaluation": evaluation})

    def evaluate(self, recipe: Recipe, settings: RunSettings, checkpoint: bytes) -> Evaluation | None:
        """Judge weights with the recipe's own model on held-out data; None where that failed through us."""
        return self._evaluated(recipe, settings, {"checkpoints/run.pt": checkpoint})

    def _evaluate_network(self, request: Request, weights: bytes, otherwise: Evaluation) -> Evaluation | None:
        """Judge another network than the recipe's own by what it puts out for images without their labels.

        Its code runs for that; so it is in a sandbox once more, in which no label of a held-out image is.
        """
        dataset = request.settings.dataset
        with np.load(io.BytesIO(self._data.heldout(dataset))) as arrays:
            unlabelled = io.BytesIO()
            np.savez(unlabelled, allow_pickle=False, images=arrays["images"])
        inputs = {
            "job.json": json.dumps({"dataset": dataset}).encode(),
            "experiment.py": request.source.encode(),
            "heldout.npz": unlabelled.getvalue(),
            "checkpoints/run.pt": weights,
            **self._data.inputs(dataset),
        }
        result = self._run("predict.py", inputs)
        if result.status != "OK" or "outputs.npz" not in result.files:
            ours = result.status == "XX" or result.signal == signal.SIGKILL
            return None if ours else otherwise
        outputs = {"outputs.npz": result.files["outputs.npz"]}
        evaluation = self._evaluated(request.recipe, request.settings, outputs)
        return evaluation and evaluation.model_copy(update={"own_network": True})

    def _evaluated(
        self, recipe: Recipe, settings: RunSettings, judged: Mapping[str, bytes]
    ) -> Evaluation | None:
        dataset = settings.dataset
        inputs = {
            "job.json": json.dumps({"dataset": dataset, "checkpoints": ["run"]}).encode(),
            "experiment.py": recipe.healthy_source().encode(),
            "heldout.npz": self._data.heldout(dataset),
            **judged,
            **self._data.inputs(dataset),
        }
        result = self._run("evaluate.py", inputs)
        if result.status != "OK":
            # A checkpoint that takes the reader down, memory and time included, is one that cannot be read. But nothing
            # in there kills outright: that is a machine that is short of memory, or whoever watches over it.
            ours = result.status in ("XX", "RE") or result.signal == signal.SIGKILL
            return None if ours else Evaluation(problem="it cannot be read")
        found = json.loads(result.files["evaluation.json"])
        return Evaluation.model_validate(found["run"])

    def _run(self, script: str, inputs: Mapping[str, bytes]) -> SandboxResult:
        return self.run(
            [sys.executable, "-P", str(INSIDE / script)],
            inputs,
            environment=self._environment,
            limits=self._limits,
            visible=visible_folders(),
        )

    def run(
        self,
        command: Sequence[str],
        inputs: Mapping[str, bytes],
        *,
        environment: Mapping[str, str],
        limits: Limits,
        visible: Sequence[Path],
    ) -> SandboxResult:
        """Run a command in the sandbox, until `stop`; see `grader.sandbox.run_in_sandbox`."""
        return self._sandbox(
            command, inputs=inputs, environment=environment, limits=limits, visible=visible, stop=self._stop
        )


def replay_environment() -> Mapping[str, str]:
    """Return the environment of every process in the sandbox."""
    return run_environment("portable", base={"PATH": "/usr/bin:/bin"})


def visible_folders() -> Sequence[Path]:
    """Return what a process in the sandbox may read: Python with its packages, the harness, and our scripts."""
    return [Path(sys.base_prefix), Path(sys.prefix), ROOT / "harness", INSIDE]


# What a run leaves when it is over, besides what only a trusted one may say.
_RESULTS = ("run/metrics.log", "run/checks.json", "run/checkpoint.pt")


def _read_replay(result: SandboxResult, *, trusted: bool) -> Replay:
    if result.status != "OK":
        return _unfinished(result, trusted=trusted)
    if missing := [name for name in _RESULTS if name not in result.files]:
        told = f"it ended without an error and without {Path(missing[0]).name}; does the experiment end the process?"
        return Replay(status="RE", message=f"the run left no whole result: {told}")
    if len(result.files["run/metrics.log"]) > LOG_BYTES:
        return Replay(status="OL", message=f"it wrote a log of more than {LOG_BYTES // MIB} MiB")
    try:
        log = result.files["run/metrics.log"].decode("utf-8")
        checks = json.loads(result.files["run/checks.json"])
        platform: dict[str, Any] | None = json.loads(result.files["platform.json"]) if trusted else None
        replay = Replay(
            status="OK",
            log=log,
            log_sha256=sha256(result.files["run/metrics.log"]).hexdigest(),
            checkpoint_sha256=sha256(result.files["run/checkpoint.pt"]).hexdigest(),
            checks=tuple(CheckResult.model_validate(item) for item in checks),
            platform=platform,
        )
        if (fault := next(shape_faults("metrics.log", replay.records()), None)) is not None:
            raise ValueError(fault)
    except Exception as error:
        # The process said that all was well and left something else: only an experiment's own code does that.
        return Replay(status="RE", message=f"the run left no whole result ({type(error).__name__})")
    return replay


def _unfinished(result: SandboxResult, *, trusted: bool) -> Replay:
    told = result.files.get("error.txt", b"").decode("utf-8", "replace")
    message = told or result.message
    if trusted:  # the suite's own code has no excuse
        last = result.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return Replay(status="XX", message=f"{result.status}: {message} {' '.join(last)}".strip())
    if result.status == "RE" and result.exit_code == 3:
        return Replay(status="XX", message=HARNESS_BROKE)
    return Replay(status=result.status, message=message[:2000])
