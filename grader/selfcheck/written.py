"""Prove a written exercise: its solution, its gradients, its known answers, and the values that `make check` uses."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from grader.selfcheck.reference_tree import reference_text
from grader.written.grade import AnswerGrader
from grader.written.judgement import Judgement
from grader.written.known_answers import KnownAnswer, known_answers, reference_of, right_outputs, solution_of
from harness.errors import UserError
from harness.files import write_whole
from harness.recipes.recipe import EXERCISES, SOLUTIONS
from harness.written.calls import CallPlan, call_answer, load_answer
from harness.written.comparison import Mistake, Reference, is_same, plan_of, relative_error
from harness.written.exercise import DecisionTree, FileExercise, FunctionExercise
from harness.written.expected import EXPECTED, encode_reference, judge_hash, read_reference
from harness.written.inputs import PUBLIC, Array, Inputs, draw_inputs

# Central differences with this step have relative errors below 1e-8 for the exercises of this suite.
_STEP, _CLOSE = 1e-5, 1e-6
_SAME = 1e-12  # two machines compute the right outputs with differences below this number


def written_problems(exercise: FileExercise, answers: AnswerGrader, *, write: bool) -> list[str]:
    """Return the problems of a written exercise. With `write`, first write the files that are made from others.

    These files are `expected.txt`, and the reference tree of a decision tree.
    """
    found: list[str] = []
    try:
        if isinstance(exercise, DecisionTree):
            found += _tree_problems(exercise, write=write)
        if isinstance(exercise, FunctionExercise):
            found += gradient_problems(exercise)
            found += _expected_problems(exercise, write=write)
        if problem := answers.self_test_problem(exercise):
            return [*found, problem]
        if isinstance(exercise, FunctionExercise):
            solution = solution_of(exercise)
            for answer in known_answers(exercise.id):
                judgement = answers.judge(exercise, answer.source(solution))
                found += [f"{exercise.id}: {one}" for one in answer_problems(answer, judgement, exercise)]
    except (UserError, ValueError) as error:
        found.append(f"{exercise.id}: {error}")
    return found


def answer_problems(answer: KnownAnswer, judgement: Judgement, exercise: FunctionExercise) -> Iterator[str]:
    """Yield how the judgement of a known answer differs from the declared one."""
    if judgement.fault:
        yield f"the grader could not judge the answer {answer.id}: {judgement.fault}"
        return
    items = {f"{name}.{item.id}": item for name, checks in judgement.checks.items() for item in checks}
    declared = {"failed": answer.loses, "could not judge": answer.waits}
    for outcome, names in declared.items():
        found = {id for id, item in items.items() if item.outcome == outcome}
        if outcome == "could not judge":
            found -= exercise.by_person
        wanted = {id for id in items if id in names or id.partition(".")[0] in names}
        if found != wanted:
            said = f"{', '.join(sorted(found)) or 'nothing'}, not {', '.join(sorted(wanted)) or 'nothing'}"
            yield f"of the answer {answer.id}, these items are `{outcome}`: {said}"
    if answer.remedy and not any(item.remedy == answer.remedy for item in items.values()):
        yield f"no item gives the answer {answer.id} its remedy: another mistake has the same outputs"
    if answer.tells and not any(answer.tells in item.reason for item in items.values()):
        yield f"no reason tells the answer {answer.id}: {answer.tells}"


def gradient_problems(exercise: FunctionExercise, solutions: Path = SOLUTIONS) -> Iterator[str]:
    """Compare the gradients of the solution with central differences of its forward pass. Yield the differences."""
    plan, solution, cases = plan_of(exercise), solution_of(exercise, solutions), draw_inputs(exercise, PUBLIC)
    right = right_outputs(exercise, solution, cases)
    module = load_answer(solution, plan)
    for rule in exercise.gradients:
        forward = plan_of(exercise, outputs=[rule.of])

        def objective(
            inputs: Inputs, of: str = rule.of, times: str | None = rule.times, plan: CallPlan = forward
        ) -> float:
            with np.errstate(all="ignore"):
                output: Array = call_answer(plan, module, inputs).outputs[of]
            return float((output * (1 if times is None else inputs[times])).sum())

        for case in exercise.ordinary:
            for name, by in rule.by.items():
                measured = np.zeros(cases[case][by].shape)
                for place in np.ndindex(measured.shape):
                    ends = []
                    for step in (_STEP, -_STEP):
                        moved = cases[case][by].copy()
                        moved[place] += step
                        ends.append(objective({**cases[case], by: moved}))
                    measured[place] = (ends[0] - ends[1]) / (2 * _STEP)
                if not (error := relative_error(right[case][name], measured)) < _CLOSE:
                    yield f"{exercise.id}: in the case {case}, {name} differs from central differences by {error:.1e}"


def _expected_problems(exercise: FunctionExercise, *, write: bool) -> Iterator[str]:
    path = EXERCISES / exercise.id / EXPECTED
    now = reference_of(exercise, draw_inputs(exercise, PUBLIC))
    if write:
        write_whole({path: encode_reference(now, judge_hash(exercise.id))})
    stored = read_reference(exercise)
    if not _agree(stored, now):
        yield f"{path} does not contain the outputs of the solution and of the usual mistakes: run with --write"


def _agree(one: Reference, other: Reference) -> bool:
    def same(a: Array, b: Array) -> bool:
        return a.shape == b.shape and bool(np.allclose(a, b, rtol=_SAME, atol=_SAME, equal_nan=True))

    right = one.right.keys() == other.right.keys() and all(
        one.right[case].keys() == other.right[case].keys()
        and all(same(one.right[case][name], array) for name, array in outputs.items())
        for case, outputs in other.right.items()
    )
    texts = [[(item.id, item.remedy, {*item.outputs}) for item in side.mistakes] for side in (one, other)]
    return right and texts[0] == texts[1] and all(map(_agree_on_mistake, one.mistakes, other.mistakes))


def _agree_on_mistake(one: Mistake, other: Mistake) -> bool:
    return all(
        outputs.keys() == other.outputs[case].keys()
        and all(is_same(array, other.outputs[case][name]) for name, array in outputs.items())
        for case, outputs in one.outputs.items()
    )


def _tree_problems(exercise: DecisionTree, *, write: bool) -> Iterator[str]:
    path: Path = SOLUTIONS / exercise.id / exercise.file
    text = reference_text(exercise)
    if write:
        write_whole({path: text.encode()})
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        yield f"{path} does not follow from the measured outcomes: run with --write"
