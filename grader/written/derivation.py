"""Judges a derivation: calls it in the sandbox with inputs that its author cannot know, and checks what it returns.

Only arrays and counts come back from the sandbox. The right outputs and all comparisons are in this process.
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import ValidationError

from grader.replay.inside import FOLDER as INSIDE
from grader.replay.replayer import replay_environment
from grader.sandbox import MIB, Command, Limits, SandboxResult, Status, launcher_python
from grader.score.exhibits import ReplayOutcome
from grader.score.verdict import Check, Criterion, Flag, Model, full, lost, open_check
from grader.written.derivation_cases import ORDINARY, RIGHT, TITLES, draw_cases, packed
from grader.written.judgement import Judgement, Run
from grader.written.plain_numpy import doubts, foreign_import
from harness.recipe import ROOT
from harness.written.derivation import PROBLEMS, Array, Inputs, Problem, relative_error, worst_entry
from harness.written.derivation_call import Called, looping_stage
from harness.written.derivation_check import GROWN
from harness.written.exercise import Derivation

TOLERANCE = 1e-6  # as the exercises say
# Errors of right answers in float64 stay below 4e-15, forward and backward; those of central differences, at the best
# step, are above 8e-12. A gradient that is much less exact than the forward pass was not derived.
EXACT, DERIVED = 1e-13, 1e-12
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
_OUR_FAULT = 3  # the exit status of `inside/derive.py`


class Special(NamedTuple):
    """A check of one special case: its place in the rubric, and the outputs that must be right in it."""

    criterion: Criterion
    id: str
    case: str
    outputs: tuple[str, ...]
    remedy: str


_STABLE = "Subtract the largest logit before exp, and write log softmax as z - max - log(sum(exp(z - max)))."
_MLP_GRADIENTS = ("dW1", "db1", "dW2", "db2", "dx")
_ZERO = "Mask the gradient where z1, the input of the ReLU, is above 0, and only there."
SPECIALS: Mapping[str, tuple[Special, ...]] = {
    "mlp": (
        Special("forward", "stable", "huge", ("loss",), _STABLE),
        Special("gradients", "zeros", "zeros", ("dW1", "db1", "dx"), _ZERO),
        Special("gradients", "stable", "huge", _MLP_GRADIENTS, _STABLE),
    ),
    "layernorm": (
        Special("forward", "far", "far", ("out",), "Subtract the mean first, and square what is left."),
        Special("gradients", "flat", "flat", ("dx",), "Add eps to the variance, under the root."),
    ),
}


@dataclass(frozen=True)
class AnswerRun:
    """How the answer's process ended. `problem` says why it called nothing; otherwise `cases` are there."""

    status: Status
    message: str = ""
    exit_code: int | None = None
    problem: str = ""
    cases: Mapping[str, Called] = field(default_factory=dict)


def judge_derivation(exercise: Derivation, text: str, run: Run) -> Judgement:
    """Judge the text of a derivation. Raises `Stopped` if the sandbox was stopped."""
    problem, doubtful = PROBLEMS[exercise.problem], doubts(text)
    cases = draw_cases(problem, text)
    done = run_answer(problem, exercise.file, text, cases, run)
    # A plain answer raises no signals, and cannot end the process with our status.
    ours = not doubtful and (done.status == "SG" or done.exit_code == _OUR_FAULT)
    if done.status == "XX" or ours:
        return Judgement(checks={}, fault=f"The grader could not call it ({done.status}): {done.message}")
    return judge_run(problem, text, cases, done)


def judge_run(problem: Problem, text: str, cases: Mapping[str, Inputs], done: AnswerRun) -> Judgement:
    """Judge what an answer returned: a pure function."""
    judge = _Judge(problem, text, cases, done.cases)
    checks: dict[Criterion, tuple[Check, ...]] = {
        "form": judge.form(),
        "forward": judge.forward(),
        "gradients": judge.gradients(),
        "vectorization": (judge.loops(),),
    }
    if not done.cases:
        reason = (
            done.problem or f"The process that called it did not end properly ({done.status}): {done.message}"
        )
        checks = {name: tuple(_nothing(check, f"{reason}.") for check in of) for name, of in checks.items()}
    return Judgement(
        checks=checks,
        flags=tuple(Flag(id="suspicious code", message=f"{item}.") for item in doubts(text)[:10]),
        outcomes=(ReplayOutcome(what="answer", status=done.status, message=done.message or done.problem),),
    )


