"""Scores a class: takes the tarballs in, replays what is distinct, scores each submission, in any order alike."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from grader.answers.room import Answers
from grader.canaries import CanaryFailed, check_canaries
from grader.crew import Crew
from grader.desk import Desk, Replayed
from grader.intake.answer import Answer
from grader.intake.submission import submission_name
from grader.plan import Plan
from grader.progress import Progress
from grader.replay import Replay
from grader.replays import Replays
from grader.requests import Request, canary_requests
from grader.rubric.weights import Weights
from grader.score import Scores, SubmissionScore

_LOST = "The grader's process ended, twice, while it was at this submission."


class Classroom:
    """One class: each submission at the desk, by a crew; between taking in and scoring, the replays of all."""

    def __init__(self, replays: Replays, answers: Answers, desk: Desk, crew: Crew) -> None:
        self._replays = replays
        self._answers = answers
        self._desk = desk
        self._crew = crew

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
        self._check_canaries({plan.recipe for plan in plans}, progress)
        self._answers.check_canaries(answers)
        self._replay(plans, progress)
        progress.begin("scoring", len(plans))
        # Those with the same fix one after the other: what is read of a replay is read once for all of them.
        alike = sorted(plans, key=lambda plan: (plan.recipe, plan.requests.fixed.key))
        rows += self._crew.each(
            self._desk.score,
            [(plan, self._replayed(plan)) for plan in alike],
            lost=lambda work: self._desk.not_judged(work[0].name, work[0].student, work[0].recipe, _LOST),
            noted=lambda work, seconds: progress.done(work[0].name, seconds),
        )
        graded = self._answers.grade(answers, progress)
        rows += [self._desk.keep(answer.sha256, item) for answer, item in graded]
        for row in rows:
            self._desk.note_use(row)
        return sorted(rows, key=lambda row: row.submission)

    def _check_canaries(self, recipes: Iterable[str], progress: Progress) -> None:
        """Raise `CanaryFailed` where the grader does not grade right here; no student's code has run by then."""
        canaries = {recipe: canary_requests(recipe) for recipe in sorted(recipes)}
        wanted = [(f"canary of {recipe}", item) for recipe, items in canaries.items() for item in items]
        self._replays.make("canaries", wanted, progress)
        self._crew.each(
            partial(_check_canaries, self._desk.weights),
            [(recipe, tuple(map(self._replays.of, requests))) for recipe, requests in canaries.items()],
            lost=_canaries_lost,
            noted=lambda item, seconds: None,
        )

    def _replay(self, plans: Sequence[Plan], progress: Progress) -> None:
        wanted: list[tuple[str, Request]] = []
        for plan in plans:
            requests = plan.requests
            wanted += ((plan.name, item) for item in (requests.broken, requests.reference, requests.fixed))
        self._replays.make("replays", wanted, progress)
        again = [
            (plan.name, request)
            for plan in plans
            if not plan.same_class(self._replays.of(plan.requests.broken))
            for request in plan.requests.again().values()
        ]
        self._replays.make("replays", again, progress)

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


def _check_canaries(weights: Weights, item: tuple[str, tuple[Replay, ...]]) -> None:
    recipe, (broken, reference, repaired) = item
    check_canaries(recipe, broken, reference, repaired, weights=weights)


def _canaries_lost(item: tuple[str, tuple[Replay, ...]]) -> None:
    raise CanaryFailed(
        f"Nothing was scored: the process that looked at the canaries of {item[0]} ended, twice."
    )


def scores_of(
    rows: Sequence[SubmissionScore], provenance: Mapping[str, str | int | float | bool | None]
) -> Scores:
    """Return the whole of `scores.json`."""
    return Scores(provenance=dict(provenance), submissions=tuple(rows))
