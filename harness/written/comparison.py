"""Compare the outputs of an answer with the right ones, for `make check` and for the grader."""

import ast
import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from harness.submission.check_run import CheckItem, could_not_judge, failed_item, passed_item
from harness.submission.program import Unparsable, parse_experiment
from harness.written.calls import CallPlan, CallResult, CallResults, call_cases
from harness.written.exercise import FunctionExercise, JudgeItem
from harness.written.inputs import AGAIN, PUBLIC, Array, Inputs, draw_inputs

# In float64, correct formulas have relative errors below 4e-15 in the forward and in the backward pass. Central
# differences have errors above 8e-12, even with the best step. So if a gradient is much less exact than the forward
# pass, it does not come from a derived formula.
EXACT, DERIVED = 1e-13, 1e-12
# An output with at most this relative difference from the right output, or from a wrong one, is the same.
_SAME = 1e-6
# The modules that an answer may import, because they cannot differentiate.
ALLOWED_IMPORTS = ("numpy", "math", "typing", "__future__")
_NO_IMPORT = "It imports no other module."
_NOTHING_RIGHT = "No output is right yet, so this check gives no points."
_NOT_ORDINARY = "This check counts only if the outputs are right for ordinary inputs."
_ALSO_GRADED = "If code is unusual for this exercise, the grader asks the instructor."
_READ_BY_PERSON = "Your instructor reads this text."

Outputs = Mapping[str, Mapping[str, Array]]  # {case: {output: array}}


@dataclass(frozen=True)
class Mistake:
    """A usual mistake: the remedy, and fingerprints of a wrong solution's outputs that differ from the right ones."""

    id: str
    remedy: str
    outputs: Outputs


@dataclass(frozen=True)
class Reference:
    """The right outputs in every case, and the usual mistakes."""

    right: Outputs
    mistakes: tuple[Mistake, ...] = field(default=())


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


def plan_of(exercise: FunctionExercise, file: str = "", outputs: Sequence[str] = ()) -> CallPlan:
    """Return how an answer is called. Messages call the answer `file`; by default, by the name of its file.

    outputs: the results to return, by default all that are compared. A call that they do not need is left out.
    """
    wanted = {*(outputs or exercise.outputs)}
    calls = []
    for call in reversed(exercise.call):
        if wanted & {*call.results}:
            wanted |= {*call.needs}
            calls.append(call.model_dump())
    return CallPlan(file or exercise.file, calls[::-1], outputs or exercise.outputs)


def check_answer(exercise: FunctionExercise, answer: Path, text: str, reference: Reference) -> list[CheckItem]:
    """Call an answer in this process with the public inputs, and return the check results for `make check`."""
    if foreign := import_item(answer, text):
        return [foreign]
    cases = draw_inputs(exercise, PUBLIC)
    with contextlib.redirect_stdout(sys.stderr):
        results = call_cases(plan_of(exercise, str(answer)), text, cases)
    if results.problem:
        return [failed_item("answer: loads", f"{results.problem}.")]
    items, told, remedies = [], "", set[str]()
    for found in judge_answer(exercise, text, cases, results, reference):
        id = f"{found.criterion}: {found.id}"
        if found.points == 1:
            more = f" {_ALSO_GRADED}" if found.reason == _NO_IMPORT else ""
            items.append(passed_item(id, f"{found.reason}{more}"))
        elif found.points is None or found.reason in (_NOTHING_RIGHT, _NOT_ORDINARY):
            items.append(could_not_judge(id, f"{found.title}: {found.reason}"))
        elif found.reason == told:  # one exception is the reason for several failed items
            items.append(failed_item(id, f"{found.title}: failed for the same reason."))
        else:
            told = found.reason
            remedy = "" if found.remedy in remedies else found.remedy
            remedies.add(found.remedy)
            items.append(failed_item(id, f"{found.title}: {found.reason} {remedy}".rstrip()))
    return items


def foreign_imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, name) for each module that an answer imports but may not use."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        else:
            continue
        for name in names:
            if name.split(".")[0] not in ALLOWED_IMPORTS:
                yield node.lineno, name


