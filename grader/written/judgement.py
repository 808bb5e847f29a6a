"""The judgement of an answer that is one file: its rubric items, and the points that the rubric gives them."""

from collections.abc import Callable, Iterable, Mapping

from grader.sandbox import SandboxCommand, SandboxResult
from grader.score.attachments import AnswerTable
from grader.score.rubric import Criterion
from grader.score.verdict import CriterionScore, Flag, RubricItem, criterion_score, full, lost, open_item, scale_check
from harness.formats.toml_file import StrictModel
from harness.written.comparison import AnswerCheck
from harness.written.exercise import FileExercise

# A function that runs a command in the sandbox, such as `grader.replay.replayer.Replayer.run`.
RunCommand = Callable[[SandboxCommand], SandboxResult]
Checks = Mapping[Criterion, tuple[RubricItem, ...]]


class Judgement(StrictModel):
    """The rubric items of one answer, by criterion. Each item has at most 1 point, which `with_points` scales.

    A judgement depends only on the text of the answer, the exercise and our own programs. fault: a sentence about the
    failure, if the grader failed, else "". If the grader failed, there are no items.
    """

    checks: Checks
    flags: tuple[Flag, ...] = ()
    findings: tuple[AnswerTable, ...] = ()
    fault: str = ""


def checks_of(findings: Iterable[AnswerCheck]) -> Checks:
    """Convert findings to rubric items, and return the items by criterion."""
    checks: dict[Criterion, tuple[RubricItem, ...]] = {}
    for item in findings:
        if item.points is None:
            check = open_item(item.id, item.title, 1, item.reason)
        elif item.points == 1:
            check = full(item.id, item.title, 1, item.reason)
        else:
            check = lost(item.id, item.title, 1, item.reason, item.remedy, points=item.points)
        checks[item.criterion] = (*checks.get(item.criterion, ()), check)
    return checks


def with_points(judgement: Judgement, exercise: FileExercise) -> dict[Criterion, CriterionScore]:
    """Return the criteria with the points of the exercise. Raises `ValueError` if the items of both differ."""
    scores = {}
    for criterion, worth in exercise.points.items():
        checks = {check.id: check for check in judgement.checks.get(criterion, ())}
        if checks.keys() != worth.keys():
            raise ValueError(f"{exercise.id}: {criterion} has items {[*worth]}, but the judge returned {[*checks]}")
        scores[criterion] = criterion_score(tuple(scale_check(checks[id], worth[id]) for id in worth))
    return scores
