"""Scores a class: takes the tarballs in, replays what is distinct, scores each submission, in any order alike."""

import hashlib
import json
import traceback
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from grader.answers.room import Answers
from grader.canaries import check_canaries
from grader.code_state import code_state
from grader.evidence import Evidence, lexicon_of, recipe_of, solution_of
from grader.graded import Graded, graded_row, nothing_to_show, row_without_checks
from grader.intake.answer import Answer, parse_tarball
from grader.intake.gunzip import read_tarball
from grader.intake.rejected import Rejected
from grader.intake.submission import submission_name
from grader.memory.kinds import SCORES
from grader.replay import Replay
from grader.replayer import HARNESS_BROKE, Replayer
from grader.replays import Progress, Replays
from grader.requests import canary_requests
from grader.rubric.weights import Weights
from grader.score import Scores
from grader.store import Store
from grader.syntax.plain_code import Suspicion, suspicions
from grader.taken import Taken, agree, take_in


class Classroom:
    """One class to score with one replayer.

    What was replayed before is not replayed again, and an unchanged submission is not scored again: both are
    remembered in the folder `memory`.
    """

    def __init__(
        self,
        replayer: Replayer,
        memory: Path,
        weights: Weights,
        *,
        jobs: int,
        fresh: bool = False,
        trusted_submissions: bool = False,
    ) -> None:
        self._replays = Replays(replayer, memory, jobs=jobs, fresh=fresh)
        self._answers = Answers(replayer, jobs=jobs, trusted_submissions=trusted_submissions)
        self._graded_store = Store(memory / SCORES.folder, Graded)
        self._weights = weights
        self._fresh = fresh
        self._trusted_submissions = trusted_submissions

    def score(self, paths: Sequence[Path], progress: Progress) -> list[Graded]:
        """Return the rows of the class, sorted by name.

        `progress(done, all)` counts replays. Raises `CanaryFailed` where the grader does not grade right here;
        nothing is scored then.
        """
        taken: list[Taken] = []
        answers: list[Answer] = []
        graded: list[Graded] = []
        for path in paths:
            intake = self._take(path)
            if isinstance(intake, Taken):
                taken.append(intake)
            elif isinstance(intake, Answer):
                answers.append(intake)
            else:
                graded.append(intake)
        self._check_canaries({item.recipe for item in taken}, progress)
        self._answers.check_canaries(answers)
        firsts = ((item.requests.broken, item.requests.reference, item.requests.fixed) for item in taken)
        self._replays.make(chain.from_iterable(firsts), progress)
        again = (item.requests.again().values() for item in taken if not self._same_class(item))
        self._replays.make(chain.from_iterable(again), progress)
        for item in taken:
            graded.append(self._graded(item))
            self._keep(item, graded[-1])
        graded += self._answers.grade(answers, progress, self._keep)
        return sorted(graded, key=lambda item: item.row.submission)

    def _keep(self, item: Taken | Answer, graded: Graded) -> None:
        if graded.row.status == "graded":
            self._graded_store.put(self._key(item.name, item.sha256), graded)

    def _check_canaries(self, recipes: Iterable[str], progress: Progress) -> None:
        """Raise `CanaryFailed` where the grader does not grade right here; no student's code has run by then."""
        canaries = {recipe: canary_requests(recipe) for recipe in sorted(recipes)}
        self._replays.make(chain.from_iterable(canaries.values()), progress)
        for recipe, requests in canaries.items():
            check_canaries(recipe, *map(self._replays.of, requests), weights=self._weights)

    def _key(self, name: str, sha256: str) -> str:
        """Return the SHA-256 of all that decides about a submission's score."""
        parts = [name, sha256, code_state(), dict(self._weights), self._trusted_submissions]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _take(self, path: Path) -> Taken | Answer | Graded:
        """Return the submission, or its row where it cannot be taken or was scored before: its bytes tell."""
        name = submission_name(path)
        try:
            data = read_tarball(path)
            digest = hashlib.sha256(data).hexdigest()
            known = None if self._fresh else self._graded_store.get(self._key(name, digest))
            if known is not None:
                return known
            parsed = parse_tarball(name, data, digest)
            return parsed if isinstance(parsed, Answer) else take_in(parsed)
        except Rejected as refusal:
            row = row_without_checks(
                name, refusal.student, refusal.recipe, "rejected", f"{refusal.message} ({refusal.code})"
            )
        except Exception as error:
            traceback.print_exc()
            row = row_without_checks(
                name, None, None, "not judged", f"The grader failed on it: {type(error).__name__}."
            )
        return Graded(row=row, exhibits=nothing_to_show(name))

    def _same_class(self, item: Taken) -> bool:
        ours = self._replays.of(item.requests.broken).platform
        told = [claim.platform for claim in item.claims.values() if claim.platform is not None]
        return ours is None or all(agree(platform, ours) for platform in told)

    def _graded(self, item: Taken) -> Graded:
        try:
            return graded_row(
                item, self._evidence(item), self._weights, sandboxed=not self._trusted_submissions
            )
        except Exception as error:
            traceback.print_exc()
            reason = f"The grader failed on it: {type(error).__name__}."
            row = row_without_checks(item.name, item.student, item.recipe, "not judged", reason)
            return Graded(row=row, exhibits=nothing_to_show(item.name))

    def _evidence(self, item: Taken) -> Evidence:
        runs, same = item.requests, self._same_class(item)
        suspected = suspicions(item.source)
        return Evidence(
            recipe=recipe_of(item.recipe),
            solution=solution_of(item.recipe),
            lexicon=lexicon_of(item.recipe),
            settings=item.settings,
            command_problem=item.command_problem,
            missing=item.missing,
            claims=item.claims,
            source=item.source,
            report=item.report,
            broken=self._replays.of(runs.broken),
            fixed=_believed(self._replays.of(runs.fixed), suspected),
            reference=self._replays.of(runs.reference),
            same_class=same,
            suspicions=suspected,
            again={} if same else {run: self._replays.of(request) for run, request in runs.again().items()},
        )


def _believed(replay: Replay, suspected: tuple[Suspicion, ...]) -> Replay:
    """Return the replay; what says that we broke is not believed of code that can say so itself."""
    if replay.message == HARNESS_BROKE and suspected:
        return replay.model_copy(
            update={"status": "RE", "message": f"{HARNESS_BROKE}: {suspected[0].message}"}
        )
    return replay


def scores_of(graded: Sequence[Graded], provenance: Mapping[str, str | int | float | bool | None]) -> Scores:
    """Return the whole of `scores.json`."""
    return Scores(provenance=dict(provenance), submissions=tuple(item.row for item in graded))