def import_item(answer: Path, text: str) -> CheckItem | None:
    """Return a failed item if an answer (valid Python) imports a forbidden module, and None otherwise."""
    foreign = next(foreign_imports(ast.parse(text)), None)
    if foreign is None:
        return None
    line, name = foreign
    said = f"{answer}, line {line} imports {name}: derive by hand, and import only numpy and math."
    return failed_item("form: imports", said)


def text_constant(text: str, name: str) -> str:
    """Return the text that an answer assigns to a name at the top level, or "" if it assigns no text."""
    with contextlib.suppress(Unparsable):
        for node in parse_experiment(text).body:
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Constant)
                and [ast.unparse(target) for target in node.targets] == [name]
                and isinstance(node.value.value, str)
            ):
                return node.value.value.strip()
    return ""


def relative_error(found: Array, right: Array) -> float:
    """Return the largest difference divided by the largest right entry; infinity for a wrong shape or non-finite entry.

    A relative error for each entry would be large near zero only because of rounding.
    """
    if found.shape != right.shape or not (np.isfinite(found).all() and np.isfinite(right).all()):
        return float("inf")
    scale = max(np.abs(found).max(initial=0.0), np.abs(right).max(initial=0.0))
    return float(np.abs(found - right).max(initial=0.0) / scale) if scale > 0 else 0.0


def fingerprint(array: Array) -> Array:
    """Return numbers that identify an output: its dimensions, its non-finite entries, its norm, and three sums."""
    finite = np.where(np.isfinite(array), array, 0).reshape(-1)
    places = np.arange(finite.size)
    sums = [float((finite * np.cos(rate * places)).sum()) for rate in (0, 1, 2)]
    unusual = [np.isnan(array).sum(), np.isposinf(array).sum(), np.isneginf(array).sum()]
    return np.array([array.ndim, *array.shape, *unusual, np.sqrt((finite**2).sum()), *sums])


def is_same(one: Array, other: Array) -> bool:
    """Return whether two fingerprints belong to the same output, up to rounding."""
    if one.shape != other.shape or not np.array_equal(one[:-4], other[:-4]):
        return False
    return bool((np.abs(one[-4:] - other[-4:]) <= _SAME * max(one[-4], other[-4])).all())


def find_mistake(id: str, remedy: str, results: CallResults, right: Outputs) -> Mistake:
    """Return the mistake of a wrong solution from its results: its outputs where they differ from the right ones."""
    outputs = {
        case: {
            name: fingerprint(array)
            for name, array in called.outputs.items()
            if case in right and name in right[case] and not relative_error(array, right[case][name]) < _SAME
        }
        for case, called in results.cases.items()
    }
    return Mistake(id, remedy, {case: wrong for case, wrong in outputs.items() if wrong})


def judge_answer(
    exercise: FunctionExercise, text: str, cases: Mapping[str, Inputs], results: CallResults, reference: Reference
) -> list[AnswerCheck]:
    """Return the result of each item of the rubric. If nothing could be called, each result says why."""
    judge = _AnswerJudge(exercise, text, cases, results.cases, reference)
    findings = [judge.judge_item(item) for item in exercise.item]
    if results.cases:
        return findings
    remedy = "Hand in a file for which make check finds right outputs."
    return [replace(one, reason=f"{results.problem}.", remedy=remedy, points=0.0) for one in findings]


