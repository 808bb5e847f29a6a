"""Judge a derivation by its outputs: for `make check`, and for the grader, which calls the answer in its sandbox."""

import ast
import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from harness.submission.check_run import CheckItem, could_not_judge, failed_item, passed_item
from harness.written.derivation import (
    CASES,
    ORDINARY,
    PROBLEMS,
    Inputs,
    Problem,
    draw_inputs,
    foreign_imports,
    relative_error,
    right_outputs,
)
from harness.written.derivation_call import CallResult, CallResults, call_cases

TOLERANCE = 1e-6  # as the exercises say
# In float64 right answers have errors below 4e-15, forward and backward. Central differences have errors above 8e-12,
# even with the best step. So a gradient that is much less exact than the forward pass was not derived.
EXACT, DERIVED = 1e-13, 1e-12
_NOTHING_RIGHT = "No output is right yet, so this does not count."
_NOT_ORDINARY = "This counts only if its outputs are right in the ordinary cases."
_ALSO_GRADED = "The grader asks the instructor about code that is unusual for a derivation."


@dataclass(frozen=True)
class AnswerCheck:
    """One check of an answer, with its reason, and a remedy that earns the missing points.

    points: from 0 to 1, or None if only the instructor can decide.
    """

    criterion: str
    id: str
    title: str
    reason: str
    remedy: str = ""
    points: float | None = 1.0


def check_derivation(problem_name: str, answer: Path, text: str) -> list[CheckItem]:
    """Call an answer in this process, and return the items of `make check`."""
    problem = PROBLEMS[problem_name]
    if foreign := import_item(answer, text):
        return [foreign]
    cases = draw_inputs(problem, text)
    with contextlib.redirect_stdout(sys.stderr):
        results = call_cases(problem, str(answer), text, cases)
    if results.problem:
        return [failed_item("answer: loads", f"{results.problem}.")]
    items, told = [], ""
    for found in judge_answer(problem, cases, results):
        id = f"{found.criterion}: {found.id}"
        if found.points == 1:
            items.append(passed_item(id, f"{found.reason} {_ALSO_GRADED}" if found.id == "numpy" else found.reason))
        elif found.reason in (_NOTHING_RIGHT, _NOT_ORDINARY):
            items.append(could_not_judge(id, f"{found.title}: {found.reason}"))
        elif found.reason == told:  # one exception stops every output
            items.append(failed_item(id, f"{found.title}: for the same reason."))
        else:
            told = found.reason
            items.append(failed_item(id, f"{found.title}: {found.reason} {found.remedy}"))
    return items


def import_item(answer: Path, text: str) -> CheckItem | None:
    """Return a failed item if an answer, which must be valid Python, imports a forbidden module, else None."""
    foreign = next(foreign_imports(ast.parse(text)), None)
    if foreign is None:
        return None
    line, name = foreign
    said = f"{answer}, line {line} imports {name}: derive by hand, and import only numpy, and math if you need it."
    return failed_item("form: numpy", said)


def judge_answer(problem: Problem, cases: Mapping[str, Inputs], results: CallResults) -> list[AnswerCheck]:
    """Return a finding for each check of the rubric. If nothing could be called, all of them say why."""
    judge = _AnswerJudge(problem, cases, results.cases)
    findings = [*judge.form(), *judge.values("forward"), *judge.values("gradients")]
    if results.cases:
        return findings
    remedy = "Hand in a file for which make check finds right outputs."
    return [replace(item, reason=f"{results.problem}.", remedy=remedy, points=0.0) for item in findings]


def _make_finding(criterion: str, id: str, title: str, right: str, wrong: str, remedy: str) -> AnswerCheck:
    """Return a finding with the reason `wrong` and no points, or with `right` and all points if `wrong` is ""."""
    if wrong:
        return AnswerCheck(criterion, id, title, wrong, remedy, 0.0)
    return AnswerCheck(criterion, id, title, right)