def _nothing(check: Check, reason: str) -> Check:
    return lost(check.id, check.title, 1, reason, "Hand in a file for which make check finds right outputs.")


def _sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:]}."


class _Judge:
    def __init__(
        self, problem: Problem, text: str, cases: Mapping[str, Inputs], called: Mapping[str, Called]
    ) -> None:
        self.problem = problem
        self.text = text
        self.cases = cases
        self.called = {case: called.get(case, Called()) for case in cases}
        self.right = {case: RIGHT[problem.name](inputs) for case, inputs in cases.items()}

    def error(self, output: str, case: str, power: int = 0) -> float:
        """Return the relative error of an output against batch size ** power times what is right."""
        found = self.called[case].outputs.get(output)
        scale = float(len(self.cases[case]["x"])) ** power
        return float("inf") if found is None else relative_error(found, self.right[case][output] * scale)

    def bound(self, output: str) -> float:
        """Return the bound on the error of an output in the ordinary cases."""
        return DERIVED if self.exact and output in self.problem.gradients else TOLERANCE

    @cached_property
    def exact(self) -> bool:
        """Whether the forward pass is as exact as float64 allows."""
        forward = self.problem.outputs.keys() - self.problem.gradients.keys()
        return all(self.error(output, case) < EXACT for output in forward for case in ORDINARY)

    @cached_property
    def powers(self) -> Mapping[str, int | None]:
        """For each output the power of the batch size by which it is too large; None if it is wrong otherwise.

        0 is right, 1 misses the division by the batch size, -1 divides twice.
        """
        powers = (0, 1, -1) if self.problem.batch_mean else (0,)
        return {
            output: next(
                (
                    p
                    for p in powers
                    if all(self.error(output, case, p) < self.bound(output) for case in ORDINARY)
                ),
                None,
            )
            for output in self.problem.outputs
        }

    def is_right(self, output: str) -> bool:
        """Say whether an output is right in all ordinary cases, up to the division by the batch size."""
        return self.powers[output] is not None

    def name(self, output: str) -> str:
        """Return the name of an output for students."""
        given = self.problem.gradients.get(output)
        return output if given is None else f"the gradient of {given}"

    def form(self) -> tuple[Check, ...]:
        """Return the checks of imports, shapes and a second call; they count only if some output is right."""
        checks = (self._numpy(), self._shapes(), self._repeats())
        if any(map(self.is_right, self.problem.outputs)):
            return checks
        return tuple(_nothing(check, "No output is right yet, so this does not count.") for check in checks)

    def _numpy(self) -> Check:
        id, title = "numpy", "It uses only NumPy"
        if foreign := foreign_import(self.text):
            return lost(id, title, 1, _sentence(foreign), "Import only numpy, and math if you need it.")
        if found := doubts(self.text):
            reason = f"The file does something unusual for a derivation: {found[0]}. The instructor decides."
            return open_check(id, title, 1, reason)
        return full(id, title, 1, "It imports nothing else.")

    def _shapes(self) -> Check:
        id, title = "shapes", "Every output has its shape"
        wrong = [
            output
            for output in self.problem.outputs
            for shape in [self.problem.shape(output, self.cases["small"])]
            if output not in self.called["small"].outputs
            or self.called["small"].outputs[output].shape != shape
        ]
        if not wrong:
            return full(id, title, 1, "As the docstrings say.")
        reason = f"Missing, or of another shape: {', '.join(map(self.name, wrong))}."
        share = 1 - len(wrong) / len(self.problem.outputs)
        return lost(id, title, 1, reason, "Compare with the docstrings; make check shows each.", points=share)

    def _repeats(self) -> Check:
        id, title = "repeats", "A second call returns the same, and inputs do not change"
        if changed := sorted({name for called in self.called.values() for name in called.changed}):
            return lost(id, title, 1, f"It writes into {changed[0][:80]}.", "Work on a copy: z = x.copy().")
        again = self.called["again"].outputs
        for output, array in self.called["small"].outputs.items():
            if output not in again or not np.array_equal(array, again[output], equal_nan=True):
                reason = f"A second call with the same inputs returns another value of {output[:80]}."
                return lost(id, title, 1, reason, "Keep nothing between calls except the cache.")
        return full(id, title, 1, "A second call with the same inputs returns the same bytes.")

    def forward(self) -> tuple[Check, ...]:
        """Return the checks of the forward pass."""
        id, title = "values", "The forward pass is right"
        outputs = [output for output in self.problem.outputs if output not in self.problem.gradients]
        wrong = [output for output in outputs if not self.is_right(output)]
        if not wrong:
            return (full(id, title, 1, f"{' and '.join(outputs)}: right."), *self._specials("forward"))
        reason = " ".join(self._why(output) for output in wrong)
        remedy = "Write each formula of the docstring as one line."
        share = 1 - len(wrong) / len(outputs)
        return (lost(id, title, 1, reason, remedy, points=share), *self._specials("forward"))

    def gradients(self) -> tuple[Check, ...]:
        """Return a check for each gradient, one for the mean over the batch, and those of special cases."""
        checks = []
        for output, name in self.problem.gradients.items():
            title = f"The gradient of {name}"
            if self.is_right(output):
                checks.append(full(name, title, 1, f"Right to {self.bound(output):g}."))
            else:
                remedy = (
                    "Write down the shapes of all factors, then compare with finite differences (make check)."
                )
                checks.append(lost(name, title, 1, self._why(output), remedy))
        mean = (self._mean(),) if self.problem.batch_mean else ()
        return (*checks, *mean, *self._specials("gradients"))

    def _mean(self) -> Check:
        id, title = "mean", "The loss and its gradients are means over the batch"
        remedy = "Divide by the batch size once, where the gradient begins: at the logits."
        if not any(map(self.is_right, self.problem.gradients)):
            return lost(id, title, 1, "No gradient is right, whatever it is divided by.", remedy)
        for output, power in self.powers.items():
            if power:
                what = "is not divided by the batch size" if power == 1 else "is divided by it twice"
                return lost(id, title, 1, _sentence(f"{self.name(output)} {what}"), remedy)
        return full(id, title, 1, "For one sample, a few and many.")

    def _specials(self, criterion: Criterion) -> list[Check]:
        return [self._special(item) for item in SPECIALS[self.problem.name] if item.criterion == criterion]

    def _special(self, special: Special) -> Check:
        title = f"Right with {TITLES[special.case]}"
        if not all(map(self.is_right, special.outputs)):
            reason = "This counts only if its outputs are right in the ordinary cases."
            return lost(special.id, title, 1, reason, "First fix the ordinary cases.")
        for output in special.outputs:
            if self.error(output, special.case, self.powers[output] or 0) >= TOLERANCE:
                return lost(special.id, title, 1, self._why_in(output, special.case), special.remedy)
        return full(special.id, title, 1, "All its outputs are right there too.")

    def loops(self) -> Check:
        """Return the check of vectorization; it counts for the gradients that are right."""
        id, title = "loops", "There is no Python loop over samples or entries"
        remedy = "Use operations on whole arrays: matrix products, sums along an axis, broadcasting."
        share = sum(map(self.is_right, self.problem.gradients)) / len(self.problem.gradients)
        if share == 0:
            return lost(id, title, 1, "This counts only for right gradients, and there are none.", remedy)
        if loop := looping_stage(self.called["large"], self.called["larger"], GROWN):
            return lost(id, title, 1, _sentence(f"{loop}: it loops"), remedy)
        if found := doubts(self.text):
            reason = f"The count shows no loop, but is not believed for this file: {found[0]}. The instructor decides."
            return open_check(id, title, 1, reason)
        if share < 1:
            reason = "There is no loop, but not all gradients are right."
            return lost(id, title, 1, reason, "Fix the gradients that are wrong.", points=share)
        return full(id, title, 1, "Larger arrays take no more instructions of Python.")

    def _why(self, output: str) -> str:
        """Return why an output is wrong in the first ordinary case in which it is."""
        case = next(
            (case for case in ORDINARY if self.error(output, case) >= self.bound(output)), ORDINARY[0]
        )
        return self._why_in(output, case)

    def _why_in(self, output: str, case: str) -> str:
        called, right = self.called[case], self.right[case][output]
        if output not in called.outputs:
            problem = next(reversed([*called.problems.values()]), f"{output} was not returned")
            return f"With {TITLES[case]}, {problem}."
        found = called.outputs[output]
        if found.shape != right.shape:
            return (
                f"With {TITLES[case]}, {self.name(output)} has the shape {found.shape} and not {right.shape}."
            )
        clause = worst_entry(self.name(output), found, right)
        return f"With {TITLES[case]}, {clause}.{self._pattern(found, right, len(self.cases[case]['x']))}"

    def _pattern(self, found: Array, right: Array, batch: int) -> str:
        """Return what the usual mistakes look like, as a further sentence, or ""."""
        if not np.isfinite(found).all():
            return ""
        error = relative_error(found, right)
        if error < TOLERANCE:
            return f" It is right to {error:.1e}, as differences are: a derived formula is right to 1e-15."
        factor = float((found * right).sum() / max(float((right * right).sum()), 1e-300))
        if relative_error(found, factor * right) < 1e-9 and factor:
            known = {-1.0: "Its sign is wrong", float(batch): "It is not divided by the batch size"}
            words = next((known[value] for value in known if math.isclose(value, factor, rel_tol=1e-9)), "")
            return f" {words or f'It is {factor:.6g} times what is right'}."
        if found.ndim == 2 and found.shape[0] == found.shape[1] and relative_error(found.T, right) < 1e-9:
            return " It is transposed: the factors of a product are in the wrong order."
        return ""


