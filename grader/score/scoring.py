"""Score a submission: a pure function of the submission, its replays and the weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal

from grader.intake.submission import Answer, Submission
from grader.replay.replay import Replay
from grader.replay.request import Role
from grader.score.belief import same_as_reference
from grader.score.diagnostics import judge_diagnostics
from grader.score.evidence import Evidence, evidence_of
from grader.score.exhibits import (
    ChartedRun,
    CitedNumber,
    Curve,
    Exhibits,
    HashComparison,
    HashedFile,
    Process,
    ReplayOutcome,
)
from grader.score.explanation import body_of, judge_explanation, numbers_of
from grader.score.fix import judge_fix
from grader.score.measured import measurements
from grader.score.reproducibility import judge_reproducibility
from grader.score.verdict import (
    CRITERIA,
    Check,
    Criterion,
    CriterionScore,
    Flag,
    SubmissionScore,
    criterion_score,
    rescored,
)
from grader.score.weights import Weights, weighted
from harness.hints import LEVELS
from harness.run.metrics_log import batch_records, epoch_records, to_strict
from harness.workspace import RUNS
from harness.written.exercise import exercise_ids

WITHOUT_SANDBOX = "Students' code ran WITHOUT a sandbox (--trust-submissions): nothing kept it from lying."
_POINTS_OF_A_CURVE = 200
_WHAT: dict[ChartedRun, Process] = {
    "broken": "broken run",
    "fixed": "fixed run",
    "reference": "reference run",
}

Facts = Mapping[str, str | int | float | bool | None]


@dataclass(frozen=True)
class Score:
    """One row of `scores.json`, and what the page of the submission shows beside it."""

    row: SubmissionScore
    exhibits: Exhibits


def score_submission(
    submission: Submission, replays: Mapping[Role, Replay], weights: Weights, *, sandboxed: bool = True
) -> Score:
    """Score one submission by its replays; if a check is open, the row waits for the instructor."""
    evidence = evidence_of(submission, replays)
    flags = (
        *flags_of(evidence),
        *tarball_flags(submission.name, submission.student, submission.recipe, submission.ignored),
        *_hint_flags(submission.manifest.hints),
    )
    facts: Facts = {
        "seed": submission.settings.seed,
        "dataset": submission.settings.dataset,
        "same_platform_class": evidence.same_class,
        **({"hints": submission.manifest.hints} if submission.manifest.hints else {}),
        "tree_sha256": submission.tree,
    }
    row = scored_row(
        submission.name, submission.student, submission.recipe, submission.sha256,
        score_evidence(evidence, weights), flags, facts, sandboxed=sandboxed,
    )  # fmt: skip
    return Score(row, exhibits_of(submission.name, evidence, submission.ignored))


def scored_row(
    name: str,
    student: str,
    exercise: str,
    sha256: str,
    criteria: dict[Criterion, CriterionScore],
    flags: Sequence[Flag],
    facts: Facts,
    *,
    sandboxed: bool,
) -> SubmissionScore:
    """Return the row of a submission with these criteria; `facts` go into its provenance."""
    warning = {} if sandboxed else {"warning": WITHOUT_SANDBOX}
    no_sandbox = () if sandboxed else (Flag(id="no sandbox", message=WITHOUT_SANDBOX),)
    row = SubmissionScore(
        submission=name,
        student=student,
        recipe=exercise,
        status="not judged",
        total=None,
        criteria={},
        flags=(*no_sandbox, *flags),
        provenance={**warning, "tarball_sha256": sha256, "sandbox": sandboxed, **facts},
    )
    return rescored(row, criteria)


def unjudged(read: Submission | Answer, reason: str) -> Score:
    """Return the score of a submission that the grader has read and could not judge: no total."""
    score = unscored(read.name, reason, student=read.student, exercise=read.recipe)
    row = score.row.model_copy(update={"provenance": {"tarball_sha256": read.sha256}})
    return replace(score, row=row)


def unscored(
    name: str, reason: str, *, student: str | None = None, exercise: str | None = None, rejected: bool = False
) -> Score:
    """Return the score of a tarball that was rejected (total 0), or on which the grader failed (no total).

    Without a manifest, student and exercise follow from the file's name.
    """
    known = next((known for known in exercise_ids() if name.endswith(f"_{known}")), "")
    row = SubmissionScore(
        submission=name,
        student=student or (name.removesuffix(f"_{known}") if known else name),
        recipe=exercise or known,
        status="rejected" if rejected else "not judged",
        reason=reason,
        total=0.0 if rejected else None,
        criteria={},
        provenance={},
    )
    return Score(row, Exhibits(submission=name))


def tarball_flags(name: str, student: str, exercise: str, ignored: Sequence[str]) -> tuple[Flag, ...]:
    """Return the flags of a tarball: files that were ignored, a file name that differs from the manifest."""
    flags = []
    if ignored:
        message = f"{len(ignored)} files that no submission has were ignored."
        flags.append(Flag(id="ignored files", message=message))
    # A learning platform may put words of its own around a file's name.
    if f"{student}_{exercise}" not in name:
        message = f"Its manifest says {student} and {exercise}, and the file's name does not."
        flags.append(Flag(id="other name", message=message))
    return tuple(flags)


def _hint_flags(hints: int) -> tuple[Flag, ...]:
    message = f"The student's workspace counted {hints} of {LEVELS} hints; they cost nothing."
    return (Flag(id="hints", message=message),) if hints else ()


def score_evidence(evidence: Evidence, weights: Weights) -> dict[Criterion, CriterionScore]:
    """Return every criterion with its weighted checks."""
    fix = judge_fix(evidence)
    correct = fix[0].outcome
    judged: Mapping[Criterion, tuple[Check, ...]] = {
        "reproducibility": judge_reproducibility(evidence),
        "diagnostics": judge_diagnostics(evidence),
        "fix": fix,
        "explanation": judge_explanation(
            evidence, None if correct == "could not judge" else correct == "passed"
        ),
    }
    return {
        criterion: criterion_score(
            tuple(weighted(check, weights[criterion][check.id]) for check in judged[criterion])
        )
        for criterion in CRITERIA
    }


def flags_of(evidence: Evidence) -> tuple[Flag, ...]:
    """Return the flags for the instructor."""
    flags = [
        Flag(id="suspicious code", message=f"{suspicion.message}.") for suspicion in evidence.suspicions[:10]
    ]
    if evidence.suspicions and evidence.fixed.status == "OK" and same_as_reference(evidence):
        message = "The result has the same bytes as the reference fix, so the code above cost nothing."
        flags.append(Flag(id="suspicious code", message=message))
    if not evidence.same_class:
        message = "It claims another platform class, so its bytes need not be ours."
        flags.append(Flag(id="other platform", message=message))
    own = evidence.recipe
    if evidence.settings.seed != own.seed:
        message = f"Seed {evidence.settings.seed} in place of the recipe's {own.seed}."
        flags.append(Flag(id="other settings", message=message))
    for name in ("epochs", "batch_size"):
        value = getattr(evidence.settings, name)
        if value is not None:
            message = f"{name.replace('_', ' ')} {value}, which the student chose for both runs."
            flags.append(Flag(id="other settings", message=message))
    return tuple(flags)


def exhibits_of(name: str, evidence: Evidence, ignored: tuple[str, ...]) -> Exhibits:
    """Return what the page shows beside the score."""
    replays: dict[ChartedRun, Replay] = {
        "broken": evidence.broken,
        "fixed": evidence.fixed,
        "reference": evidence.reference,
    }
    report = None if evidence.report is None else evidence.report.removeprefix("\ufeff").replace("\r\n", "\n")
    return Exhibits(
        submission=name,
        broken_source=evidence.recipe.broken_source(),
        fixed_source=evidence.source,
        report=report,
        numbers=() if report is None else _looked_up(evidence, report),
        curves=tuple(_curve(run, replay) for run, replay in replays.items() if replay.status == "OK"),
        hashes=_hashes(evidence),
        replays=tuple(
            ReplayOutcome(what=_WHAT[run], status=replay.status, message=replay.message)
            for run, replay in replays.items()
        ),
        measurements=measurements(evidence),
        ignored_files=ignored,
        symptom="; ".join(symptom.says for symptom in evidence.recipe.on(evidence.settings.dataset).symptoms),
    )


def _looked_up(evidence: Evidence, report: str) -> tuple[CitedNumber, ...]:
    """Return the numbers of a report that agree or disagree with the logs, by their places in the whole file."""
    body = body_of(report)
    begins = len(report) - len(body.text)
    verdicts: dict[str, Literal["verified", "refuted"]] = {"true": "verified", "wrong": "refuted"}
    return tuple(
        CitedNumber(start=begins + number.start, end=begins + number.end, verdict=verdicts[number.verdict])
        for number in numbers_of(evidence, body)
        if number.verdict in verdicts
    )


def _hashes(evidence: Evidence) -> tuple[HashComparison, ...]:
    found = []
    for run in RUNS:
        claim, replay = evidence.claims[run], evidence.replay(run)
        log = None if claim.log is None else sha256(claim.log).hexdigest()
        files: tuple[tuple[HashedFile, str | None, str | None], ...] = (
            ("metrics.log", log, replay.log_sha256),
            ("checkpoint.pt", claim.checkpoint_sha256, replay.checkpoint_sha256),
        )
        for file, claimed, replayed in files:
            same = claimed is not None and claimed == replayed
            agree = same if same or evidence.same_class else None
            found.append(HashComparison(run=run, file=file, claimed=claimed, replayed=replayed, agree=agree))
    return tuple(found)


def _curve(run: ChartedRun, replay: Replay) -> Curve:
    records = replay.records()
    batches, epochs = batch_records(records), epoch_records(records)
    stride = -(-len(batches) // _POINTS_OF_A_CURVE)
    kept = batches[::stride]
    if kept[-1] is not batches[-1]:
        kept = [*kept[: _POINTS_OF_A_CURVE - 1], batches[-1]]
    return Curve(
        run=run,
        loss=tuple((record["step"], to_strict(record["loss"])) for record in kept),
        validation=tuple(
            (record["epoch"], to_strict(record["val_loss"]), to_strict(record["val_accuracy"]))
            for record in epochs
        ),
    )
