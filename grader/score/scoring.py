"""Score a submission. The score depends only on the submission, its replays and the points in the rubric."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from grader.intake.submission import Answer, Submission
from grader.replay.replay import Replay
from grader.replay.request import Role
from grader.score.attachments import Attachments
from grader.score.diagnostics import judge_diagnostics
from grader.score.evidence import Evidence, evidence_of, same_as_reference
from grader.score.explanation import judge_explanation
from grader.score.fix import judge_fix
from grader.score.gates import limits_of, with_gates
from grader.score.measurements import measurements
from grader.score.oral import oral_card
from grader.score.reproducibility import judge_reproducibility, trusted_log
from grader.score.rubric import CRITERIA, Criterion, Weights
from grader.score.verdict import (
    CriterionScore,
    Flag,
    Gate,
    RubricItem,
    SubmissionScore,
    criterion_score,
    scale_check,
    with_criteria,
)
from harness.recipes.recipe import Recipe
from harness.run.files import METRICS_LOG
from harness.workspace.progress import MOST_HINTS
from harness.workspace.workspace import RUNS

WITHOUT_SANDBOX = "Students' code ran WITHOUT a sandbox (--trust-submissions): it could have faked its results."
_IGNORED_NAMES = 10

ProvenanceFact = str | int | float | bool | None


@dataclass(frozen=True)
class Score:
    """One row of `scores.json`, and the attachments for the page of the submission."""

    row: SubmissionScore
    attachments: Attachments


def score_submission(
    submission: Submission, recipe: Recipe, replays: Mapping[Role, Replay], weights: Weights, *, sandboxed: bool = True
) -> Score:
    """Score a submission from its replays. If an item could not be judged, the row waits for the instructor."""
    evidence = evidence_of(submission, recipe, replays)
    hints = submission.manifest.hints
    flags = [*flags_of(evidence), *ignored_flags(submission.ignored)]
    facts: dict[str, ProvenanceFact] = {
        "seed": submission.settings.seed,
        "dataset": submission.settings.dataset,
        "same_platform_class": evidence.same_class,
        "tree_sha256": submission.tree,
        **{f"{run}_log_sha256": submission.manifest.files.get(f"runs/{run}/{METRICS_LOG}") for run in RUNS},
    }
    if hints:
        facts["hints"] = hints
        message = f"The student used {hints} of {MOST_HINTS} hints, according to the workspace. Hints cost no points."
        flags.append(Flag(id="hints", message=message))
    if submission.manifest.revealed:
        facts["revealed"] = True
        message = "The student looked at the solution before handing this in, according to the workspace."
        flags.append(Flag(id="revealed", message=message))
    if submission.manifest.named_checks:
        message = (
            "The student asked `make verify` which checks differ, according to the workspace. This costs no points."
        )
        flags.append(Flag(id="named checks", message=message))
    row = scored_row(
        submission.name, submission.student, submission.recipe, submission.sha256,
        score_evidence(evidence, weights), flags, facts,
        sandboxed=sandboxed, limits=tuple(limits_of(evidence.recipe, weights.gates)),
    )  # fmt: skip
    return Score(row, attachments_of(submission.name, evidence))


def scored_row(
    name: str,
    student: str,
    exercise: str,
    sha256: str,
    criteria: dict[Criterion, CriterionScore],
    flags: Sequence[Flag],
    facts: Mapping[str, ProvenanceFact],
    *,
    sandboxed: bool,
    limits: tuple[Gate, ...] = (),
) -> SubmissionScore:
    """Return the row of a submission with these criteria.

    student, exercise: their names in the manifest. facts: further entries for the provenance. limits: the gates that
    may limit the total.
    """
    row = score_as_unread(name, "", student=student, exercise=exercise).row
    warning = {} if sandboxed else {"warning": WITHOUT_SANDBOX}
    no_sandbox = () if sandboxed else (Flag(id="no sandbox", message=WITHOUT_SANDBOX),)
    provenance = {**warning, "tarball_sha256": sha256, "sandbox": sandboxed, **facts}
    row = replace(row, flags=(*no_sandbox, *flags, *row.flags), provenance=provenance, limits=limits)
    return with_criteria(row, criteria)


def score_as_unjudged(read: Submission | Answer, reason: str, *flags: Flag) -> Score:
    """Return the score, without a total, of a submission that the grader has read but could not judge."""
    score = score_as_unread(read.name, reason, student=read.student, exercise=read.recipe)
    row = replace(score.row, flags=(*flags, *score.row.flags), provenance={"tarball_sha256": read.sha256})
    return replace(score, row=row)


def score_as_unread(
    name: str, reason: str, *, student: str | None = None, exercise: str | None = None, rejected: bool = False
) -> Score:
    """Return the score of a tarball that was rejected (total 0), or that the grader failed to read (no total).

    student, exercise: their names in the manifest, or None if the manifest could not be read.
    """
    row = SubmissionScore(
        submission=name,
        student=student or "",
        recipe=exercise or "",
        status="rejected" if rejected else "not judged",
        reason=reason,
        total=0.0 if rejected else None,
        criteria={},
        flags=(),
        provenance={},
    )
    return Score(row, Attachments(submission=name))


def ignored_flags(ignored: Sequence[str]) -> tuple[Flag, ...]:
    """Return a flag that lists the ignored files of a tarball; () if no file was ignored."""
    names = ", ".join(ignored[:_IGNORED_NAMES])
    more = "" if len(ignored) <= _IGNORED_NAMES else f" and {len(ignored) - _IGNORED_NAMES} more"
    message = f"The grader ignored files that do not belong to a submission: {names}{more}."
    return (Flag(id="ignored files", message=message),) if ignored else ()


def score_evidence(evidence: Evidence, weights: Weights) -> dict[Criterion, CriterionScore]:
    """Judge every rubric item, apply the gates and the points of the rubric, and return the score of each criterion."""
    fix = judge_fix(evidence)
    accepted = None if fix[0].outcome == "could not judge" else fix[0].outcome == "passed"
    cited = _with_citable_logs(evidence)
    by_criterion: Mapping[Criterion, tuple[RubricItem, ...]] = {
        "reproducibility": judge_reproducibility(evidence),
        "diagnostics": judge_diagnostics(cited, accepted),
        "fix": fix,
        "explanation": judge_explanation(cited, accepted),
    }
    judged = with_gates(by_criterion, weights.gates)
    return {
        criterion: criterion_score(
            tuple(scale_check(check, weights[criterion][check.id]) for check in judged[criterion])
        )
        for criterion in CRITERIA
    }


def _with_citable_logs(evidence: Evidence) -> Evidence:
    """Return the evidence with the logs that a report may cite: `trusted_log` chooses the student's log or ours."""
    if evidence.same_class:
        return evidence
    broken, fixed = (evidence.replay(run).model_copy(update={"log": trusted_log(evidence, run)}) for run in RUNS)
    return replace(evidence, broken=broken, fixed=fixed)


