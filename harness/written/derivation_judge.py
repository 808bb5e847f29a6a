"""Judges a derivation by what it returned: for `make check`, and for the grader, which calls it in its sandbox."""

import ast
import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from harness.submission.check_run import CheckItem, failed, passed
from harness.written.derivation import (
    CASES,
    GROWN,
    ORDINARY,
    PROBLEMS,
    Inputs,
    Problem,
    draw_cases,
    foreign_imports,
    relative_error,
    right_outputs,
)
from harness.written.derivation_call import CallResult, Results, call_cases

TOLERANCE = 1e-6  # as the exercises say
# Errors of right answers in float64 stay below 4e-15, forward and backward; those of central differences, at the best
# step, are above 8e-12. A gradient that is much less exact than the forward pass was not derived.
EXACT, DERIVED = 1e-13, 1e-12


@dataclass(frozen=True)
class AnswerCheck:
    """One check of an answer, with its reason and how to earn what is missing.

    points: from 0 to 1, or None if only the instructor can decide.
    """

    criterion: str
    id: str
    title: str
    reason: str
    remedy: str = ""
    points: float | None = 1.0


def check_derivation(problem_name: str, answer: Path, text: str) -> list[CheckItem]:
    """Call an answer in this process, and return what `make check` says of it."""
    problem = PROBLEMS[problem_name]
    # Before it is loaded: torch alone takes more instructions to import than an answer may take.
    if foreign := next(foreign_imports(ast.parse(text)), None):
        return [failed("form: numpy", f"{answer}, line {foreign[0]} imports {foreign[1]}: use only NumPy.")]
    cases = draw_cases(problem, text)
    with contextlib.redirect_stdout(sys.stderr):
        results = call_cases(problem, str(answer), text, cases)
    if results.problem:
        return [failed("answer: loads", f"{results.problem}.")]
    items = []
    for found in judge_answer(problem, cases, results):
        id = f"{found.criterion}: {found.id}"
        missing = f"{found.title}: {found.reason} {found.remedy}"
        items.append(passed(id, found.reason) if found.points == 1 else failed(id, missing))
    return items


def judge_answer(problem: Problem, cases: Mapping[str, Inputs], results: Results) -> list[AnswerCheck]:
    """Return a finding for each check of the rubric. If nothing could be called, all of them say why."""
    judge = _Judge(problem, cases, results.cases)
    findings = [*judge.form(), *judge.forward(), *judge.gradients(), judge.loops()]
    if results.cases:
        return findings
    return [_nothing(item, f"{results.problem}.") for item in findings]


def _nothing(item: AnswerCheck, reason: str) -> AnswerCheck:
    remedy = "Hand in a file for which make check finds right outputs."
    return replace(item, reason=reason, remedy=remedy, points=0.0)


def _finding(
    criterion: str, id: str, title: str, right: str, wrong: str, remedy: str, points: float = 0.0
) -> AnswerCheck:
    """Return a finding with the reason `wrong` and `points`, or with `right` and everything if `wrong` is ""."""
    if wrong:
        return AnswerCheck(criterion, id, title, wrong, remedy, points)
    return AnswerCheck(criterion, id, title, right)