class _CaseReport(Model):
    shapes: dict[str, tuple[int, ...]]
    problems: dict[str, str]
    steps: dict[str, int]
    changed: tuple[str, ...]


class _Report(Model):
    problem: str
    cases: dict[str, _CaseReport]


def run_answer(problem: Problem, file: str, text: str, cases: Mapping[str, Inputs], run: Run) -> AnswerRun:
    """Call an answer in the sandbox with every case. Whatever the answer does ends in a result; raises `Stopped`."""
    job = {"problem": problem.name, "file": file, "cases": list(cases)}
    result = run(
        Command(
            [str(launcher_python()), "-S", "-P", str(INSIDE / "derive.py")],
            {"job.json": json.dumps(job).encode(), "answer.txt": text.encode(), "cases.npz": packed(cases)},
            environment={**replay_environment(), "PYTHONPATH": f"{_packages()}:{ROOT}"},
            limits=LIMITS,
            visible=_visible(),
        )
    )
    if result.status != "OK":
        message = result.message or f"it ended with {result.status}"
        return AnswerRun(result.status, message, result.exit_code)
    try:
        return _read(result, cases)
    except (ValidationError, ValueError, KeyError) as error:
        # The process reported success and left something else: only an answer's own code does that.
        return AnswerRun("RE", f"it left no complete result ({type(error).__name__})", 0)


