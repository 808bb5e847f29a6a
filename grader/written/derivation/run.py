"""Calls an answer in a sandbox that has NumPy and nothing else, and asks autograd in another what is right."""

import io
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from grader.replay.inside import FOLDER as INSIDE
from grader.replay.replayer import Replayer, replay_environment, visible_folders
from grader.sandbox import MIB, Limits, SandboxResult, Status, launcher_python
from grader.score.verdict import Model
from grader.written.derivation.cases import Cases
from harness.recipe import ROOT
from harness.written.derivation.problem import Array, Problem

# Measured, in seconds of processor: the reference takes 0.6, and so does a loop over samples; a backward pass by
# differences, the slowest that comes to its end, 3.0. 32 MiB are enough, 71 files of 2.0 MB are left. With a load of 7
# on two cores 3.0 seconds took 34 of the clock: the clock is for what sleeps.
LIMITS = Limits(
    cpu_seconds=30,
    wall_seconds=240,
    memory_bytes=512 * MIB,
    processes=16,
    file_bytes=16 * MIB,
    scratch_bytes=64 * MIB,
    scratch_files=300,
    output_bytes=MIB,
    result_bytes=32 * MIB,
)
_REPORT_BYTES = MIB


class _CaseReport(Model):
    """What the process of the answer says of one case."""

    shapes: dict[str, tuple[int, ...]]
    problems: dict[str, str]
    steps: dict[str, int]
    changed: tuple[str, ...]
    evaluations: int


class _Report(Model):
    problem: str
    cases: dict[str, _CaseReport]


@dataclass(frozen=True)
class Called:
    """One case of an answer: arrays of float64 by output, and what its own process says of sentences and counts."""

    arrays: Mapping[str, Array] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    steps: Mapping[str, int] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    evaluations: int = 0


@dataclass(frozen=True)
class AnswerRun:
    """How the process of an answer ended. `problem` says why it called nothing; `cases` are there where it is ""."""

    status: Status
    message: str = ""
    exit_code: int | None = None
    problem: str = ""
    cases: Mapping[str, Called] = field(default_factory=dict)


class AutogradFailed(Exception):
    """What must be right could not be found out: a fault of ours."""


def run_answer(problem: Problem, file: str, text: str, cases: Cases, replayer: Replayer) -> AnswerRun:
    """Call an answer with every case. Raises `Stopped`; whatever the answer does ends in a result."""
    job = {"problem": problem.name, "file": file, "cases": list(cases.inputs)}
    inputs = {"job.json": json.dumps(job).encode(), "answer.txt": text.encode(), "cases.npz": cases.archive()}
    result = replayer.run(
        [str(launcher_python()), "-S", "-P", str(INSIDE / "derive.py")],
        inputs,
        environment={**replay_environment(), "PYTHONPATH": f"{_packages()}:{ROOT}"},
        limits=LIMITS,
        visible=_numpy_alone(),
    )
    if result.status != "OK":
        message = result.message or f"it ended with {result.status}"
        return AnswerRun(result.status, message, result.exit_code)
    try:
        return _read(result, cases)
    except (ValidationError, ValueError, KeyError) as error:
        # The process said that all was well and left something else: only an answer's own code does that.
        return AnswerRun("RE", f"it left no whole result ({type(error).__name__})", 0)


def expected_outputs(problem: Problem, cases: Cases, replayer: Replayer) -> Mapping[str, Mapping[str, Array]]:
    """Return what is right, by case and output. Raises `Stopped`, and `AutogradFailed` where that ended badly."""
    job = {"problem": problem.name, "cases": list(cases.inputs)}
    result = replayer.run(
        [sys.executable, "-P", str(INSIDE / "autograd.py")],
        {"job.json": json.dumps(job).encode(), "cases.npz": cases.archive()},
        environment=replay_environment(),
        limits=LIMITS_OF_AUTOGRAD,
        visible=visible_folders(),
    )
    if result.status != "OK":
        said = result.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise AutogradFailed(f"{result.status}: {result.message} {' '.join(said)}".strip())
    with np.load(io.BytesIO(result.files["expected.npz"]), allow_pickle=False) as archive:
        return {case: {name: archive[f"{case}/{name}"] for name in problem.outputs} for case in cases.inputs}


# Importing torch alone takes some 400 MB where a sandbox is started anew; it takes 3.3 s, nearly all of it to import.
LIMITS_OF_AUTOGRAD = Limits(memory_bytes=2048 * MIB, result_bytes=32 * MIB)


def _read(result: SandboxResult, cases: Cases) -> AnswerRun:
    data = result.files["report.json"]
    if len(data) > _REPORT_BYTES:
        raise ValueError("a report of more than 1 MiB")
    report = _Report.model_validate_json(data)
    found = {}
    for case in cases.inputs if not report.problem else ():
        told = report.cases[case]
        arrays = {name: _array(result.files[f"{case}/{name}"], shape) for name, shape in told.shapes.items()}
        problems = {stage: words[:600] for stage, words in told.problems.items()}
        found[case] = Called(arrays, problems, told.steps, told.changed, told.evaluations)
    return AnswerRun("OK", problem=report.problem[:600], cases=found)


def _array(data: bytes, shape: Sequence[int]) -> Array:
    """Return bytes as an array. Raises `ValueError` where they are not as many as the shape says."""
    if len(shape) > 8 or any(length < 0 for length in shape) or 8 * math.prod(shape) != len(data):
        raise ValueError("an array of another size than its shape says")
    return np.frombuffer(data, dtype="<f8").reshape(tuple(shape))


@cache
def _packages() -> Path:
    return Path(np.__file__).resolve().parent.parent


@cache
def _numpy_alone() -> Sequence[Path]:
    """Return what an answer may see: Python, NumPy with its libraries, the harness, and the script that calls it.

    Where NumPy lies in Python's own folder, as in some installations, all its other packages are seen as well.
    """
    numpy = [_packages() / "numpy", _packages() / "numpy.libs"]
    return [
        Path(sys.base_prefix),
        *(path for path in numpy if path.exists()),
        ROOT / "harness",
        INSIDE / "derive.py",
    ]