class _Judge:
    def __init__(
        self, problem: Problem, cases: Mapping[str, Inputs], called: Mapping[str, CallResult]
    ) -> None:
        self.problem = problem
        self.cases = cases
        self.called = {case: called.get(case, CallResult()) for case in cases}
        self.right = {case: right_outputs(problem, inputs) for case, inputs in cases.items()}
        # Whether the forward pass is as exact as float64 allows; then gradients must be, too.
        exact = all(self.error(output, case) < EXACT for output in problem.forward for case in ORDINARY)
        self.bounds = dict.fromkeys(problem.forward, TOLERANCE)
        self.bounds |= dict.fromkeys(problem.gradients, DERIVED if exact else TOLERANCE)
        # For each right output the power of the batch size by which it is too large: 0 is right, 1 misses the division
        # by the batch size, -1 divides twice.
        self.powers: dict[str, int] = {}
        for output, bound in self.bounds.items():
            for power in (0, 1, -1) if problem.batch_mean else (0,):
                if all(self.error(output, case, power) < bound for case in ORDINARY):
                    self.powers.setdefault(output, power)

    def error(self, output: str, case: str, power: int = 0) -> float:
        """Return the relative error of an output against batch size ** power times what is right."""
        found = self.called[case].outputs.get(output)
        scale = float(len(self.cases[case]["x"])) ** power
        return float("inf") if found is None else relative_error(found, self.right[case][output] * scale)

    def name(self, output: str) -> str:
        """Return the name of an output for students."""
        given = self.problem.gradients.get(output)
        return output if given is None else f"the gradient of {given}"

    def form(self) -> list[AnswerCheck]:
        """Return the checks of imports, shapes and a second call; they count only if some output is right.

        What is called here imports only NumPy: `make check` refuses other imports, and the grader judges them itself.
        """
        numpy = AnswerCheck("form", "numpy", "It uses only NumPy", "It imports nothing else.")
        checks = [numpy, self._shapes(), self._repeats()]
        if self.powers:
            return checks
        return [_nothing(item, "No output is right yet, so this does not count.") for item in checks]

    def _shapes(self) -> AnswerCheck:
        found, right = self.called["small"].outputs, self.right["small"]
        wrong = [name for name in right if name not in found or found[name].shape != right[name].shape]
        reason = f"Missing, or of another shape: {', '.join(map(self.name, wrong))}." if wrong else ""
        title, remedy = "Every output has its shape", "Compare with the docstrings."
        share = 1 - len(wrong) / len(right)
        return _finding("form", "shapes", title, "As the docstrings say.", reason, remedy, share)

    def _repeats(self) -> AnswerCheck:
        reason, remedy = "", "Work on copies (z = x.copy()), and keep nothing between calls except the cache."
        first, again = self.called["small"].outputs, self.called["again"].outputs
        for output, array in first.items():
            if output not in again or not np.array_equal(array, again[output], equal_nan=True):
                reason = f"A second call with the same inputs returns another value of {output[:80]}."
        if changed := sorted({name for called in self.called.values() for name in called.changed}):
            reason = f"It writes into {changed[0][:80]}."
        title = "A second call returns the same, and inputs do not change"
        return _finding("form", "repeats", title, "A second call returns the same bytes.", reason, remedy)

    def forward(self) -> Iterator[AnswerCheck]:
        """Yield the checks of the forward pass."""
        outputs = self.problem.forward
        wrong = [output for output in outputs if output not in self.powers]
        reason, remedy = " ".join(map(self._why, wrong)), "Write each formula of the docstring as one line."
        share = 1 - len(wrong) / len(outputs)
        right = f"{' and '.join(outputs)}: right."
        yield _finding("forward", "values", "The forward pass is right", right, reason, remedy, share)
        yield from self._specials("forward")

    def gradients(self) -> Iterator[AnswerCheck]:
        """Yield a check for each gradient, one for the mean over the batch, and those of special cases."""
        remedy = "Write down the shapes of all factors before you multiply them."
        for output, name in self.problem.gradients.items():
            wrong, right = (
                "" if output in self.powers else self._why(output),
                f"Right to {self.bounds[output]:g}.",
            )
            yield _finding("gradients", name, f"The gradient of {name}", right, wrong, remedy)
        if self.problem.batch_mean:
            yield self._mean()
        yield from self._specials("gradients")

    def _mean(self) -> AnswerCheck:
        reason = ""
        if not self.problem.gradients.keys() & self.powers:
            reason = "No gradient is right, whatever it is divided by."
        elif off := next(((output, power) for output, power in self.powers.items() if power), None):
            what = "is not divided by the batch size" if off[1] == 1 else "is divided by it twice"
            name = self.name(off[0])
            reason = f"{name[:1].upper()}{name[1:]} {what}."
        remedy = "Divide by the batch size once, where the gradient begins: at the logits."
        title = "The loss and its gradients are means over the batch"
        return _finding("gradients", "mean", title, "For one sample, a few and many.", reason, remedy)

    def _specials(self, criterion: str) -> Iterator[AnswerCheck]:
        for special in self.problem.special_checks:
            if special.criterion != criterion:
                continue
            reason = ""
            if not self.powers.keys() >= set(special.outputs):
                reason = "This counts only if its outputs are right in the ordinary cases."
            for output in special.outputs:
                if not reason and self.error(output, special.case, self.powers[output]) >= TOLERANCE:
                    reason = self._why_in(output, special.case)
            title, right = f"Right with {CASES[special.case]}", "All its outputs are right there too."
            yield _finding(criterion, special.id, title, right, reason, special.remedy)

    def loops(self) -> AnswerCheck:
        """Return the check of vectorization; it counts for the gradients that are right."""
        right, reason = self.problem.gradients.keys() & self.powers, ""
        large, larger = self.called["large"].steps, self.called["larger"].steps
        share = len(right) / len(self.problem.gradients)
        if not right:
            reason = "This counts only for right gradients, and there are none."
        elif larger - large >= GROWN:  # a loop takes at least one instruction for each of its turns
            share = 0.0
            reason = f"It takes {large} instructions of Python, and {larger} with larger arrays: it loops over them."
        elif share < 1:
            reason = "There is no loop, but not all gradients are right."
        title = "There is no Python loop over samples or entries"
        remedy = "Use operations on whole arrays: matrix products, sums along an axis, broadcasting."
        same = "Larger arrays take no more instructions of Python."
        return _finding("vectorization", "loops", title, same, reason, remedy, share)

    def _why(self, output: str) -> str:
        """Return why an output is wrong in the first ordinary case in which it is."""
        wrong = (case for case in ORDINARY if self.error(output, case) >= self.bounds[output])
        return self._why_in(output, next(wrong, ORDINARY[0]))

    def _why_in(self, output: str, case: str) -> str:
        called, right = self.called[case], self.right[case][output]
        if output not in called.outputs:
            problem = next(reversed(called.problems.values()), f"{output} was not returned")
            return f"With {CASES[case]}, {problem}."
        found, where = called.outputs[output], f"With {CASES[case]}, {self.name(output)}"
        if found.shape != right.shape:
            return f"{where} has the shape {found.shape} and not {right.shape}."
        place = np.unravel_index(np.argmax(np.abs(np.nan_to_num(found - right, nan=np.inf))), right.shape)
        entry = "".join(f"[{index}]" for index in place)
        reason = f"{where}{entry} is {found[place]:.6g} and should be {right[place]:.6g}."
        error = relative_error(found, right)
        if error < TOLERANCE:
            return f"{reason} It is right to {error:.1e}, as differences are: a derived formula is right to 1e-15."
        factor = float((found * right).sum() / max(float((right * right).sum()), 1e-300))
        if factor and relative_error(found, factor * right) < 1e-9:
            return f"{reason} It is {factor:.6g} times what is right."
        return reason
