"""Scores a class: takes the tarballs in, replays what is distinct, scores each submission, in any order alike."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from grader.crew import Crew
from grader.desk import Desk, Replayed
from grader.intake.answer import Answer
from grader.intake.submission import submission_name
from grader.plan import Plan
from grader.replay.replays import Replays
from grader.replay.requests import Request
from grader.report.progress import Progress
from grader.score.canary_check import CanaryCheck
from grader.score.verdict import Scores, SubmissionScore
from grader.written.answers.room import Answers

_LOST = "The grader's process ended, twice, while it was at this submission."


class Classroom:
    """One class: each submission at the desk, by a crew; between taking in and scoring, the replays of all."""

    def __init__(self, replays: Replays, answers: Answers, desk: Desk, crew: Crew) -> None:
        self._replays = replays
        self._answers = answers
        self._desk = desk
        self._crew = crew
        self._canaries = CanaryCheck(replays, desk, crew)

    def score(self, paths: Sequence[Path], progress: Progress) -> list[SubmissionScore]:
        """Return the rows of the class, sorted by name; what their pages show lies in the desk's spool.

        Raises `CanaryFailed` where the grader does not grade right here; nothing is scored then.
        """
        progress.begin("taking in", len(paths))
        taken = self._crew.each(
            self._desk.take,
            paths,
            lost=lambda path: self._desk.not_judged(submission_name(path), None, None, _LOST),
            noted=lambda path, seconds: progress.done(submission_name(path), seconds),
        )
        rows = [item for item in taken if isinstance(item, SubmissionScore)]
        plans = [item for item in taken if isinstance(item, Plan)]
        answers = [item for item in taken if isinstance(item, Answer)]
        self._canaries.check({plan.recipe for plan in plans}, progress)
        self._answers.check_canaries(answers)
        # What has all its replays is scored while others are still made: the last may run for minutes, and alone.
        scored = self._crew.batch(
            self._desk.score,
            lost=lambda work: self._desk.not_judged(work[0].name, work[0].student, work[0].recipe, _LOST),
        )
        self._replay(plans, progress, lambda plan: scored.add((plan, self._replayed(plan))))
        progress.begin("scoring", len(plans))
        rows += scored.results(lambda work, seconds: progress.done(work[0].name, seconds))
        graded = self._answers.grade(answers, progress)
        rows += [self._desk.keep(answer.sha256, item) for answer, item in graded]
        for row in rows:
            self._desk.note_use(row)
        return sorted(rows, key=lambda row: row.submission)

    def _replay(self, plans: Sequence[Plan], progress: Progress, complete: Callable[[Plan], None]) -> None:
        """Make the replays of all; each plan is given to `complete` as soon as all of its own are there."""
        # Those with the same fix one after the other: what is read of a replay is read once for all of them.
        alike = sorted(plans, key=lambda plan: (plan.recipe, plan.requests.fixed.key))
        by_name = {plan.name: plan for plan in alike}
        wanted: list[tuple[str, Request]] = []
        again: list[tuple[str, Request]] = []
        for name, plan in by_name.items():
            requests = plan.requests
            wanted += ((name, item) for item in (requests.broken, requests.reference, requests.fixed))

        def first_complete(name: str) -> None:
            plan = by_name[name]
            if plan.same_class(self._replays.of(plan.requests.broken)):
                complete(plan)
            else:
                again.extend((name, request) for request in plan.requests.again().values())

        self._replays.make("replays", wanted, progress, first_complete)
        self._replays.make("replays", again, progress, lambda name: complete(by_name[name]))

    def _replayed(self, plan: Plan) -> Replayed:
        requests = plan.requests
        broken = self._replays.of(requests.broken)
        same = plan.same_class(broken)
        return Replayed(
            broken=broken,
            reference=self._replays.of(requests.reference),
            fixed=self._replays.of(requests.fixed),
            again={} if same else {run: self._replays.of(item) for run, item in requests.again().items()},
            same_class=same,
        )


def scores_of(
    rows: Sequence[SubmissionScore], provenance: Mapping[str, str | int | float | bool | None]
) -> Scores:
    """Return the whole of `scores.json`."""
    return Scores(provenance=dict(provenance), submissions=tuple(rows))
