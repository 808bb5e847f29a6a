"""What each check of an answer is worth: `solutions/<id>/rubric.toml`, 100 points in all."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from grader.score.solutions import SOLUTIONS
from grader.score.verdict import Criterion, CriterionScore, criterion_score
from grader.score.weights import read_weights, weighted
from grader.toml_file import read_table
from grader.written.answers.examination import Examination

RUBRIC = "rubric.toml"
# A table of figures that a kind may have beside its points.
FORMULA = "formula"


@cache
def load_points(exercise_id: str, solutions: Path = SOLUTIONS) -> Mapping[Criterion, Mapping[str, float]]:
    """Return the points of every check, in the order of the file. Raises `UserError` for a file that cannot be used."""
    path = solutions / exercise_id / RUBRIC
    criteria = tuple(name for name in read_table(path) if name not in ("format_version", FORMULA))
    return read_weights(path, criteria, beside=(FORMULA,))


def with_points(examination: Examination, exercise_id: str) -> dict[Criterion, CriterionScore]:
    """Return the criteria with the points of the exercise. Raises `ValueError` where its rubric has other checks."""
    points = load_points(exercise_id)
    known = {name: list(checks) for name, checks in points.items()}
    found = {name: [check.id for check in checks] for name, checks in examination.checks.items()}
    if {name: sorted(ids) for name, ids in known.items()} != {
        name: sorted(ids) for name, ids in found.items()
    }:
        raise ValueError(f"the rubric of {exercise_id} has the checks {known}, and its kind {found}")
    scores = {}
    for name, worth in points.items():
        checks = {check.id: check for check in examination.checks[name]}
        scores[name] = criterion_score(tuple(weighted(checks[id], worth[id]) for id in worth))
    return scores
