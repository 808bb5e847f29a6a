"""Examines derivations in this process: what the sandbox would have brought back, without its start of seconds."""

import contextlib
import io
from functools import cache

import numpy as np
import torch

from grader.replay.inside.autograd import EXPECTED
from grader.written.answers.examination import Examination
from grader.written.derivation.cases import Cases, draw_cases
from grader.written.derivation.examine import judge_derivation
from grader.written.derivation.plain_numpy import derivation_suspicions
from grader.written.derivation.problems import JUDGED
from grader.written.derivation.run import AnswerRun, Called
from grader.written.derivation.seen import Seen
from harness.written.derivation.performance import load_answer, perform
from harness.written.derivation.problem import Array, Problem, WrongForm
from harness.written.exercise import Derivation, load_exercise


def derivation(exercise_id: str) -> Derivation:
    exercise = load_exercise(exercise_id)
    assert isinstance(exercise, Derivation)
    return exercise


def called(exercise: Derivation, text: str, cases: Cases) -> AnswerRun:
    """Call an answer as `grader.replay.inside.derive` does. It must be one that does nothing to this process."""
    problem = JUDGED[exercise.problem].problem
    with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        try:
            answer = load_answer(text, exercise.file, problem)
        except WrongForm as error:
            return AnswerRun("OK", problem=str(error))
        found = {}
        for case, inputs in cases.inputs.items():
            done = perform(problem, answer, inputs, exercise.file)
            found[case] = Called(done.outputs, done.problems, done.steps, done.changed, done.evaluations)
    return AnswerRun("OK", cases=found)


def by_autograd(problem: Problem, cases: Cases) -> dict[str, dict[str, Array]]:
    """Return what is right, as `grader.replay.inside.autograd` finds it."""
    found = {}
    for case, inputs in cases.inputs.items():
        given = {name: torch.from_numpy(np.array(array)) for name, array in inputs.items()}
        for tensor in given.values():
            tensor.requires_grad_(tensor.is_floating_point())
        outputs = EXPECTED[problem.name](given)
        found[case] = {name: tensor.detach().numpy() for name, tensor in outputs.items()}
    return found


@cache
def seen(exercise_id: str, text: str) -> Seen:
    """Return what is seen of an answer."""
    exercise = derivation(exercise_id)
    judged = JUDGED[exercise.problem]
    cases = draw_cases(judged.problem, text)
    run = called(exercise, text, cases)
    return Seen(judged, run, cases, by_autograd(judged.problem, cases), derivation_suspicions(text))


def examined(exercise_id: str, text: str) -> Examination:
    """Examine an answer in this process."""
    return judge_derivation(seen(exercise_id, text), text)
