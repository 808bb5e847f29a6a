"""The evidence on one submission: its files, our replays, and whether we may trust the log of the fixed run.

The student's code writes the log of the fixed run, so this log may be false. We trust only files with the same bytes as
ours, runs of our own programs, and the metrics that the trusted evaluator computes. If the edit contains code that
could fake values (`grader.syntax.plain_edit`), measurements that run this code prove nothing: the instructor decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from grader.intake.submission import Claim, Submission
from grader.replay.replay import Replay
from grader.replay.replayer import HARNESS_BROKE
from grader.replay.request import OWN, Role, own_settings
from grader.score.behaviour import comparison_of
from grader.syntax.plain_edit import Suspicion, plain_edit
from grader.syntax.program import program_digest
from harness.behaviour.sound import Comparison
from harness.recipes.recipe import Recipe
from harness.run.provenance import same_class
from harness.run.settings import RunSettings
from harness.submission.document import Body
from harness.submission.log_values import LogValues, log_values
from harness.submission.report import body_of
from harness.workspace.progress import Prediction
from harness.workspace.workspace import RUNS, Run


@dataclass(frozen=True)
class Evidence:
    """One submission with its replays. The student's texts are untrusted; the replays are our own.

    same_class: whether the student's machine must give the same bytes as ours.
    again: a second replay of each run, if `same_class` is false.
    own: the broken run, the reference fix and the fixed run with the recipe's settings. They are needed if the runs
        with the student's settings cannot decide.
    comparison: the comparison of the fixed program with correct programs; None if the student handed in the broken
        program or the reference fix, or if the behaviour could not be measured.
    checks: the checks on the fixed experiment and on the reference fix, if the comparison does not decide.
    prediction: what the student predicted before the broken run.
    command_problem: the problem with the recorded commands, or "".
    """

    recipe: Recipe
    settings: RunSettings
    claims: Mapping[Run, Claim]
    source: str
    report: str | None
    broken: Replay
    fixed: Replay
    reference: Replay
    command_problem: str = ""
    missing: tuple[str, ...] = ()
    same_class: bool = True
    suspicions: tuple[Suspicion, ...] = ()
    again: Mapping[Run, Replay] = field(default_factory=dict)
    own: Mapping[Role, Replay] = field(default_factory=dict)
    comparison: Comparison | None = None
    checks: tuple[Replay, Replay] | None = None
    prediction: Prediction | None = None

    def replay(self, run: Run) -> Replay:
        """Return our replay of one of the student's runs."""
        return self.broken if run == "broken" else self.fixed

    @property
    def judged(self) -> "Evidence":
        """The evidence for judging the fix. If there are runs with the recipe's settings, they replace the others."""
        if not self.own:
            return self
        return replace(
            self,
            settings=own_settings(self.recipe, self.settings.dataset),
            broken=self.own["own broken"],
            reference=self.own["own reference"],
            fixed=self.own["own fixed"],
        )

    @cached_property
    def body(self) -> Body:
        """The text of the report; empty if there is none."""
        return body_of(self.report or "")


def evidence_of(submission: Submission, recipe: Recipe, replays: Mapping[Role, Replay]) -> Evidence:
    """Return the evidence on a submission, from the submission and its replays."""
    suspected = plain_edit(recipe.broken_source(), submission.source)
    again: dict[Run, Role] = {"broken": "broken again", "fixed": "fixed again"}
    return Evidence(
        recipe=recipe,
        settings=submission.settings,
        command_problem=submission.command_problem,
        missing=submission.missing,
        claims=submission.claims,
        source=submission.source,
        report=submission.report,
        broken=replays["broken"],
        fixed=_without_fake_fault(replays["fixed"], suspected),
        reference=replays["reference"],
        same_class=must_agree(submission, replays["broken"]),
        suspicions=suspected,
        again={run: replays[role] for run, role in again.items() if role in replays},
        own={role: _without_fake_fault(replays[role], suspected) for role in OWN if role in replays},
        comparison=comparison_of(replays),
        prediction=submission.manifest.prediction,
        checks=(replays["fixed checks"], replays["reference checks"]) if "fixed checks" in replays else None,
    )


def must_agree(submission: Submission, broken: Replay) -> bool:
    """Return whether the student's machine is of our platform class, so that it must give the same bytes as ours."""
    ours = broken.platform
    claimed = [platform for run in RUNS if (platform := submission.platform(run)) is not None]
    return ours is None or all("golden" in item and "device" in item and same_class(item, ours) for item in claimed)


def _without_fake_fault(replay: Replay, suspected: tuple[Suspicion, ...]) -> Replay:
    """Return the replay. If suspicious code may have faked a failure of the harness, blame the student's code."""
    if replay.message == HARNESS_BROKE and suspected:
        message = f"{HARNESS_BROKE}: {suspected[0].message}"
        return replay.model_copy(update={"status": "RE", "message": message})
    return replay


def same_bytes(first: Replay, second: Replay) -> bool:
    """Return whether two replays have the same log and the same checkpoint."""
    return (first.log_sha256, first.checkpoint_sha256) == (second.log_sha256, second.checkpoint_sha256)


def sound_logs(evidence: Evidence, accepted: bool | None) -> list[LogValues]:
    """Return the logs of healthy runs: of the reference fix and, if it was accepted, of the student's fix.

    A correct fix in another function may change other values of the log than the reference fix changes.
    """
    replays = [evidence.reference]
    if accepted and evidence.fixed.status == "OK" and not reason_to_doubt(evidence):
        replays.append(evidence.fixed)
    return [log_values(replay.log) for replay in replays]


def same_as_reference(evidence: Evidence) -> bool:
    """Return whether the fix gave the same bytes as the reference fix."""
    return same_bytes(evidence.fixed, evidence.reference)


def removes_a_cause(evidence: Evidence) -> bool:
    """Return whether the behaviour of the student's program shows that the edit removes a cause.

    The run may not show it: if a second cause hides it, or if the cause acts only when a run is continued.
    """
    comparison = evidence.comparison
    return comparison is not None and len(comparison.open_causes) < len(comparison.causes)


def nothing_was_edited(evidence: Evidence) -> bool:
    """Return whether the student's program is the broken program, or gives the same bytes as the broken run.

    Equal bytes prove nothing if the reference fix gives the same bytes, too, or if the behaviour of the program shows
    that a cause is gone. If nothing is broken, return False.
    """
    if evidence.recipe.is_healthy:
        return False
    broken = evidence.recipe.broken_source()
    if program_digest(evidence.source) == program_digest(broken):
        return True
    if removes_a_cause(evidence):
        return False
    judged = evidence.judged
    return same_bytes(judged.fixed, judged.broken) and not same_bytes(judged.broken, judged.reference)


def reason_to_doubt(evidence: Evidence) -> str:
    """Return a clause that names the suspicious line, if we cannot trust measurements by the student's code, or "".

    We trust the code if its run writes the same bytes as the run of the reference fix, because then both train in the
    same way.
    """
    if not evidence.suspicions or same_as_reference(evidence):
        return ""
    return evidence.suspicions[0].message
