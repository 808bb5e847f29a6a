"""Judge a derivation: call it in the sandbox with inputs that its author cannot know, and judge what it returns.

Only arrays and counts come back from the sandbox. The right outputs and all comparisons are in this process.
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from grader.replay.replayer import replay_environment
from grader.sandbox import MIB, Command, Limits, launcher_python
from grader.score.exhibits import ReplayOutcome
from grader.score.verdict import Flag, Model
from grader.written.judgement import Judgement, RunCommand, checks_of
from grader.written.plain_numpy import foreign_import, suspicions
from harness.recipe import ROOT
from harness.written.derivation import PROBLEMS, Array, Inputs, draw_cases
from harness.written.derivation_call import CallResult, Results
from harness.written.derivation_judge import AnswerCheck, judge_answer
from harness.written.exercise import Derivation

# The reference takes 0.6 s of processor, and 32 MiB; it leaves 71 files of 2 MB. The clock is for what sleeps.
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
_OUR_FAULT = 3  # the exit status of the program that calls answers


def judge_derivation(exercise: Derivation, text: str, run: RunCommand) -> Judgement:
    """Judge the text of a derivation; whatever it does ends in a judgement. Raises `Stopped` if the sandbox was."""
    problem, suspicious = PROBLEMS[exercise.problem], suspicions(text)
    cases = draw_cases(problem, text)
    job = {"problem": problem.name, "file": exercise.file, "text": text}
    done = run(
        Command(
            [str(launcher_python()), "-S", "-P", "-m", "harness.written.derivation_call"],
            {"job.json": json.dumps(job).encode()},
            environment={**replay_environment(), "PYTHONPATH": f"{_packages()}:{ROOT}"},
            limits=LIMITS,
            visible=_visible(),
        )
    )
    # A plain answer raises no signals, and cannot end the process with our status.
    ours = not suspicious and (done.status == "SG" or done.exit_code == _OUR_FAULT)
    message = done.message or f"it ended with {done.status}"
    if done.status == "XX" or ours:
        return Judgement(checks={}, fault=f"The grader could not call it ({done.status}): {message}")
    status = done.status
    if status == "OK":
        try:
            results = read_results(done.files, cases)
            message = results.problem
        except (ValueError, KeyError) as error:
            # The process reported success and left something else: only an answer's own code does that.
            status, message = "RE", f"it left no complete result ({type(error).__name__})"
    if status != "OK":
        results = Results(f"The process that called it did not end properly ({status}): {message}")
    return Judgement(
        checks=checks_of(with_imports_judged(judge_answer(problem, cases, results), text)),
        flags=tuple(Flag(id="suspicious code", message=f"{item}.") for item in suspicious[:10]),
        outcomes=(ReplayOutcome(what="answer", status=status, message=message),),
    )


def with_imports_judged(findings: list[AnswerCheck], text: str) -> list[AnswerCheck]:
    """Return the findings on a text, with the imports judged.

    If the text is suspicious, the instructor decides whether it uses only NumPy and does not loop.
    """
    suspicious, foreign = suspicions(text), foreign_import(text)

    def decide(item: AnswerCheck) -> AnswerCheck:
        if item.id == "numpy" and item.points and foreign:
            remedy = "Import only numpy, and math if you need it."
            return replace(item, reason=f"{foreign}.", remedy=remedy, points=0.0)
        if item.id in ("numpy", "loops") and item.points and suspicious:
            reason = (
                f"The file does something unusual for a derivation: {suspicious[0]}. The instructor decides."
            )
            return replace(item, reason=reason, points=None)
        return item

    return [decide(item) for item in findings]


class _CaseReport(Model):
    shapes: dict[str, tuple[int, ...]]
    problems: dict[str, str]
    steps: int
    changed: list[str]


class _Report(Model):
    problem: str
    cases: dict[str, _CaseReport]


def read_results(files: Mapping[str, bytes], cases: Mapping[str, Inputs]) -> Results:
    """Return the results in files, which may hold anything. Raises `ValueError` or `KeyError` if they do."""
    data = files["report.json"]
    if len(data) > MIB:
        raise ValueError("a report of more than 1 MiB")
    report = _Report.model_validate_json(data)
    found = {}
    for case in cases if not report.problem else ():
        item = report.cases[case]
        arrays = {name: _array(files[f"{case}/{name}"], shape) for name, shape in item.shapes.items()}
        problems = {stage: words[:600] for stage, words in item.problems.items()}
        found[case] = CallResult(arrays, problems, item.steps, item.changed)
    return Results(report.problem[:600], found)


def _array(data: bytes, shape: Sequence[int]) -> Array:
    if len(shape) > 8 or any(length < 0 for length in shape) or 8 * math.prod(shape) != len(data):
        raise ValueError("an array of another size than its shape says")
    return np.frombuffer(data, dtype="<f8").reshape(tuple(shape))


@cache
def _packages() -> Path:
    return Path(np.__file__).resolve().parent.parent


@cache
def _visible() -> list[Path]:
    """Return what an answer may see: Python, NumPy with its libraries, and the harness."""
    numpy = [path for path in (_packages() / "numpy", _packages() / "numpy.libs") if path.exists()]
    return [Path(sys.base_prefix), *numpy, ROOT / "harness"]
