"""Judge reproducibility: the archive is whole, and both runs replay to what the submission claims."""

import math
from collections.abc import Sequence

from grader.intake.submission import Run
from grader.replay.replay import Replay
from grader.score.evidence import RUNS, Evidence
from grader.score.verdict import Check, full, lost, open_check
from harness.errors import UserError
from harness.run.metrics_log import Record, batch_records, epoch_records, log_lines, parse_log
from harness.submission.check import log_difference
from harness.symptoms import judge_symptom

_POINTS = {"broken": (8.0, 7.0), "fixed": (9.0, 8.0)}
# Between platform classes a diverging run drifts apart: of the broken run only the first loss and the symptoms must
# agree. The end of a healthy run must agree too: over ten seeds its last accuracies lie within 0.055
# (docs/calibration.md), and seeds change more than rounding does.
_RELATIVE_BAND, _ACCURACY_BAND = 0.2, 0.05


def judge_reproducibility(evidence: Evidence) -> tuple[Check, ...]:
    """Return the five checks of the criterion."""
    checks = [_archive(evidence)]
    for run in RUNS:
        log_points, checkpoint_points = _POINTS[run]
        checks += [_log(evidence, run, log_points), _checkpoint(evidence, run, checkpoint_points)]
    return tuple(checks)


def _archive(evidence: Evidence) -> Check:
    id, title, maximum = "archive", "The archive is whole, and the commands are recorded", 3.0
    remedy = "Hand in what make submit packs, unchanged."
    if evidence.missing:
        names = ", ".join(evidence.missing[:5])
        return lost(id, title, maximum, f"These files are missing: {names}.", remedy)
    if evidence.command_problem:
        return lost(id, title, maximum, evidence.command_problem, remedy)
    return full(id, title, maximum, "Every file is there, and command.txt has the commands of both runs.")


def _not_replayed(id: str, title: str, maximum: float, run: Run, replay: Replay) -> Check | None:
    if replay.status == "OK":
        return None
    if replay.status == "XX":
        return open_check(
            id, title, maximum, f"The replay failed, and that is not your fault: {replay.message}"
        )
    reason = f"The {run} run did not come to its end when we ran it again ({replay.status}): {replay.message}"
    return lost(id, title, maximum, reason, "Hand in an experiment that runs to its end with make verify.")


def _log(evidence: Evidence, run: Run, maximum: float) -> Check:
    id, title = f"{run}_log", f"The {run} run repeats: metrics.log"
    claim, replay = evidence.claims[run], evidence.replay(run)
    if claim.log is None:
        return lost(id, title, maximum, f"runs/{run}/metrics.log is missing.", "Hand in both runs whole.")
    if (failed := _not_replayed(id, title, maximum, run, replay)) is not None:
        return failed
    if claim.log == replay.log.encode():
        lines = len(log_lines(replay.log))
        return full(id, title, maximum, f"All {lines} records are the same, byte for byte.")
    where = log_difference(claim.log, replay.log.encode())
    if not evidence.same_class:
        return _across_classes(id, title, maximum, evidence, run)
    return lost(
        id,
        title,
        maximum,
        f"metrics.log{where}.",
        "Hand in the log as the run wrote it, and of the experiment.py that you hand in: make verify, then make"
        " submit. Nothing in the experiment may depend on the clock or on a generator of its own.",
    )


def _checkpoint(evidence: Evidence, run: Run, maximum: float) -> Check:
    id, title = f"{run}_checkpoint", f"The {run} run repeats: checkpoint.pt"
    claim, replay = evidence.claims[run], evidence.replay(run)
    if claim.checkpoint_sha256 is None:
        return lost(id, title, maximum, f"runs/{run}/checkpoint.pt is missing.", "Hand in both runs whole.")
    if (failed := _not_replayed(id, title, maximum, run, replay)) is not None:
        return failed
    if claim.checkpoint_sha256 == replay.checkpoint_sha256:
        return full(id, title, maximum, f"SHA-256 {claim.checkpoint_sha256[:16]} came out again.")
    if not evidence.same_class:
        return _across_classes(id, title, maximum, evidence, run)
    return lost(
        id,
        title,
        maximum,
        f"Your checkpoint has the SHA-256 {claim.checkpoint_sha256[:16]}, and the replay's"
        f" {str(replay.checkpoint_sha256)[:16]}.",
        "Hand in the checkpoint as the run wrote it, and of the experiment.py that you hand in.",
    )


def _across_classes(id: str, title: str, maximum: float, evidence: Evidence, run: Run) -> Check:
    """Judge a run of another platform class: here it must repeat, and its figures must be near the claimed ones."""
    replay, again = evidence.replay(run), evidence.again.get(run)
    if again is None or again.status == "XX":
        return open_check(id, title, maximum, "The second replay, which another platform needs, failed.")
    if (again.log_sha256, again.checkpoint_sha256) != (replay.log_sha256, replay.checkpoint_sha256):
        reason = "Two runs on one machine gave different results."
        return lost(
            id,
            title,
            maximum,
            reason,
            "Make the experiment independent of the clock and of unseeded random numbers.",
        )
    problem = _outside_band(evidence, run)
    if problem:
        reason = f"Your machine need not give our bytes, but {problem}."
        return lost(id, title, maximum, reason, "Hand in the log as the run wrote it.")
    return full(
        id,
        title,
        maximum,
        "Your machine is of another platform class, so your bytes need not be ours: the run repeats here, and your"
        " figures are close to ours.",
    )


def _outside_band(evidence: Evidence, run: Run) -> str:
    try:
        text = (evidence.claims[run].log or b"").decode("utf-8")
        claimed = parse_log(log_lines(text), "metrics.log")
    except (UserError, UnicodeDecodeError):
        return "the log cannot be read"
    ours = evidence.replay(run).records()
    if len(batch_records(claimed)) != len(batch_records(ours)):
        return "the log has another number of batches"
    # The first batch cannot have drifted yet.
    pairs = [("the first loss", claimed[0].get("loss"), ours[0]["loss"])]
    if run == "broken":
        for symptom in evidence.recipe.on(evidence.settings.dataset).symptoms:
            if judge_symptom(claimed, symptom).present != judge_symptom(ours, symptom).present:
                return f"your log and ours disagree whether {symptom.says}"
    else:
        pairs += _last(claimed, ours, "val_loss")
    for name, theirs, own in pairs:
        if not _near(theirs, own, abs(own) * _RELATIVE_BAND):
            return f"{name} is {theirs}, and {own} here"
    for name, theirs, own in _last(claimed, ours, "val_accuracy") if run == "fixed" else []:
        if not _near(theirs, own, _ACCURACY_BAND):
            return f"{name} is {theirs}, and {own} here"
    return ""


def _last(claimed: Sequence[Record], ours: Sequence[Record], signal: str) -> list[tuple[str, object, float]]:
    theirs, own = epoch_records(claimed), epoch_records(ours)
    if not theirs or not own or own[-1].get(signal) is None:
        return []
    return [(f"the last {signal}", theirs[-1].get(signal), own[-1][signal])]


def _near(theirs: object, own: float, band: float) -> bool:
    if isinstance(theirs, bool) or not isinstance(theirs, int | float):
        return False
    if not math.isfinite(own) or not math.isfinite(theirs):
        return math.isfinite(own) == math.isfinite(theirs)
    return abs(theirs - own) <= band
