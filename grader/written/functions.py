"""Judge the functions of an answer: call them in the sandbox, with inputs that the student cannot know.

The sandbox returns only arrays. The grader's own process calls the solution for the right outputs, and compares them.
"""

import ast
import json
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from grader.replay.replayer import replay_environment
from grader.sandbox import MIB, Interpreter, Limits, SandboxCommand, base_python
from grader.score.verdict import Flag
from grader.syntax.program import Unparsable, parse_experiment
from grader.written.judgement import Judgement, RunCommand, checks_of
from grader.written.known_answers import reference_of
from harness.formats.toml_file import StrictModel
from harness.recipes.suite import PACKAGES
from harness.written.calls import CallResult, CallResults
from harness.written.comparison import AnswerCheck, foreign_imports, judge_answer, plan_of
from harness.written.exercise import FunctionExercise
from harness.written.inputs import draw_inputs

# The reference solution needs 0.6 s of processor time and 32 MiB of memory, and writes 0.6 MB.
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
_SCRIPT = PACKAGES / "harness" / "written" / "calls.py"
_OUR_FAULT = 3  # with this exit status, the program that calls the answer reports its own failure
# Names that give access to other modules, to files, or to the frame or class of an object. Also names for complex
# numbers, because a complex-step derivative would do the student's work.
_UNUSUAL = re.compile(
    r"__(?!init__|name__)|(exec|eval|compile|getattr|setattr|globals|locals|vars|open|breakpoint|input|imag"
    r"|complex\w*|iscomplex|ctypes\w*|load\w*|save\w*|from(file|regex)|tofile|memmap|dumps?|SystemExit|testing)$"
    r"|(f|gi|tb|cr|ag|co)_"
)


def judge_functions(exercise: FunctionExercise, text: str, run: RunCommand) -> Judgement:
    """Judge the text of an answer, which may be hostile. Raises `SandboxStopped` if the sandbox was stopped."""
    unusual, plan = suspicions(text), plan_of(exercise)
    cases = draw_inputs(exercise, text)
    given = {case: {name: array.tolist() for name, array in inputs.items()} for case, inputs in cases.items()}
    job = json.dumps({"plan": asdict(plan), "text": text, "cases": given}).encode()
    done = run(SandboxCommand(_SCRIPT, _interpreter(), {"job.json": job}, LIMITS))
    # An answer without suspicious code can neither raise a signal nor exit with this status, so the grader has failed.
    ours = not unusual and (done.status == "SG" or done.exit_code == _OUR_FAULT)
    message = done.message or f"it ended with {done.status}"
    if done.status == "XX" or ours:
        return Judgement(checks={}, fault=f"The grader could not run the answer ({done.status}): {message}")
    status = done.status
    if status == "OK":
        try:
            results = read_results(done.files["report.json"], cases)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            # The process reported success, but wrote no valid report. Only the code of the answer can cause this.
            status, message = "RE", f"it left no complete result ({type(error).__name__})"
    if status != "OK":
        results = CallResults(f"The process that called your answer did not finish ({status}): {message}")
    findings = judge_answer(exercise, text, cases, results, reference_of(exercise, cases, mistakes=False))
    if results.cases and any(item.points == 0 for item in findings):  # most answers are right, and need no remedy
        findings = judge_answer(exercise, text, cases, results, reference_of(exercise, cases))
    return Judgement(
        checks=checks_of(with_imports_judged(exercise, findings, text)), flags=tuple(map(_flag, unusual[:10]))
    )


def _flag(clause: str) -> Flag:
    what = "line" if clause.startswith("line ") else "file"
    return Flag(id="not checked by machine", message=f"{clause}. Your instructor looks at this {what}.")


def with_imports_judged(exercise: FunctionExercise, findings: list[AnswerCheck], text: str) -> list[AnswerCheck]:
    """Judge the item about imports, and return all findings. If the code is unusual, the instructor decides."""
    unusual, imports = suspicions(text), _imports(text)
    about = {(item.criterion, item.name) for item in exercise.item if item.compare == "imports"}

    def decide(item: AnswerCheck) -> AnswerCheck:
        if (item.criterion, item.id) not in about or not item.points:
            return item
        if imports:
            remedy = "Import only numpy and, if you need it, math."
            return replace(item, reason=f"L{imports[0][1:]}.", remedy=remedy, points=0.0)
        if unusual:
            reason = f"The file contains code that is unusual here: {unusual[0]}. The instructor decides."
            return replace(item, reason=reason, points=None)
        return item

    return [decide(item) for item in findings]


def _imports(text: str) -> list[str]:
    try:
        return [f"line {line} imports {name[:80]}" for line, name in foreign_imports(parse_experiment(text))]
    except Unparsable:
        return []


@lru_cache(maxsize=256)
def suspicions(text: str) -> tuple[str, ...]:
    """Return a clause for each expression that could replace the derivation or disturb the calling program."""
    try:
        tree = parse_experiment(text)
    except Unparsable as error:
        return (f"the file cannot be read ({error})",)
    found = _imports(text)
    for node in ast.walk(tree):
        name = getattr(node, "attr", None) or getattr(node, "id", None)
        is_complex = isinstance(node, ast.Constant) and isinstance(node.value, complex)
        if is_complex or (isinstance(name, str) and _UNUSUAL.match(name)):
            found.append(f"line {getattr(node, 'lineno', 0)} uses {str(name or 'complex numbers')[:80]}")
    return tuple(found)


class _AnswerCase(StrictModel):
    outputs: dict[str, Any]
    problems: dict[str, str]
    changed: list[str]


class _AnswerReport(StrictModel):
    problem: str
    cases: dict[str, _AnswerCase]


def read_results(data: bytes, cases: Iterable[str]) -> CallResults:
    """Return the results in an untrusted report.

    Raises `ValueError`, `TypeError`, `KeyError` or `OverflowError` if the report has no valid results for `cases`.
    """
    if len(data) > LIMITS.file_bytes:
        raise ValueError("a report that is too large")
    report = _AnswerReport.model_validate_json(data)
    found = {}
    for case in cases if not report.problem else ():
        item = report.cases[case]
        arrays = {name: np.array(values, dtype=np.float64) for name, values in item.outputs.items()}
        problems = {stage: words[:600] for stage, words in item.problems.items()}
        found[case] = CallResult(arrays, problems, item.changed)
    return CallResults(report.problem[:600], found)


@cache
def _packages() -> Path:
    return Path(np.__file__).resolve().parent.parent


@cache
def _interpreter() -> Interpreter:
    """Return the interpreter that runs answers: only Python, NumPy and the harness are visible in it."""
    numpy = [path for path in (_packages() / "numpy", _packages() / "numpy.libs") if path.exists()]
    return Interpreter(
        words=(str(base_python()), "-S", "-P"),
        environment={**replay_environment(), "PYTHONPATH": f"{_packages()}:{PACKAGES}"},
        visible=[Path(sys.base_prefix), *numpy, PACKAGES / "harness"],
        preload=_SCRIPT,
    )
