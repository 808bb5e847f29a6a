"""What is done with each submission, in whatever process: it is taken in, and its evidence is scored."""

import hashlib
import json
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from grader.graded import Graded, graded_row, nothing_to_show, row_without_checks
from grader.intake.answer import Answer, parse_tarball
from grader.intake.gunzip import read_tarball
from grader.intake.rejected import Rejected
from grader.intake.submission import submission_name
from grader.plan import Plan, plan_of
from grader.replay.memory.kinds import SCORES
from grader.replay.replay import Replay
from grader.replay.replayer import HARNESS_BROKE
from grader.replay.store import Store
from grader.score.code_state import code_state
from grader.score.evidence import Evidence, Run, recipe_of
from grader.score.verdict import SubmissionScore
from grader.score.weights import Weights
from grader.spool import Spool
from grader.syntax.plain_code import Suspicion, suspicions
from grader.taken import Taken, take_in


@dataclass(frozen=True)
class Replayed:
    """The replays of one submission; `again` holds second ones where equal bytes cannot be demanded."""

    broken: Replay
    reference: Replay
    fixed: Replay
    again: Mapping[Run, Replay]
    same_class: bool


@dataclass(frozen=True)
class Desk:
    """How a class is taken in and scored. What a submission needs later is put aside in the spool.

    An unchanged submission is not scored again: its row is remembered in `memory`, unless all is to be `fresh`.
    """

    spool: Spool
    memory: Path
    weights: Weights
    fresh: bool = False
    trusted_submissions: bool = False

    def take(self, path: Path) -> Plan | Answer | SubmissionScore:
        """Return what has to be replayed, an answer to examine, or a row.

        It is a row where the tarball cannot be taken, or was scored before: its bytes tell.
        """
        name = submission_name(path)
        try:
            found = self._taken(name, path)
        except Rejected as refusal:
            reason = f"{refusal.message} ({refusal.code})"
            row = row_without_checks(name, refusal.student, refusal.recipe, "rejected", reason)
            found = Graded(row=row, exhibits=nothing_to_show(name))
        except Exception as error:
            traceback.print_exc()
            return self.not_judged(name, None, None, f"The grader failed on it: {type(error).__name__}.")
        if isinstance(found, Graded):
            return self._put_aside(found)
        if isinstance(found, Answer):
            return found
        self.spool.put_taken(found)
        return plan_of(found)

    def _taken(self, name: str, path: Path) -> Taken | Answer | Graded:
        """Return what is in a tarball, or what is remembered of it. Raises `Rejected`."""
        data = read_tarball(path)
        digest = hashlib.sha256(data).hexdigest()
        known = None if self.fresh else self._rows.get(self._key(name, digest))
        if known is not None:
            return known
        parsed = parse_tarball(name, data, digest)
        return parsed if isinstance(parsed, Answer) else take_in(parsed)

    def score(self, work: tuple[Plan, Replayed]) -> SubmissionScore:
        """Return the row of a submission that was taken in and replayed."""
        plan, replayed = work
        taken = self.spool.taken(plan.name)
        try:
            evidence = _evidence(taken, replayed)
            graded = graded_row(taken, evidence, self.weights, sandboxed=not self.trusted_submissions)
        except Exception as error:
            traceback.print_exc()
            reason = f"The grader failed on it: {type(error).__name__}."
            return self.not_judged(plan.name, plan.student, plan.recipe, reason)
        return self.keep(taken.sha256, graded)

    def keep(self, sha256: str, graded: Graded) -> SubmissionScore:
        """Remember the row of a tarball with this SHA-256, unless something of it is open, and return it."""
        if graded.row.status == "graded":
            self._rows.put(self._key(graded.row.submission, sha256), graded)
        return self._put_aside(graded)

    def not_judged(self, name: str, student: str | None, recipe: str | None, reason: str) -> SubmissionScore:
        """Return the row of a submission that the grader failed on."""
        row = row_without_checks(name, student, recipe, "not judged", reason)
        return self._put_aside(Graded(row=row, exhibits=nothing_to_show(name)))

    def note_use(self, row: SubmissionScore) -> None:
        """Note, in the process that bounds the memory, that a row was read or written there."""
        if row.status == "graded":
            self._rows.note_use(self._key(row.submission, str(row.provenance["tarball_sha256"])))

    def _put_aside(self, graded: Graded) -> SubmissionScore:
        self.spool.put_exhibits(graded.exhibits)
        return graded.row

    @property
    def _rows(self) -> Store[Graded]:
        return _store(self.memory / SCORES.folder)

    def _key(self, name: str, sha256: str) -> str:
        """Return the SHA-256 of all that decides about a submission's score."""
        parts = [name, sha256, code_state(), dict(self.weights), self.trusted_submissions]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@cache
def _store(folder: Path) -> Store[Graded]:
    """Return the store of a folder: one a process, whichever desk asks."""
    return Store(folder, Graded)


def _evidence(taken: Taken, replayed: Replayed) -> Evidence:
    suspected = suspicions(taken.source)
    return Evidence(
        recipe=recipe_of(taken.recipe),
        settings=taken.settings,
        command_problem=taken.command_problem,
        missing=taken.missing,
        claims=taken.claims,
        source=taken.source,
        report=taken.report,
        broken=replayed.broken,
        fixed=_believed(replayed.fixed, suspected),
        reference=replayed.reference,
        same_class=replayed.same_class,
        suspicions=suspected,
        again=replayed.again,
    )


def _believed(replay: Replay, suspected: tuple[Suspicion, ...]) -> Replay:
    """Return the replay; what says that we broke is not believed of code that can say so itself."""
    if replay.message == HARNESS_BROKE and suspected:
        return replay.model_copy(
            update={"status": "RE", "message": f"{HARNESS_BROKE}: {suspected[0].message}"}
        )
    return replay
