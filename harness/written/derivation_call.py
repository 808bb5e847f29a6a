"""Call the functions in a student's answer to a derivation exercise.

The grader runs this module as a program in its sandbox. The program reads the name of the problem, the name of the
answer's file and its text from `../input/job.json`, and writes the results to `out/report.json`. The sandbox does not
contain the right outputs. Exit status 3 means a bug in trainwreck.
"""

import json
import sys
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from harness.written.derivation import PROBLEMS, Array, Inputs, Problem, WrongForm, draw_inputs


@dataclass
class CallResult:
    """The results of calling every stage (every function of an answer) once.

    outputs: {name: float64 array}. problems: {stage: message about what went wrong}.
    changed: the names of the inputs that the answer overwrote.
    """

    outputs: dict[str, Array] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class CallResults:
    """The results of an answer in each case. If nothing could be called, `problem` says why; otherwise it is ""."""

    problem: str = ""
    cases: Mapping[str, CallResult] = field(default_factory=dict)


def call_cases(problem: Problem, file: str, text: str, cases: Mapping[str, Inputs]) -> CallResults:
    """Call an answer with the inputs of every case and return the results. Messages call the answer `file`."""
    try:
        with np.errstate(all="ignore"):
            answer = load_answer(text, file, problem)
            return CallResults(cases={case: call_answer(problem, answer, given, file) for case, given in cases.items()})
    except WrongForm as error:
        return CallResults(str(error))


def load_answer(source: str, file: str, problem: Problem) -> ModuleType:
    """Execute the source of an answer and return it as a module. Messages call the answer `file`.

    Raises `WrongForm` if the source cannot be executed or does not define a function of the problem.
    """
    module = ModuleType(file.removesuffix(".py"))
    try:
        exec(compile(source, file, "exec"), module.__dict__)  # noqa: S102
    except (Exception, SystemExit) as error:
        raise WrongForm(f"{file} cannot be loaded: {_describe_error(error, file)}") from None
    for name in problem.stages:
        if not callable(getattr(module, name, None)):
            raise WrongForm(f"{file} has no function {name}: keep the function names of the original file")
    return module


def call_answer(problem: Problem, answer: ModuleType, inputs: Inputs, file: str) -> CallResult:
    """Call every stage with copies of the inputs and return the results; if the first stage fails, call no other."""
    given = {name: np.array(array) for name, array in inputs.items()}
    called, state = CallResult(), dict[str, Any]()
    for name, stage in problem.stages.items():
        try:
            called.outputs |= {key: _array(key, value) for key, value in stage(answer, given, state).items()}
        except WrongForm as error:
            called.problems[name] = str(error)
        except (Exception, SystemExit) as error:
            called.problems[name] = f"{name} raised {_describe_error(error, file)}"
        if next(iter(problem.stages)) in called.problems:
            break
    called.changed = [name for name, array in given.items() if not np.array_equal(array, inputs[name], equal_nan=True)]
    return called


def _array(name: str, value: object) -> Array:
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        raise WrongForm(f"{name} is not an array of numbers but of type {type(value).__name__}")
    return array.astype(np.float64)


def _describe_error(error: BaseException, file: str) -> str:
    """Return a description of an exception, with the line of the answer that raised it."""
    lines = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == file
        and not isinstance(error, SyntaxError)  # the message of a SyntaxError contains the line
    ]
    where = f" ({file}, line {lines[-1]})" if lines else ""
    words = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}{': ' if words else ''}{words}{where}"


def main() -> int:
    """Call the answer with the inputs of every case, write the report, and return the exit status."""
    out = Path("out").resolve()  # before an answer can change the folder
    job = json.loads(Path("../input/job.json").read_text(encoding="utf-8"))
    problem, text = PROBLEMS[job["problem"]], job["text"]
    try:
        results = call_cases(problem, job["file"], text, draw_inputs(problem, text))
    except Exception:
        traceback.print_exc()
        return 3
    out.mkdir(exist_ok=True)
    (out / "report.json").write_text(json.dumps(asdict(results), default=np.ndarray.tolist), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
