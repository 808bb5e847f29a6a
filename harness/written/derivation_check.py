"""`make check` of a derivation: a child process calls it and compares gradients with differences of its loss."""

import ast
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from harness.canonical_setup import run_environment
from harness.submission.check_run import CheckItem, failed, passed
from harness.written.derivation import (
    PROBLEMS,
    SPECIAL_CASES,
    Array,
    Inputs,
    Problem,
    WrongForm,
    central_differences,
    foreign_imports,
    relative_error,
    worst_entry,
)
from harness.written.derivation_call import Called, call_answer, load_answer, looping_stage
from harness.written.exercise import Derivation

# All sizes differ, so that a product in the wrong order does not fit.
SIZES = {"B": 4, "D": 5, "H": 7, "C": 3}
# In both, NumPy takes its path for large arrays; in the second, every dimension is larger by at least GROWN.
LARGE = {"B": 64, "D": 24, "H": 32, "C": 16}
LARGER = {"B": 192, "D": 48, "H": 72, "C": 40}
GROWN = 24
# Central differences of a loss near 1 are right to about 1e-9.
TOLERANCE = 1e-6


def derivation_items(exercise: Derivation, answer: Path, source: str) -> list[CheckItem]:
    """Judge an answer by what needs no knowledge of the right gradients. It runs in a child process."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as results:
        try:
            # What the answer prints goes to standard error: standard output belongs to the command.
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "harness.written.derivation_check", str(writing)],
                env=run_environment("portable"),
                stdin=subprocess.PIPE,
                stdout=2,
                pass_fds=(writing,),
            )
        finally:
            os.close(writing)
        try:
            job = {"problem": exercise.problem, "source": source, "file": str(answer)}
            process.communicate(json.dumps(job).encode())
        except BaseException:
            process.kill()
            process.wait()
            raise
        found = results.read()
    try:
        return [CheckItem(**item) for item in json.loads(found)]
    except ValueError:
        message = f"{answer} ended its process, with status {process.returncode}: remove the call that exits."
        return [failed("answer: runs", message)]


def self_check(problem: Problem, source: str, file: str) -> Iterator[CheckItem]:
    """Yield the judgement on imports, shapes, the forward pass, each gradient, loops, and special inputs."""
    # Before it is loaded: torch alone takes more instructions to import than an answer may take.
    if foreign := next(foreign_imports(ast.parse(source)), None):
        yield failed("imports", f"{file}, line {foreign[0]} imports {foreign[1]}: you may use only NumPy.")
        return
    try:
        answer = load_answer(source, file, problem)
    except WrongForm as error:
        yield failed("answer: loads", f"{error}.")
        return
    yield passed("imports", "Only NumPy.")

    def call(given: Inputs) -> Called:
        return call_answer(problem, answer, given, file)

    rng = np.random.default_rng(0)
    inputs = problem.draw(rng, SIZES)
    called = call(inputs)
    for stage, message in called.problems.items():
        yield failed(f"answer: {stage}", f"{message}.")
    yield from _shapes(problem, inputs, called)
    if called.changed:
        yield failed("inputs", f"Your code writes into {called.changed[0]}: work on a copy of it.")
    for name, right in problem.formulas(inputs).items():
        if name in called.outputs:
            found, by = called.outputs[name], "the formula of the docstring"
            yield _compared(f"value: {name}", name, found, np.asarray(right), by)
    if all(name in called.outputs for name in problem.outputs):

        def objective(given: Inputs) -> float:
            try:
                return problem.objective(call(given).outputs, given)
            except (KeyError, TypeError, ValueError):  # it raised there, or returned another shape
                return float("nan")

        for output, name in problem.gradients.items():
            right = central_differences(objective, inputs, name)
            by = "finite differences of your own forward pass"
            yield _compared(f"gradient: {name}", name, called.outputs[output], right, by)
        large, larger = (call(problem.draw(rng, sizes)) for sizes in (LARGE, LARGER))
        loop = looping_stage(large, larger, GROWN)
        yield failed("loops", f"{loop}: it loops over them.") if loop else passed("loops", "There is none.")
        yield from _specials(problem, call, rng)


def _shapes(problem: Problem, inputs: Inputs, called: Called) -> Iterator[CheckItem]:
    for name, array in called.outputs.items():
        right = problem.shape(name, inputs)
        if array.shape != right:
            symbols = ", ".join(problem.outputs[name]) or "one number"
            yield failed(f"shape: {name}", f"It is {array.shape} and must be {right} ({symbols}).")
        else:
            yield passed(f"shape: {name}", f"{right}.")


def _compared(item: str, name: str, found: Array, right: Array, by: str) -> CheckItem:
    off = relative_error(found, right)
    if off < TOLERANCE:
        return passed(item, f"It agrees with {by} ({off:.1e}).")
    if found.shape != right.shape:
        return failed(item, f"Its shape is {found.shape} and must be {right.shape}.")
    return failed(item, f"By {by}, {worst_entry(name, found, right)}.")


def _close(found: Array, right: Array) -> bool:
    return relative_error(found, right) < TOLERANCE


def _specials(
    problem: Problem, call: Callable[[Inputs], Called], rng: np.random.Generator
) -> Iterator[CheckItem]:
    """Yield one item for each special case; only the forward pass can be compared, and only with finite formulas."""
    for case, inputs in problem.special(rng, SIZES).items():
        called = call(inputs)
        with np.errstate(all="ignore"):
            right = {name: np.asarray(value) for name, value in problem.formulas(inputs).items()}
        message = next((f"{words}." for words in called.problems.values()), "")
        for name, array in called.outputs.items():
            if not np.isfinite(array).all():
                message = message or f"{name} is not finite."
            elif name in right and np.isfinite(right[name]).all() and not _close(array, right[name]):
                message = message or f"{name} is not what the formula of the docstring gives."
        item, title = f"special: {case}", SPECIAL_CASES[case]
        if message:
            yield failed(item, f"With {title}: {message}")
        else:
            yield passed(item, f"With {title}, everything is finite. The grader also checks the gradients.")


def main(descriptor: int) -> None:
    """Judge the answer of the job on standard input, and write the items as JSON to a file descriptor."""
    os.set_inheritable(descriptor, False)
    job = json.loads(sys.stdin.buffer.read())
    items = [
        dataclasses.asdict(item) for item in self_check(PROBLEMS[job["problem"]], job["source"], job["file"])
    ]
    with os.fdopen(descriptor, "w", encoding="utf-8") as pipe:
        json.dump(items, pipe)


if __name__ == "__main__":
    main(int(sys.argv[1]))
