"""Judge reproducibility: the archive is whole, and both runs replay to what the submission claims."""

import math
from collections.abc import Mapping

from grader.score.evidence import Evidence, nothing_was_edited, same_bytes
from grader.score.verdict import Check, Row, full, lost, open_check
from harness.errors import UserError
from harness.run.metrics_log import batch_records, epoch_records, parse_log
from harness.submission.log_values import log_difference
from harness.symptoms import judge_symptom
from harness.workspace import Run

_POINTS: Mapping[tuple[Run, str], float] = {
    ("broken", "log"): 8.0,
    ("broken", "checkpoint"): 7.0,
    ("fixed", "log"): 9.0,
    ("fixed", "checkpoint"): 8.0,
}
_FILES = {"log": "metrics.log", "checkpoint": "checkpoint.pt"}
# Between platform classes a diverging run drifts apart: of the broken run only the first loss and the symptoms must
# agree. The end of a healthy run must agree too: over ten seeds its last accuracies lie within 0.055
# (docs/calibration.md), and seeds change more than rounding does.
FIX_FIRST = "Fix the cause, then run make verify."
_RELATIVE_BAND, _ACCURACY_BAND = 0.2, 0.05


def judge_reproducibility(evidence: Evidence) -> tuple[Check, ...]:
    """Return the five checks of the criterion."""
    return (_archive(evidence), *(_repeats(evidence, run, file) for run, file in _POINTS))


def _archive(evidence: Evidence) -> Check:
    row = ("archive", "The archive is whole, and the commands are recorded", 3.0)
    remedy = "Hand in what make submit packs, unchanged."
    if evidence.missing:
        return lost(*row, f"These files are missing: {', '.join(evidence.missing[:5])}.", remedy)
    if evidence.command_problem:
        return lost(*row, evidence.command_problem, remedy)
    return full(*row, "Every file is there, and command.txt has the commands of both runs.")


def _repeats(evidence: Evidence, run: Run, file: str) -> Check:
    """Judge whether a file of a run came out again, byte for byte."""
    row = (f"{run}_{file}", f"The {run} run repeats: {_FILES[file]}", _POINTS[run, file])
    claim, replay = evidence.claims[run], evidence.replay(run)
    is_log = file == "log"
    claimed = claim.log if is_log else claim.checkpoint_sha256
    ours = replay.log.encode() if is_log else replay.checkpoint_sha256
    if run == "fixed" and nothing_was_edited(evidence):
        return lost(*row, "The experiment is still the broken one, so there is no fixed run.", FIX_FIRST)
    if claimed is None:
        return lost(*row, f"runs/{run}/{_FILES[file]} is missing.", "Hand in both runs whole.")
    if replay.status == "XX":
        return open_check(*row, f"The replay failed, and that is not your fault: {replay.message}")
    if replay.status != "OK":
        ended = f"did not come to its end when we ran it again ({replay.status}): {replay.message}"
        return lost(*row, f"The {run} run {ended}", "Hand in an experiment that runs to its end with make verify.")
    if claimed == ours:
        lines = f"All {len(replay.records())} records are the same, byte for byte."
        return full(*row, lines if is_log else f"SHA-256 {str(ours)[:16]} came out again.")
    if not evidence.same_class:
        return _across_classes(row, evidence, run)
    if isinstance(claimed, bytes):
        reason = f"metrics.log{log_difference(claimed, replay.log.encode())}."
    else:
        reason = f"Your checkpoint has the SHA-256 {claimed[:16]}, and the replay's {str(ours)[:16]}."
    remedy = (
        "Hand in the file as the run wrote it, and of the experiment.py that you hand in: make verify, then make"
        " submit. Nothing in the experiment may depend on the clock or on a generator of its own."
    )
    return lost(*row, reason, remedy)


def _across_classes(row: Row, evidence: Evidence, run: Run) -> Check:
    """Judge a run of another platform class: here it must repeat, and its figures must be near the claimed ones."""
    replay, again = evidence.replay(run), evidence.again.get(run)
    if again is None or again.status == "XX":
        return open_check(*row, "The second replay, which another platform needs, failed.")
    if not same_bytes(replay, again):
        remedy = "Make the experiment independent of the clock and of unseeded random numbers."
        return lost(*row, "Two runs on one machine gave different results.", remedy)
    if problem := _outside_band(evidence, run):
        reason = f"Your machine need not give our bytes, but {problem}."
        return lost(*row, reason, "Hand in the log as the run wrote it.")
    reason = (
        "Your machine is of another platform class, so your bytes need not be ours: the run repeats here, and your"
        " figures are close to ours."
    )
    return full(*row, reason)


def _outside_band(evidence: Evidence, run: Run) -> str:
    try:
        text = (evidence.claims[run].log or b"").decode("utf-8")
        claimed = parse_log(text, "metrics.log")
    except (UserError, UnicodeDecodeError):
        return "the log cannot be read"
    ours = evidence.replay(run).records()
    if len(batch_records(claimed)) != len(batch_records(ours)):
        return "the log has another number of batches"
    # The first batch cannot have drifted yet.
    if (first := ours[0].get("loss")) is None:
        return "the run has no first loss here"
    figures = [("the first loss", claimed[0].get("loss"), first, abs(first) * _RELATIVE_BAND)]
    if run == "broken":
        for symptom in evidence.recipe.on(evidence.settings.dataset).symptoms:
            if judge_symptom(claimed, symptom).present != judge_symptom(ours, symptom).present:
                return f"your log and ours disagree whether {symptom.says}"
    elif (theirs := epoch_records(claimed)) and (own := epoch_records(ours)):
        for signal in ("val_loss", "val_accuracy"):
            if (value := own[-1].get(signal)) is not None:
                band = _ACCURACY_BAND if signal == "val_accuracy" else abs(value) * _RELATIVE_BAND
                figures.append((f"the last {signal}", theirs[-1].get(signal), value, band))
    for name, given, value, band in figures:
        if not _near(given, value, band):
            return f"{name} is {given}, and {value} here"
    return ""


def _near(theirs: object, own: float, band: float) -> bool:
    if isinstance(theirs, bool) or not isinstance(theirs, int | float):
        return False
    if not math.isfinite(own) or not math.isfinite(theirs):
        return math.isfinite(own) == math.isfinite(theirs)
    return abs(theirs - own) <= band