def flags_of(evidence: Evidence) -> tuple[Flag, ...]:
    """Return the flags for the instructor."""
    flags = [
        Flag(
            id="not checked by machine",
            message=f"{one.message}. Your instructor looks at this {'line' if one.line else 'file'}.",
        )
        for one in evidence.suspicions[:10]
    ]
    if evidence.suspicions and evidence.fixed.status == "OK" and same_as_reference(evidence):
        message = "The fixed run has the same bytes as the reference fix, so the lines above cost no points."
        flags.append(Flag(id="not checked by machine", message=message))
    if not evidence.same_class:
        message = "According to the submission, the student has another type of machine. Its bytes may differ."
        flags.append(Flag(id="other platform", message=message))
    own = evidence.recipe
    if evidence.settings.seed != own.seed and not own.personal_seeds:  # the roster is used to check personal seeds
        message = f"The seed of the runs is {evidence.settings.seed}, but the seed of the exercise is {own.seed}."
        flags.append(Flag(id="other settings", message=message))
    for name in ("epochs", "batch_size"):
        value = getattr(evidence.settings, name)
        if value is not None:
            message = f"In both runs, the student set {name.replace('_', ' ')} to {value}."
            flags.append(Flag(id="other settings", message=message))
    return tuple(flags)


def attachments_of(name: str, evidence: Evidence) -> Attachments:
    """Return the attachments for the page of a submission."""
    return Attachments(
        submission=name,
        broken_source=sys.intern(evidence.recipe.broken_source()),  # all submissions of a class share one string
        fixed_source=evidence.source,
        report=evidence.report,
        measurements=measurements(evidence),
        symptom="; ".join(symptom.says for symptom in evidence.recipe.on(evidence.settings.dataset).symptoms),
        questions=oral_card(evidence),
    )
