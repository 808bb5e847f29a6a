"""The process in which `make check` calls a derivation: it reads one job from standard input, and tells by a pipe."""

import ast
import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from harness.submission.check_item import CheckItem, failed, passed
from harness.written.derivation import PROBLEMS
from harness.written.derivation.finite_differences import central_differences, relative_error
from harness.written.derivation.imports import foreign_imports
from harness.written.derivation.performance import Performance, load_answer, perform
from harness.written.derivation.problem import Array, Problem, WrongForm

# No two alike, so that a product in the wrong order does not fit; and a batch that is larger.
_SIZES = {"B": 4, "D": 5, "H": 7, "C": 3}
_LARGE, _LARGER = {**_SIZES, "B": 64}, {**_SIZES, "B": 192}
# The bound of the exercise; central differences of a loss near 1 are right to about 1e-9.
TOLERANCE = 1e-6


def self_check(problem: Problem, source: str, file: str) -> Iterator[CheckItem]:
    """Yield the judgement on imports, form, shapes, the forward pass, each gradient, and the count of operations."""
    try:
        answer = load_answer(source, file, problem)
    except WrongForm as error:
        yield failed("answer: loads", f"{error}.")
        return
    yield _imports(source, file)
    rng = np.random.default_rng(0)
    inputs = problem.draw(rng, _SIZES)

    def called(given: Mapping[str, Array]) -> Performance:
        return perform(problem, answer, given, file)

    done = called(inputs)
    for stage in problem.stages:
        if stage in done.problems:
            yield failed(f"answer: {stage}", f"{done.problems[stage]}.")
    yield from _shapes(problem, inputs, done)
    if done.changed:
        yield failed("inputs", f"{done.changed[0]} was written into: work on a copy of it.")
    yield from _forward(problem, inputs, done)
    if all(name in done.outputs for name in problem.outputs):
        yield from _gradients(problem, called, inputs, done)
        yield _loops(*(called(problem.draw(rng, sizes)) for sizes in (_LARGE, _LARGER)))


def _imports(source: str, file: str) -> CheckItem:
    found = next(foreign_imports(ast.parse(source)), None)
    if found is None:
        return passed("imports", "NumPy alone.")
    return failed("imports", f"{file}, line {found[0]} imports {found[1]}: NumPy alone may be used.")


def _shapes(problem: Problem, inputs: Mapping[str, Array], done: Performance) -> Iterator[CheckItem]:
    for name, array in done.outputs.items():
        wanted = problem.shape(name, inputs)
        if array.shape != wanted:
            symbols = ", ".join(problem.outputs[name]) or "one number"
            yield failed(f"shape: {name}", f"it is {array.shape}, and must be {wanted} ({symbols}).")
        else:
            yield passed(f"shape: {name}", f"{wanted}.")


def _forward(problem: Problem, inputs: Mapping[str, Array], done: Performance) -> Iterator[CheckItem]:
    for name, right in problem.formulas(inputs).items():
        if name in done.outputs and done.outputs[name].shape == problem.shape(name, inputs):
            yield _compared(
                f"value: {name}", name, done.outputs[name], np.asarray(right), "the formula of the docstring"
            )


def _compared(item: str, name: str, found: Array, right: Array, by: str) -> CheckItem:
    off = relative_error(found, right)
    if off < TOLERANCE:
        return passed(item, f"it agrees with {by} ({off:.1e}).")
    if found.shape != right.shape:
        return failed(item, "it has another shape than what it is the gradient of.")
    distance = np.abs(np.nan_to_num(found - right, nan=np.inf))
    place = np.unravel_index(np.argmax(distance), right.shape)
    where = name + "".join(f"[{index}]" for index in place)
    return failed(item, f"at {where} it is {found[place]:.6g}, and by {by} {right[place]:.6g}.")


def _gradients(
    problem: Problem,
    called: Callable[[Mapping[str, Array]], Performance],
    inputs: Mapping[str, Array],
    done: Performance,
) -> Iterator[CheckItem]:
    def objective(given: Mapping[str, Array]) -> float:
        outputs = called(given).outputs
        try:
            return problem.objective(outputs, given)
        except (KeyError, TypeError, ValueError):  # it raised there, or has another shape
            return float("nan")

    for output, name in problem.gradients.items():
        right = central_differences(objective, inputs, name)
        by = "finite differences of your own forward pass"
        yield _compared(f"gradient: {name}", name, done.outputs[output], right, by)


def _loops(large: Performance, larger: Performance) -> CheckItem:
    more = _LARGER["B"] - _LARGE["B"]
    for stage in large.steps:
        grown = larger.steps.get(stage, 0) - large.steps[stage]
        if grown >= more:
            return failed(
                "vectorized",
                f"{stage} takes {grown} more instructions of Python for {more} more samples: it loops over them.",
            )
    return passed("vectorized", "no more instructions of Python for a larger batch.")


def main(descriptor: int) -> None:
    """Judge the answer of the job, and write the items as JSON."""
    os.set_inheritable(descriptor, False)
    job = json.loads(sys.stdin.buffer.read())
    items = [
        dataclasses.asdict(item) for item in self_check(PROBLEMS[job["problem"]], job["source"], job["file"])
    ]
    with os.fdopen(descriptor, "w", encoding="utf-8") as pipe:
        json.dump(items, pipe)


if __name__ == "__main__":
    main(int(sys.argv[1]))
