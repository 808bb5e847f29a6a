"""What the grader finds in an answer: the checks of its criteria, and the points that a rubric gives them."""

from collections.abc import Callable, Mapping
from functools import cache

from grader.sandbox import Command, SandboxResult
from grader.score.exhibits import Finding, ReplayOutcome
from grader.score.solutions import SOLUTIONS
from grader.score.verdict import Check, Criterion, CriterionScore, Flag, Model, criterion_score
from grader.score.weights import read_weights, weighted
from harness.toml_file import read_table

# Runs a command in the sandbox, as `grader.replay.replayer.Replayer.run` does.
Run = Callable[[Command], SandboxResult]
RUBRIC = "rubric.toml"


class Judgement(Model):
    """The checks of one answer by criterion, each worth 1 point until a rubric weighs it.

    It depends only on the text, the exercise and our own programs. `fault` says what of ours failed, "" if nothing:
    then there are no checks.
    """

    checks: Mapping[Criterion, tuple[Check, ...]]
    flags: tuple[Flag, ...] = ()
    findings: tuple[Finding, ...] = ()
    outcomes: tuple[ReplayOutcome, ...] = ()
    fault: str = ""


@cache
def load_points(exercise_id: str) -> Mapping[Criterion, Mapping[str, float]]:
    """Return the points of every check from `solutions/<id>/rubric.toml`. Raises `UserError` for a wrong file."""
    path = SOLUTIONS / exercise_id / RUBRIC
    return read_weights(path, tuple(name for name in read_table(path) if name != "format_version"))


def with_points(judgement: Judgement, exercise_id: str) -> dict[Criterion, CriterionScore]:
    """Return the criteria with the rubric's points. Raises `ValueError` if the rubric has other checks."""
    points = load_points(exercise_id)
    scores = {}
    for criterion, worth in points.items():
        checks = {check.id: check for check in judgement.checks.get(criterion, ())}
        if checks.keys() != worth.keys():
            raise ValueError(
                f"{exercise_id}: [{criterion}] has {list(worth)} and its judge has {list(checks)}"
            )
        scores[criterion] = criterion_score(tuple(weighted(checks[id], worth[id]) for id in worth))
    return scores
