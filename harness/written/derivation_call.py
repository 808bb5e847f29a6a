"""Calls the functions of an answer, and counts Python's operations: a count that grows with the data shows a loop.

The count is of bytecode instructions in every Python function that a call enters, NumPy's own included. Unlike a time,
it is the same on every machine with the same Python.

The grader runs this module as a program in its sandbox: `../input/job.json` holds the problem, the file and its text;
`out/report.json` gets the results. The right outputs are not in there. Exit 3 is our fault.
"""

import builtins
import json
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import numpy as np
import numpy._core.arrayprint

from harness.written.derivation import PROBLEMS, Array, Inputs, Problem, WrongForm, draw_cases

# A right answer takes about 500 instructions, whatever the sizes; a loop over 100 samples takes thousands.
MOST_STEPS = 300_000
# Printing an array is a loop of NumPy's own in Python.
_NOT_COUNTED = numpy._core.arrayprint.__file__


@dataclass
class CallResult:
    """What one call of every stage gave: float64 arrays by output, and messages by stage.

    steps: the instructions of all stages. changed: the inputs that the answer wrote into.
    """

    outputs: dict[str, Array] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    steps: int = 0
    changed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Results:
    """What an answer gave in each case; `problem` says why nothing could be called."""

    problem: str = ""
    cases: Mapping[str, CallResult] = field(default_factory=dict)


class TooManySteps(BaseException):
    """A call took more instructions than it may. An answer's `except Exception` does not catch this."""


class StepCounter:
    """Counts the instructions of the calls made through it, and stops a call at `most`."""

    def __init__(self, most: int = MOST_STEPS) -> None:
        self.steps = 0
        self._most = most

    def call(self, function: Callable[[], Any]) -> Any:
        """Return what the function returns. Raises `TooManySteps` above the limit, and what the function raises."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            returned = function()
        finally:
            sys.settrace(before)
        if self.steps > self._most:  # the function caught the exception
            raise TooManySteps
        return returned

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename == _NOT_COUNTED:
            return None
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            self.steps += 1
            if self.steps > self._most:
                raise TooManySteps
        return self._step


def call_cases(problem: Problem, file: str, text: str, cases: Mapping[str, Inputs]) -> Results:
    """Call an answer with the inputs of every case; `file` is its name in messages."""
    try:
        with np.errstate(all="ignore"):
            answer = load_answer(text, file, problem)
            return Results(
                cases={case: call_answer(problem, answer, given, file) for case, given in cases.items()}
            )
    except WrongForm as error:
        return Results(str(error))


def load_answer(source: str, file: str, problem: Problem) -> ModuleType:
    """Run a source and return it as a module; `file` is its name in error messages.

    Raises `WrongForm` if it cannot be loaded or lacks a function of the problem.
    """
    module = ModuleType(file.removesuffix(".py"))
    module.__dict__["__builtins__"] = _counted_builtins()
    try:
        program = compile(source, file, "exec")
        StepCounter().call(partial(exec, program, module.__dict__))
    except TooManySteps:
        raise WrongForm(f"{file} takes more than {MOST_STEPS} instructions of Python to load") from None
    except (Exception, SystemExit) as error:
        raise WrongForm(f"{file} cannot be loaded: {_described(error, file)}") from None
    for name in problem.stages:
        if not callable(getattr(module, name, None)):
            raise WrongForm(f"{file} has no function {name}: keep the names of the original file")
    return module


def call_answer(problem: Problem, answer: ModuleType, inputs: Inputs, file: str) -> CallResult:
    """Call every stage with copies of the inputs; stop after the first stage if it fails."""
    given = {name: np.array(array) for name, array in inputs.items()}
    called, state, counter = CallResult(), dict[str, Any](), StepCounter()
    for name, stage in problem.stages.items():

        def outputs(stage: Any = stage) -> dict[str, Array]:
            # Converted while counting: an object can put its work off until it is converted.
            return {key: _array(key, value) for key, value in stage(answer, given, state).items()}

        try:
            called.outputs |= counter.call(outputs)
        except TooManySteps:
            called.problems[name] = (
                f"the calls up to {name} take more than {MOST_STEPS} instructions of Python"
            )
        except WrongForm as error:
            called.problems[name] = str(error)
        except (Exception, SystemExit) as error:
            called.problems[name] = f"{name} raised {_described(error, file)}"
        if next(iter(problem.stages)) in called.problems:
            break
    called.steps = counter.steps
    called.changed = [
        name for name, array in given.items() if not np.array_equal(array, inputs[name], equal_nan=True)
    ]
    return called


def _array(name: str, value: object) -> Array:
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        raise WrongForm(f"{name} is not an array of numbers but of type {type(value).__name__}")
    return array.astype(np.float64)


def _described(error: BaseException, file: str) -> str:
    """Return an exception in words, with the line of the answer that raised it."""
    lines = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == file and not isinstance(error, SyntaxError)  # its text has the line
    ]
    where = f" ({file}, line {lines[-1]})" if lines else ""
    words = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}{': ' if words else ''}{words}{where}"


def _counted_builtins() -> dict[str, Any]:
    """Return Python's builtins; those that loop in C get their items from a loop in Python, which is counted."""
    iterables = {"map": slice(1, None), "filter": slice(1, None)}
    names = ("map", "filter", "sum", "min", "max", "any", "all", "sorted")
    return {**vars(builtins), **{name: _counted(name, iterables.get(name, slice(0, 1))) for name in names}}


def _counted(name: str, iterables: slice) -> Callable[..., Any]:
    function = getattr(builtins, name)

    def counted(*arguments: Any, **named: Any) -> Any:
        if name in ("min", "max") and len(arguments) > 1:  # of the arguments themselves
            return function(*arguments, **named)
        given = list(arguments)
        given[iterables] = [[item for item in items] for items in given[iterables]]  # noqa: C416
        return function(*given, **named)

    return counted


def main() -> int:
    """Call the answer with every case of the job."""
    out = Path("out").resolve()  # before an answer can change the folder
    job = json.loads(Path("../input/job.json").read_text(encoding="utf-8"))
    problem, text = PROBLEMS[job["problem"]], job["text"]
    try:
        results = call_cases(problem, job["file"], text, draw_cases(problem, text))
    except Exception:
        traceback.print_exc()
        return 3
    out.mkdir(exist_ok=True)
    (out / "report.json").write_text(json.dumps(asdict(results), default=np.ndarray.tolist), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