class _AnswerJudge:
    def __init__(self, problem: Problem, cases: Mapping[str, Inputs], called: Mapping[str, CallResult]) -> None:
        self.problem = problem
        self.called = {case: called.get(case, CallResult()) for case in cases}
        self.right = {case: right_outputs(problem, inputs) for case, inputs in cases.items()}
        # Whether the forward pass is as exact as float64 allows; then gradients must be, too.
        exact = all(self.error(output, case) < EXACT for output in problem.forward for case in ORDINARY)
        self.bounds = dict.fromkeys(problem.forward, TOLERANCE)
        self.bounds |= dict.fromkeys(problem.gradients, DERIVED if exact else TOLERANCE)
        # Why each output is wrong in the ordinary cases, or "".
        self.wrong = {output: self._why(output) for output in problem.outputs}

    def error(self, output: str, case: str) -> float:
        """Return the relative error of an output."""
        found = self.called[case].outputs.get(output)
        return float("inf") if found is None else relative_error(found, self.right[case][output])

    def form(self) -> list[AnswerCheck]:
        """Return the checks of imports and of a second call, which count only if some output is right.

        Answers that are called here import only NumPy: `make check` refuses other imports, and the grader judges them
        itself.
        """
        numpy = AnswerCheck("form", "numpy", "It uses only NumPy", "It imports nothing else.")
        checks = [numpy, self._repeats()]
        if not all(self.wrong.values()):
            return checks
        reason, remedy = _NOTHING_RIGHT, "Begin with the forward pass."
        return [replace(item, reason=reason, remedy=remedy, points=0.0) for item in checks]

    def _repeats(self) -> AnswerCheck:
        reason, remedy = "", "Work on copies (z = x.copy()), and keep nothing between calls except the cache."
        first, again = self.called["small"].outputs, self.called["again"].outputs
        for output, array in first.items():
            if output not in again or not np.array_equal(array, again[output], equal_nan=True):
                reason = f"A second call with the same inputs returns another value of {output[:80]}."
        if changed := sorted({name for called in self.called.values() for name in called.changed}):
            reason = f"It changes its input {changed[0][:80]}."
        title = "A second call returns the same values, and inputs do not change"
        return _make_finding("form", "repeats", title, "A second call returns the same bytes.", reason, remedy)

    def values(self, criterion: str) -> Iterator[AnswerCheck]:
        """Yield the checks of the forward pass or of the gradients, then the checks of special cases."""
        if criterion == "forward":
            outputs = self.problem.forward
            wrong = dict.fromkeys(filter(None, map(self.wrong.get, outputs)))
            reason, remedy = " ".join(wrong), "Write each formula as one line."
            right = f"{' and '.join(outputs)}: right."
            yield _make_finding(criterion, "values", "The forward pass is right", right, reason, remedy)
        else:
            remedy = "Write down the shapes of all factors before you multiply them."
            for output, name in self.problem.gradients.items():
                right = f"Right to {self.bounds[output]:g}."
                yield _make_finding(criterion, name, f"The gradient of {name}", right, self.wrong[output], remedy)
        for special in self.problem.special_checks:
            if special.criterion == criterion:
                reason = _NOT_ORDINARY
                if not any(self.wrong[output] for output in special.outputs):
                    bad = (one for one in special.outputs if self.error(one, special.case) >= TOLERANCE)
                    reason = next((self._why_in(output, special.case) for output in bad), "")
                title, right = f"Right with {CASES[special.case]}", "All its outputs are right there, too."
                yield _make_finding(criterion, special.id, title, right, reason, special.remedy)

    def _why(self, output: str) -> str:
        """Return why an output is wrong, in the first ordinary case where it is wrong, or ""."""
        wrong = (case for case in ORDINARY if self.error(output, case) >= self.bounds[output])
        return next((self._why_in(output, case) for case in wrong), "")

    def _why_in(self, output: str, case: str) -> str:
        called, right = self.called[case], self.right[case][output]
        if output not in called.outputs:
            problem = next(reversed(called.problems.values()), f"{output} was not returned")
            return f"With {CASES[case]}, {problem}."
        name = self.problem.gradients.get(output)
        where = f"With {CASES[case]}, {output if name is None else f'the gradient of {name}'}"
        found = called.outputs[output]
        if found.shape != right.shape:
            return f"{where} has the shape {found.shape} instead of {right.shape}."
        place = np.unravel_index(np.argmax(np.abs(np.nan_to_num(found - right, nan=np.inf))), right.shape)
        entry = "".join(f"[{index}]" for index in place)
        reason = f"{where}{entry} is {found[place]:.6g} but should be {right[place]:.6g}."
        error = relative_error(found, right)
        if error < TOLERANCE:
            return f"{reason} Its error is {error:.1e}, as with finite differences: a derived formula has about 1e-15."
        factor = float((found * right).sum() / max(float((right * right).sum()), 1e-300))
        if factor and relative_error(found, factor * right) < 1e-9:
            return f"{reason} It is {factor:.6g} times the right value (do you take the mean over the batch once?)."
        return reason
