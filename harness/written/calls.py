"""Call the functions in a student's answer to a written exercise.

The grader runs this module as a program in its sandbox. The program reads the answer, the calls and the inputs from
`../input/job.json`, and writes the results to `out/report.json`. The sandbox does not contain the right outputs. Exit
status 3 means a bug in trainwreck. The sandbox has only NumPy, so this module imports nothing else.
"""

import json
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray


class WrongForm(Exception):
    """A function returned a value of the wrong form. The message describes the value and the expected form."""


@dataclass
class CallResult:
    """The results of calling every function of an answer once.

    outputs: {name: float64 array}. problems: {name: message about why there is no such output}.
    changed: the names of the inputs that the answer overwrote.
    """

    outputs: dict[str, NDArray[Any]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class CallResults:
    """The results of an answer in each case. If nothing could be called, `problem` says why; otherwise it is ""."""

    problem: str = ""
    cases: Mapping[str, CallResult] = field(default_factory=dict)


@dataclass(frozen=True)
class CallPlan:
    """How an answer is called: the calls as in `judge.toml`, and the names of the results that are compared."""

    file: str
    calls: Sequence[Mapping[str, Any]]
    outputs: Sequence[str]


def call_cases(plan: CallPlan, text: str, cases: Mapping[str, Mapping[str, NDArray[Any]]]) -> CallResults:
    """Call an answer with the inputs of every case and return the results."""
    try:
        with np.errstate(all="ignore"):
            answer = load_answer(text, plan)
            return CallResults(cases={case: call_answer(plan, answer, given) for case, given in cases.items()})
    except WrongForm as error:
        return CallResults(str(error))


def load_answer(source: str, plan: CallPlan) -> ModuleType:
    """Execute the source of an answer and return it as a module.

    Raises `WrongForm` if the source cannot be executed or does not define a function that is called.
    """
    module = ModuleType(Path(plan.file).stem)
    try:
        exec(compile(source, plan.file, "exec"), module.__dict__)  # noqa: S102
    except (Exception, SystemExit) as error:
        raise WrongForm(f"{plan.file} cannot be loaded: {_describe_error(error, plan.file)}") from None
    for call in plan.calls:
        if not callable(getattr(module, call["function"], None)):
            message = f"{plan.file} has no function {call['function']}: keep the function names of the original file"
            raise WrongForm(message)
    return module


def call_answer(plan: CallPlan, answer: ModuleType, inputs: Mapping[str, NDArray[Any]]) -> CallResult:
    """Make every call with copies of the inputs and return the results. Skip a call if an argument is missing."""
    given = {name: np.array(array) for name, array in inputs.items()}
    known: dict[str, Any] = {name: array if array.ndim else array.item() for name, array in given.items()}
    called = CallResult()
    for call in plan.calls:
        function, wanted = call["function"], result_names(call["returns"])
        try:
            arguments = [_argument(one, known) for one in call["arguments"]]
            values = _unpack(function, getattr(answer, function)(*arguments), call["returns"])
            called.outputs |= {name: _array(name, values[name]) for name in wanted if name in plan.outputs}
            known |= values
        except _Missing as missing:
            called.problems |= dict.fromkeys(wanted, called.problems[missing.args[0]])
        except WrongForm as error:
            called.problems |= dict.fromkeys(wanted, str(error))
        except (Exception, SystemExit) as error:
            message = f"{function} raised {_describe_error(error, plan.file)}"
            called.problems |= dict.fromkeys(wanted, message)
    called.changed = [name for name, array in given.items() if not np.array_equal(array, inputs[name], equal_nan=True)]
    return called


class _Missing(Exception):
    """An argument is missing, because an earlier call failed. The first argument of the exception is its name."""


def _argument(named: str | Mapping[str, str], known: Mapping[str, Any]) -> Any:
    if not isinstance(named, str):
        return {key: _argument(name, known) for key, name in named.items()}
    if named not in known:
        raise _Missing(named)
    return known[named]


def result_names(returns: str | Sequence[str] | Mapping[str, str]) -> list[str]:
    """Return the names of the results of one call."""
    if isinstance(returns, str):
        return [returns]
    return [*returns.values()] if isinstance(returns, Mapping) else [*returns]


def _unpack(function: str, returned: object, returns: str | Sequence[str] | Mapping[str, str]) -> dict[str, Any]:
    """Return {name: value} for the value that a function returned. Raises `WrongForm` for another form."""
    if isinstance(returns, str):
        return {returns: returned}
    if isinstance(returns, Mapping):
        expected = "a dictionary with the keys " + ", ".join(f'"{key}"' for key in returns)
        if not isinstance(returned, dict):
            raise WrongForm(f"{function} should return {expected}, but returns {_describe(returned)}")
        if missing := [key for key in returns if key not in returned]:
            raise WrongForm(f"{function} does not return {missing[0]!r}; it should return {expected}")
        return {name: returned[key] for key, name in returns.items()}
    if not isinstance(returned, tuple) or len(returned) != len(returns):
        form = "pair" if len(returns) == 2 else "tuple"
        message = f"{function} should return the {form} ({', '.join(returns)}), but returns {_describe(returned)}"
        raise WrongForm(message)
    return dict(zip(returns, returned, strict=True))


def _describe(value: object) -> str:
    return "nothing" if value is None else f"a value of type {type(value).__name__}"


def _array(name: str, value: object) -> NDArray[Any]:
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
    try:
        cases = {case: {name: np.array(value) for name, value in given.items()} for case, given in job["cases"].items()}
        results = call_cases(CallPlan(**job["plan"]), job["text"], cases)
    except Exception:
        traceback.print_exc()
        return 3
    out.mkdir(exist_ok=True)
    (out / "report.json").write_text(json.dumps(asdict(results), default=np.ndarray.tolist), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
