"""Calls the functions of an answer in the order of its problem, and keeps what each returned, raised and cost."""

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from harness.written.derivation.counted_builtins import counted_builtins
from harness.written.derivation.problem import Array, Problem, Stage, WrongForm
from harness.written.derivation.step_meter import StepMeter, TooManySteps

# A right answer takes about 500 instructions in all, whatever the sizes; a loop over 100 samples some thousands.
MOST_STEPS = 300_000


@dataclass
class Performance:
    """What came of one call of every stage: arrays of float64 by output; sentences and counts by stage.

    changed: the inputs that the answer wrote into. evaluations: how often `backward` called `forward` or `loss`.
    """

    outputs: dict[str, Array] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    evaluations: int = 0


def load_answer(source: str, file: str, problem: Problem) -> ModuleType:
    """Return the module that a source makes; `file` is its name in tracebacks.

    Raises `WrongForm`, with a sentence, where it cannot be loaded or lacks a function of the problem.
    """
    module = ModuleType(file.removesuffix(".py"))
    module.__dict__["__builtins__"] = counted_builtins()
    try:
        program = compile(source, file, "exec")
        StepMeter(MOST_STEPS).call(partial(exec, program, module.__dict__))
    except TooManySteps:
        raise WrongForm(f"{file} takes more than {MOST_STEPS} instructions of Python to be loaded") from None
    except (Exception, SystemExit) as error:
        raise WrongForm(f"{file} cannot be loaded: {_told(error, file)}") from None
    for name in problem.stages:
        if not callable(getattr(module, name, None)):
            raise WrongForm(f"{file} has no function {name}: keep the names that it was handed out with")
    return module


def perform(problem: Problem, answer: ModuleType, inputs: Mapping[str, Array], file: str) -> Performance:
    """Call every stage with copies of the inputs; none that needs what an earlier one did not give."""
    given = {name: np.array(array) for name, array in inputs.items()}
    done, state = Performance(), dict[str, Any]()
    first = next(iter(problem.stages))
    evaluated = tuple(getattr(answer, name) for name in problem.stages if name != "backward")
    for name, stage in problem.stages.items():
        meter = StepMeter(MOST_STEPS, evaluated)
        try:
            done.outputs |= meter.call(partial(_arrays, stage, answer, given, state))
        except TooManySteps:
            done.problems[name] = (
                f"{name} took more than {MOST_STEPS} instructions of Python, and was stopped"
            )
        except WrongForm as error:
            done.problems[name] = str(error)
        except (Exception, SystemExit) as error:
            done.problems[name] = f"{name} raised {_told(error, file)}"
        done.steps[name] = MOST_STEPS if meter.exceeded else meter.steps
        if name == "backward":
            done.evaluations = meter.entries
        if first in done.problems:
            break
    done.changed = tuple(
        name for name, array in given.items() if not np.array_equal(array, inputs[name], equal_nan=True)
    )
    return done


def _arrays(
    stage: Stage, answer: ModuleType, given: Mapping[str, Array], state: dict[str, Any]
) -> dict[str, Array]:
    """Call a stage. What it returns is made an array while it is counted: an object may put its work off until then."""
    return {output: _array(output, value) for output, value in stage(answer, given, state).items()}


def _array(name: str, value: object) -> Array:
    """Return a value as float64. Raises `WrongForm` for what is no array of real numbers."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        raise WrongForm(f"{name} is no array of numbers but of type {type(value).__name__}")
    return array.astype(np.float64)


def _told(error: BaseException, file: str) -> str:
    """Return an exception as a person reads it, with the line of the answer that it comes from."""
    lines = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == file and not isinstance(error, SyntaxError)  # which tells its own
    ]
    where = f" ({file}, line {lines[-1]})" if lines else ""
    words = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}{': ' if words else ''}{words}{where}"