def _read(result: SandboxResult, cases: Mapping[str, Inputs]) -> AnswerRun:
    data = result.files["report.json"]
    if len(data) > MIB:
        raise ValueError("a report of more than 1 MiB")
    report = _Report.model_validate_json(data)
    found = {}
    for case in cases if not report.problem else ():
        item = report.cases[case]
        arrays = {name: _array(result.files[f"{case}/{name}"], shape) for name, shape in item.shapes.items()}
        problems = {stage: words[:600] for stage, words in item.problems.items()}
        found[case] = Called(arrays, problems, item.steps, list(item.changed))
    return AnswerRun("OK", problem=report.problem[:600], cases=found)


def _array(data: bytes, shape: Sequence[int]) -> Array:
    """Return bytes as an array. Raises `ValueError` if their number does not fit the shape."""
    if len(shape) > 8 or any(length < 0 for length in shape) or 8 * math.prod(shape) != len(data):
        raise ValueError("an array of another size than its shape says")
    return np.frombuffer(data, dtype="<f8").reshape(tuple(shape))


@cache
def _packages() -> Path:
    return Path(np.__file__).resolve().parent.parent


@cache
def _visible() -> Sequence[Path]:
    """Return what an answer may see: Python, NumPy with its libraries, the harness, and the script that calls it."""
    numpy = [path for path in (_packages() / "numpy", _packages() / "numpy.libs") if path.exists()]
    return [Path(sys.base_prefix), *numpy, ROOT / "harness", INSIDE / "derive.py"]
