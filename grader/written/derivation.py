"""Judge a derivation: call it in the sandbox with inputs that its author cannot know, and judge what it returns.

Only arrays and counts come back from the sandbox. The right outputs and all comparisons are in this process.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from grader.replay.replayer import replay_environment
from grader.sandbox import MIB, Command, Interpreter, Limits, base_python
from grader.score.verdict import Flag, Model
from grader.written.judgement import Judgement, RunCommand, checks_of
from grader.written.plain_numpy import foreign_import, suspicions
from harness.recipe import ROOT
from harness.written.derivation import PROBLEMS, draw_cases
from harness.written.derivation_call import CallResult, Results
from harness.written.derivation_judge import AnswerCheck, judge_answer
from harness.written.exercise import Derivation

# The reference takes 0.6 s of processor, and 32 MiB; it leaves 0.6 MB.
LIMITS = Limits(
    seconds=30,
    wall_seconds=240,
    memory_bytes=512 * MIB,
    processes=16,
    file_bytes=8 * MIB,
    scratch_bytes=64 * MIB,
    scratch_files=300,
    output_bytes=MIB,
    result_bytes=16 * MIB,
)
_SCRIPT = ROOT / "harness" / "written" / "derivation_call.py"
_OUR_FAULT = 3  # the exit status of the program that calls answers


def judge_derivation(exercise: Derivation, text: str, run: RunCommand) -> Judgement:
    """Judge the text of a derivation; whatever it does ends in a judgement. Raises `Stopped` if the sandbox was."""
    problem, suspicious = PROBLEMS[exercise.problem], suspicions(text)
    cases = draw_cases(problem, text)
    job = {"problem": problem.name, "file": exercise.file, "text": text}
    done = run(
        Command(
            _SCRIPT,
            _interpreter(),
            {"job.json": json.dumps(job).encode()},
            LIMITS,
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
            results = read_results(done.files["report.json"], cases)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            # The process reported success and left something else: only an answer's own code does that.
            status, message = "RE", f"it left no complete result ({type(error).__name__})"
    if status != "OK":
        results = Results(f"The process that called it did not end properly ({status}): {message}")
    return Judgement(
        checks=checks_of(with_imports_judged(judge_answer(problem, cases, results), text)),
        flags=tuple(Flag(id="suspicious code", message=f"{item}.") for item in suspicious[:10]),
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


class _Case(Model):
    outputs: dict[str, Any]
    problems: dict[str, str]
    steps: int
    changed: list[str]


class _Report(Model):
    problem: str
    cases: dict[str, _Case]


def read_results(data: bytes, cases: Iterable[str]) -> Results:
    """Return the results in a report, which may hold anything.

    Raises `ValueError`, `TypeError`, `KeyError` or `OverflowError` if it holds no results of these cases.
    """
    if len(data) > LIMITS.file_bytes:
        raise ValueError("a report that is too large")
    report = _Report.model_validate_json(data)
    found = {}
    for case in cases if not report.problem else ():
        item = report.cases[case]
        arrays = {name: np.array(values, dtype=np.float64) for name, values in item.outputs.items()}
        problems = {stage: words[:600] for stage, words in item.problems.items()}
        found[case] = CallResult(arrays, problems, item.steps, item.changed)
    return Results(report.problem[:600], found)


@cache
def _packages() -> Path:
    return Path(np.__file__).resolve().parent.parent


@cache
def _interpreter() -> Interpreter:
    """Return the interpreter of answers. They see Python, NumPy with its libraries, and the harness."""
    numpy = [path for path in (_packages() / "numpy", _packages() / "numpy.libs") if path.exists()]
    return Interpreter(
        words=(str(base_python()), "-S", "-P"),
        environment={**replay_environment(), "PYTHONPATH": f"{_packages()}:{ROOT}"},
        visible=[Path(sys.base_prefix), *numpy, ROOT / "harness"],
        preload=_SCRIPT,
    )
