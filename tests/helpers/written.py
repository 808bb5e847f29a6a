"""Judge written functions in this process: the sandbox takes seconds to start, and these answers are harmless."""

import contextlib
import io
from functools import cache

from grader.written.functions import with_imports_judged
from grader.written.judgement import Judgement, checks_of
from grader.written.known_answers import known_answers, reference_of, solution_of
from harness.written.calls import call_cases
from harness.written.comparison import judge_answer, plan_of
from harness.written.exercise import FunctionExercise, file_exercise_ids, load_exercise
from harness.written.inputs import draw_inputs

EXERCISES = [name for name in file_exercise_ids() if isinstance(load_exercise(name), FunctionExercise)]


@cache
def written(exercise_id: str) -> FunctionExercise:
    exercise = load_exercise(exercise_id)
    assert isinstance(exercise, FunctionExercise)
    return exercise


def solution(exercise_id: str) -> str:
    return solution_of(written(exercise_id))


def known_source(exercise_id: str, id: str) -> str:
    """Return the text of a known answer."""
    [answer] = (one for one in known_answers(exercise_id) if one.id == id)
    return answer.source(solution(exercise_id))


@cache
def judged(exercise_id: str, text: str) -> Judgement:
    """Judge a harmless answer without the sandbox."""
    exercise = written(exercise_id)
    cases = draw_inputs(exercise, text)
    with contextlib.redirect_stdout(io.StringIO()):
        results = call_cases(plan_of(exercise), text, cases)
    findings = judge_answer(exercise, text, cases, results, reference_of(exercise, cases))
    return Judgement(checks=checks_of(with_imports_judged(exercise, findings, text)))


def outcomes(judgement: Judgement, outcome: str) -> set[str]:
    """Return the addresses of the items with this outcome."""
    return {
        f"{criterion}.{check.id}"
        for criterion, checks in judgement.checks.items()
        for check in checks
        if check.outcome == outcome
    }