class _AnswerJudge:
    def __init__(
        self,
        exercise: FunctionExercise,
        text: str,
        cases: Mapping[str, Inputs],
        called: Mapping[str, CallResult],
        reference: Reference,
    ) -> None:
        self.exercise = exercise
        self.text = text
        self.cases = cases
        self.called = {case: called.get(case, CallResult()) for case in cases}
        self.right = reference.right
        self.mistakes = reference.mistakes
        self.gradients = exercise.differentiates
        compared = [item for item in exercise.item if item.compare == "values"]
        values = dict.fromkeys(
            name for item in compared if not self._special(item) for name in item.outputs if name not in self.gradients
        )
        # If the forward pass is as exact as float64 allows, the gradients must be exact, too.
        self.exact = all(self.error(output, case) < EXACT for output in values for case in exercise.ordinary)
        # For each output, the reason why it is wrong in an ordinary case, or "" if it is right.
        self.wrong = {
            output: self._why(output, item.tolerance, exercise.cases_of(item))
            for item in reversed(compared)
            if not self._special(item)
            for output in item.outputs
        }

        exact_items = [item for item in exercise.item if item.compare == "exact"]
        self.nothing_right = all(self.wrong.values()) and all(map(self._property_problem, exact_items))

    def _special(self, item: JudgeItem) -> bool:
        return not set(self.exercise.cases_of(item)) <= {*self.exercise.ordinary}

    def error(self, output: str, case: str) -> float:
        """Return the relative error of an output."""
        found = self.called[case].outputs.get(output)
        return float("inf") if found is None else relative_error(found, self.right[case][output])

    def judge_item(self, item: JudgeItem) -> AnswerCheck:
        """Return the result of one item.

        The check of imports always passes here: `make check` refuses forbidden imports before it calls an answer, and
        the grader judges imports separately.
        """
        found = AnswerCheck(item.criterion, item.name, item.title, "", item.remedy)
        if self.nothing_right and item.compare not in ("values", "exact", "shapes"):
            remedy = item.remedy or "Begin with the first function of the file."
            return replace(found, reason=_NOTHING_RIGHT, remedy=remedy, points=0.0)
        match item.compare:
            case "imports":
                return replace(found, reason=_NO_IMPORT)
            case "person":
                if text_constant(self.text, str(item.constant)):
                    return replace(found, reason=_READ_BY_PERSON, points=None)
                reason, right = f"The file assigns no text to {item.constant}.", ""
            case "repeats":
                reason, right = self._repeats(), "A second call returns the same bytes."
            case "values":
                return self._compare_values(item, found)
            case _:
                reason = self._property_problem(item)
                right = f"{', '.join(item.outputs)}: correct."
        return replace(found, reason=reason, points=0.0) if reason else replace(found, reason=right, remedy="")

    def _compare_values(self, item: JudgeItem, found: AnswerCheck) -> AnswerCheck:
        cases = self.exercise.cases_of(item)
        if self._special(item):
            reason, right = _NOT_ORDINARY, "The outputs are right for these inputs, too."
            if not any(self.wrong.get(output) for output in item.outputs):
                bad = ((one, case) for case in cases for one in item.outputs if self.error(one, case) >= item.tolerance)
                reason = next((self._why_in(*place, item.tolerance) for place in bad), "")
        else:
            wrong = dict.fromkeys(filter(None, map(self.wrong.get, item.outputs)))
            reason = " ".join(wrong)
            right = f"{', '.join(item.outputs)}: correct."
            if set(item.outputs) <= self.gradients.keys():
                bound = max(self._bound(output, item.tolerance) for output in item.outputs)
                right = f"The relative error is at most {bound:g}."
        if not reason:
            return replace(found, reason=right, remedy="")
        known = None if reason == _NOT_ORDINARY else self._find_mistake(item)
        return replace(found, reason=reason, remedy=known.remedy if known else item.remedy, points=0.0)

    def _find_mistake(self, item: JudgeItem) -> Mistake | None:
        """Return the usual mistake that explains all wrong outputs of an item where it gives outputs, or None.

        If several do, return the one that explains best whether the other outputs are right.
        """
        cases = dict.fromkeys([*self.exercise.ordinary, *self.exercise.cases_of(item)])
        wrong = [
            (case, output)
            for case in cases
            for output in item.outputs
            if output in self.called[case].outputs and self.error(output, case) >= _SAME
        ]
        fitting = []
        for mistake in self.mistakes:
            there = [(case, output) for case, output in wrong if output in mistake.outputs.get(case, {})]
            if there and len(there) == len(wrong) and all(self._has(mistake, *place) for place in there):
                fitting.append(mistake)
        return min(fitting, key=self._count_differences, default=None)

    def _has(self, mistake: Mistake, case: str, output: str) -> bool:
        found = self.called[case].outputs.get(output)
        return found is not None and is_same(fingerprint(found), mistake.outputs[case][output])

    def _count_differences(self, mistake: Mistake) -> int:
        return sum(not self._has(mistake, case, output) for case, wrong in mistake.outputs.items() for output in wrong)

    def _repeats(self) -> str:
        if changed := sorted({name for called in self.called.values() for name in called.changed}):
            return f"The answer changes its input {changed[0][:80]}."
        first, again = (self.called[case].outputs for case in (next(iter(self.called)), AGAIN))
        for output, array in first.items():
            if output not in again or not np.array_equal(array, again[output], equal_nan=True):
                return f"A second call with the same inputs returns a different {output[:80]}."
        return ""

    def _property_problem(self, item: JudgeItem) -> str:
        """Return why the outputs of an item do not have the property that it compares, or ""."""
        places = ((output, case) for output in item.outputs for case in self.exercise.cases_of(item))
        return next(filter(None, (self._why_not(item, *place) for place in places)), "")

    def _why_not(self, item: JudgeItem, output: str, case: str) -> str:
        """Return why an output does not have the property that an item compares, or ""."""
        found = self.called[case].outputs.get(output)
        if found is None or item.compare == "shapes" or found.shape != self.right[case][output].shape:
            right = found is not None and found.shape == self.right[case][output].shape
            return "" if right else self._why_in(output, case, item.tolerance)
        where = f"With {self._says(case)}, {output}"
        if item.compare == "exact":
            same = np.array_equal(found, self.right[case][output])
            return "" if same else f"{where} is {_numbers(found)} but should be {_numbers(self.right[case][output])}."
        if item.compare == "sums":
            sums = found.sum(axis=item.axis)
            far = np.abs(sums - item.to).max(initial=0.0)
            if not far < item.tolerance:
                worst = float(sums.reshape(-1)[np.argmax(np.abs(np.nan_to_num(sums - item.to, nan=np.inf)))])
                return f"{where} has a sum of {worst:.6g} along axis {item.axis}, but it should be {item.to:g}."
        elif item.compare == "zeros":
            places = np.broadcast_to(self.cases[case][str(item.where)], found.shape).astype(bool)
            if not found.any():
                return f"{where} is 0 everywhere."
            if bad := np.argwhere(places & (found != 0)).tolist():
                return f"{where}{_entry(bad[0])} is {found[tuple(bad[0])]:.6g} but should be 0."
        elif item.compare == "at_most":
            if not found.any() and item.bound:
                return f"{where} is 0, but rounding alone gives a larger number."
            if not (found <= item.bound).all():
                return f"{where} is {np.max(found):.6g} but should be at most {item.bound:g}."
        elif not (found >= item.bound).all():
            return f"{where} is {np.min(found):.6g} but should be at least {item.bound:g}."
        return ""

    def _bound(self, output: str, tolerance: float) -> float:
        return min(DERIVED, tolerance) if self.exact and output in self.gradients else tolerance

    def _why(self, output: str, tolerance: float, cases: list[str]) -> str:
        """Return why an output is wrong in the first of the cases where it is wrong; "" if it is right in all."""
        wrong = (case for case in cases if self.error(output, case) >= self._bound(output, tolerance))
        return next((self._why_in(output, case, tolerance) for case in wrong), "")

    def _says(self, case: str) -> str:
        return next((one.says for one in self.exercise.case if one.id == case), "the first inputs a second time")

    def _why_in(self, output: str, case: str, tolerance: float) -> str:
        called, right = self.called[case], self.right[case][output]
        if output not in called.outputs:
            return f"With {self._says(case)}, {called.problems.get(output, f'{output} was not returned')}."
        name = self.gradients.get(output)
        where = f"With {self._says(case)}, {output if name is None else f'the gradient of {name}'}"
        found = called.outputs[output]
        if found.shape != right.shape:
            return f"{where} has the shape {found.shape} instead of {right.shape}."
        place = np.unravel_index(np.argmax(np.abs(np.nan_to_num(found - right, nan=np.inf))), right.shape)
        reason = f"{where}{_entry(place)} is {found[place]:.6g} but should be {right[place]:.6g}."
        error = relative_error(found, right)
        if error < tolerance:
            return f"{reason} Its error is {error:.1e}, as with finite differences. A derived formula reaches 1e-15."
        factor = float((found * right).sum() / max(float((right * right).sum()), 1e-300))
        if factor and relative_error(found, factor * right) < 1e-9:
            average = " (do you average over the batch exactly once?)" if name is not None else ""
            return f"{reason} It is {factor:.6g} times the right value{average}."
        return reason


def _numbers(array: Array) -> str:
    return ", ".join(f"{number:g}" for number in array.reshape(-1)[:10].tolist())


def _entry(place: object) -> str:
    return "".join(f"[{index}]" for index in place) if isinstance(place, (list, tuple)) else ""
