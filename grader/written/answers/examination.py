"""What a kind of exercise finds in an answer, and how a kind is asked: the seam between a class and its kinds."""

from collections.abc import Mapping
from typing import Protocol

from grader.replay.replayer import Replayer
from grader.score.exhibits import Finding, ReplayOutcome
from grader.score.verdict import Check, Criterion, Flag, Model
from harness.written.exercise import FileExercise


class Examination(Model):
    """What was found in one text: checks by criterion, each worth 1 until a rubric says more.

    It depends on the text, the exercise and our own programs alone: it is the same whoever hands the text in, on
    whatever day, beside whomever. `fault` says what of ours broke, "" if nothing: then the checks could not be judged.
    """

    checks: Mapping[Criterion, tuple[Check, ...]]
    flags: tuple[Flag, ...] = ()
    findings: tuple[Finding, ...] = ()
    outcomes: tuple[ReplayOutcome, ...] = ()
    fault: str = ""


class Kind(Protocol):
    """One kind of exercise whose answer is a file.

    A kind has the same checks for every text, those of `solutions/<id>/rubric.toml`, and gives each three outcomes:
    passed, failed, could not judge. A text that is hostile, hangs or is none at all is its author's doing and ends in
    an examination like any other. `replayer` runs what must not run here.
    """

    def __call__(self, exercise: FileExercise, text: str, replayer: Replayer) -> Examination:
        """Examine a text. Raises `Stopped` where the replayer was stopped."""
        ...
