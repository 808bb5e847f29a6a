"""Judge derivations in this process, because the sandbox takes seconds to start and these answers are harmless."""

import contextlib
import io
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from grader.written.derivation import with_imports_judged
from grader.written.judgement import Judgement, checks_of
from harness.recipes.recipe import Edit, apply_edits
from harness.written.derivation import PROBLEMS, draw_inputs
from harness.written.derivation_call import call_cases
from harness.written.derivation_judge import judge_answer
from harness.written.exercise import Derivation, file_exercise_ids, load_exercise

ROOT = Path(__file__).parents[2]
EXERCISES = [name for name in file_exercise_ids() if isinstance(load_exercise(name), Derivation)]


def derivation(exercise_id: str) -> Derivation:
    exercise = load_exercise(exercise_id)
    assert isinstance(exercise, Derivation)
    return exercise


def solution(exercise_id: str) -> str:
    return (ROOT / "solutions" / exercise_id / derivation(exercise_id).file).read_text(encoding="utf-8")


@cache
def known_answers(exercise_id: str) -> dict[str, dict[str, Any]]:
    """Return the answers of `tests/data/answers/<id>.toml` by id, each with its `source`."""
    table = tomllib.loads((ROOT / "tests" / "data" / "answers" / f"{exercise_id}.toml").read_text(encoding="utf-8"))
    found = {}
    for answer in table["answer"]:
        edits = [Edit(**edit) for edit in answer.get("edit", [])]
        source = answer.get("text") or apply_edits(solution(exercise_id), edits, where=answer["id"])
        found[answer["id"]] = {**answer, "source": source}
    return found


@cache
def judged(exercise_id: str, text: str) -> Judgement:
    """Judge a harmless answer without the sandbox."""
    exercise = derivation(exercise_id)
    problem, cases = PROBLEMS[exercise.problem], draw_inputs(PROBLEMS[exercise.problem], text)
    with contextlib.redirect_stdout(io.StringIO()):
        findings = judge_answer(problem, cases, call_cases(problem, exercise.file, text, cases))
    return Judgement(checks=checks_of(with_imports_judged(findings, text)))


def outcomes(judgement: Judgement, outcome: str) -> set[str]:
    """Return the addresses of the items with this outcome."""
    return {
        f"{criterion}.{check.id}"
        for criterion, checks in judgement.checks.items()
        for check in checks
        if check.outcome == outcome
    }
