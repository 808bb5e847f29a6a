"""Judge the answer to a derivation exercise by its outputs, for `make check` and for the grader."""

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

TOLERANCE = 1e-6  # relative error; the task of each exercise states this number
# In float64, correct formulas have relative errors below 4e-15 in the forward and in the backward pass. Central
# differences have errors above 8e-12, even with the best step. So if a gradient is much less exact than the forward
# pass, it does not come from a derived formula.
EXACT, DERIVED = 1e-13, 1e-12
_NOTHING_RIGHT = "No output is right yet, so this check gives no points."
_NOT_ORDINARY = "This check counts only if the outputs are right for ordinary inputs."
_ALSO_GRADED = "If code is unusual for a derivation, the grader asks the instructor."


@dataclass(frozen=True)
class AnswerCheck:
    """The result of one check of an answer. `remedy` says how to earn the missing points.

    points: a number from 0 to 1, or None if only the instructor can decide.
    """

    criterion: str
    id: str
    title: str
    reason: str
    remedy: str = ""
    points: float | None = 1.0


def check_derivation(problem_name: str, answer: Path, text: str) -> list[CheckItem]:
    """Call an answer in this process, and return the check results that `make check` prints."""
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
        elif found.reason == told:  # one exception is the reason for several failed items
            items.append(failed_item(id, f"{found.title}: failed for the same reason."))
        else:
            told = found.reason
            items.append(failed_item(id, f"{found.title}: {found.reason} {found.remedy}"))
    return items


def import_item(answer: Path, text: str) -> CheckItem | None:
    """Return a failed item if an answer (valid Python) imports a forbidden module, and None otherwise."""
    foreign = next(foreign_imports(ast.parse(text)), None)
    if foreign is None:
        return None
    line, name = foreign
    said = f"{answer}, line {line} imports {name}: derive by hand, and import only numpy and math."
    return failed_item("form: numpy", said)


def judge_answer(problem: Problem, cases: Mapping[str, Inputs], results: CallResults) -> list[AnswerCheck]:
    """Return the result of each check in the rubric. If nothing could be called, each result says why."""
    judge = _AnswerJudge(problem, cases, results.cases)
    findings = [*judge.form(), *judge.values("forward"), *judge.values("gradients")]
    if results.cases:
        return findings
    remedy = "Hand in a file for which make check finds right outputs."
    return [replace(item, reason=f"{results.problem}.", remedy=remedy, points=0.0) for item in findings]


def _make_finding(criterion: str, id: str, title: str, right: str, wrong: str, remedy: str) -> AnswerCheck:
    """Return a result without points and with the reason `wrong`, or with all points and `right` if `wrong` is ""."""
    if wrong:
        return AnswerCheck(criterion, id, title, wrong, remedy, 0.0)
    return AnswerCheck(criterion, id, title, right)


class _AnswerJudge:
    def __init__(self, problem: Problem, cases: Mapping[str, Inputs], called: Mapping[str, CallResult]) -> None:
        self.problem = problem
        self.called = {case: called.get(case, CallResult()) for case in cases}
        self.right = {case: right_outputs(problem, inputs) for case, inputs in cases.items()}
        # If the forward pass is as exact as float64 allows, the gradients must be exact, too.
        exact = all(self.error(output, case) < EXACT for output in problem.forward for case in ORDINARY)
        self.bounds = dict.fromkeys(problem.forward, TOLERANCE)
        self.bounds |= dict.fromkeys(problem.gradients, DERIVED if exact else TOLERANCE)
        # For each output, the reason why it is wrong in an ordinary case, or "" if it is right.
        self.wrong = {output: self._why(output) for output in problem.outputs}

    def error(self, output: str, case: str) -> float:
        """Return the relative error of an output."""
        found = self.called[case].outputs.get(output)
        return float("inf") if found is None else relative_error(found, self.right[case][output])

    def form(self) -> list[AnswerCheck]:
        """Return the results for imports and for a second call. They give points only if some output is right.

        The check of imports always passes here: `make check` refuses forbidden imports before it calls an answer, and
        the grader judges imports separately.
        """
        numpy = AnswerCheck("form", "numpy", "The answer uses only NumPy", "It imports no other module.")
        checks = [numpy, self._repeats()]
        if not all(self.wrong.values()):
            return checks
        reason, remedy = _NOTHING_RIGHT, "Begin with the forward pass."
        return [replace(item, reason=reason, remedy=remedy, points=0.0) for item in checks]

    def _repeats(self) -> AnswerCheck:
        reason, remedy = "", "Work on copies (z = x.copy()), and keep no state between calls except the cache."
        first, again = self.called["small"].outputs, self.called["again"].outputs
        for output, array in first.items():
            if output not in again or not np.array_equal(array, again[output], equal_nan=True):
                reason = f"A second call with the same inputs returns a different {output[:80]}."
        if changed := sorted({name for called in self.called.values() for name in called.changed}):
            reason = f"The answer changes its input {changed[0][:80]}."
        title = "A second call returns the same values, and the inputs do not change"
        return _make_finding("form", "repeats", title, "A second call returns the same bytes.", reason, remedy)

    def values(self, criterion: str) -> Iterator[AnswerCheck]:
        """Yield the results for the forward pass or for the gradients, then for the special cases of this criterion."""
        if criterion == "forward":
            outputs = self.problem.forward
            wrong = dict.fromkeys(filter(None, map(self.wrong.get, outputs)))
            reason, remedy = " ".join(wrong), "Write each formula in one line of code."
            right = f"{' and '.join(outputs)}: correct."
            yield _make_finding(criterion, "values", "The forward pass is right", right, reason, remedy)
        else:
            remedy = "Write down the shapes of all factors before you multiply them."
            for output, name in self.problem.gradients.items():
                right = f"The relative error is at most {self.bounds[output]:g}."
                yield _make_finding(criterion, name, f"The gradient of {name}", right, self.wrong[output], remedy)
        for special in self.problem.special_checks:
            if special.criterion == criterion:
                reason = _NOT_ORDINARY
                if not any(self.wrong[output] for output in special.outputs):
                    bad = (one for one in special.outputs if self.error(one, special.case) >= TOLERANCE)
                    reason = next((self._why_in(output, special.case) for output in bad), "")
                title, right = f"Right with {CASES[special.case]}", "The outputs are right for these inputs, too."
                yield _make_finding(criterion, special.id, title, right, reason, special.remedy)

    def _why(self, output: str) -> str:
        """Return why an output is wrong in the first ordinary case where it is wrong; "" if it is right in all."""
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
            return f"{reason} Its error is {error:.1e}, as with finite differences. A derived formula reaches 1e-15."
        factor = float((found * right).sum() / max(float((right * right).sum()), 1e-300))
        if factor and relative_error(found, factor * right) < 1e-9:
            return f"{reason} It is {factor:.6g} times the right value (do you average over the batch exactly once?)."
        return reason
