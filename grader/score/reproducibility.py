"""Judge reproducibility: the archive is whole, and both runs replay to what the submission claims."""

import math
from collections.abc import Mapping, Sequence

from grader.score.evidence import Evidence, nothing_was_edited, same_bytes
from grader.score.verdict import RubricItem, ShownRow, full, lost, open_check
from harness.errors import UserError
from harness.run.metrics_log import Record, batch_records, epoch_records, log_difference, parse_log
from harness.run.symptoms import judge_symptom
from harness.workspace.workspace import Run

_POINTS: Mapping[tuple[Run, str], float] = {
    ("broken", "log"): 8.0,
    ("broken", "checkpoint"): 7.0,
    ("fixed", "log"): 9.0,
    ("fixed", "checkpoint"): 8.0,
}
_FILES = {"log": "metrics.log", "checkpoint": "checkpoint.pt"}
FIX_FIRST = "Fix the cause, then run make verify."
# Two machines differ by rounding, and training magnifies that step by step, until a run may be chaotic. So a figure may
# differ from ours, as a share, by `_GROWTH` times as much as the figures before it. `_ROUNDING` is where that begins,
# and each figure lets it grow at most `_PACE` times. A log of another program, seed or scale jumps. Above `_CHAOS` any
# figure is possible: the first steps and the end decide. Measured against portable numerics: 106 recipes, broken and
# fixed, native with one thread; 9 with two; huge_lr on an emulated Arm processor; and as an outer bound 30 in float64,
# with the random numbers of float32 and without the three faults that are overflows.
#
# | figure                                      | machines | float64 | bound     |
# | loss of the first 5 steps                   | 0.0001   | 0.0013  | 0.005     |
# | a loss over the figures before              | 20 times | 21      | 100 times |
# | a validation loss over the figures before   | 1.4      | 2.3     | 100       |
# | a gradient norm over the figures before     | 250      | 37      | 1000      |
# | accuracy before chaos                       | 0.0002   | 0       | 0.01      |
# | last accuracy of a fixed run                | 0.005    | 0.0025  | 0.05      |
# | last validation loss of a fixed run         | 1.1 %    | 2 %     | 20 %      |
_ROUNDING, _PACE, _CHAOS = 1e-5, 3.0, 1e-3
_GROWTH = {"loss": 100.0, "val_loss": 100.0, "grad_norm": 1000.0}
_SMALL = 1e-3  # a loss near 0 is rounded like the larger ones before it
_FIRST_STEPS, _FIRST_BAND = 5, 5e-3
_ACCURACIES = ("val_accuracy", "val_accuracy_eval_mode", "val_accuracy_served")
_EARLY_ACCURACY, _LAST_ACCURACY, _LAST_LOSS = 0.01, 0.05, 0.2


def judge_reproducibility(evidence: Evidence) -> tuple[RubricItem, ...]:
    """Return the five checks of the criterion."""
    return (_archive(evidence), *(_repeats(evidence, run, file) for run, file in _POINTS))


def _archive(evidence: Evidence) -> RubricItem:
    row = ("archive", "The archive is whole, and the commands are recorded", 3.0)
    remedy = "Hand in what make submit packs, unchanged."
    if evidence.missing:
        return lost(*row, f"These files are missing: {', '.join(evidence.missing[:5])}.", remedy)
    if evidence.command_problem:
        return lost(*row, evidence.command_problem, remedy)
    return full(*row, "Every file is there, and command.txt has the commands of both runs.")


def _repeats(evidence: Evidence, run: Run, file: str) -> RubricItem:
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
        ended = f"did not finish when we ran it again ({replay.status}): {replay.message}"
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


def trusted_log(evidence: Evidence, run: Run) -> str:
    """Return the log that citations of a run are held against: ours, or that of a student on another machine.

    A log of another platform class is the student's own if its figures are within the bands.
    """
    claimed = evidence.claims[run].log
    if evidence.same_class or claimed is None or evidence.replay(run).status != "OK" or _outside_bands(evidence, run):
        return evidence.replay(run).log
    return claimed.decode("utf-8")


def _across_classes(row: ShownRow, evidence: Evidence, run: Run) -> RubricItem:
    """Judge a run of another platform class: here it must repeat, and its figures must be near the claimed ones."""
    replay, again = evidence.replay(run), evidence.again.get(run)
    if again is None or again.status == "XX":
        return open_check(*row, "The second replay, which another platform needs, failed.")
    if not same_bytes(replay, again):
        remedy = "Make the experiment independent of the clock and of unseeded random numbers."
        return lost(*row, "Two runs on one machine gave different results.", remedy)
    if problem := _outside_bands(evidence, run):
        reason = f"Your machine need not give our bytes, but {problem}."
        if "dropout" in evidence.recipe.broken_source().lower() and not _other_end(evidence, run):
            return open_check(*row, f"{reason} A GPU draws other random numbers for dropout: your instructor decides.")
        return lost(*row, reason, "Hand in the log as the run wrote it.")
    reason = (
        "Your machine is of another platform class, so your bytes need not be ours: the run repeats here, and your"
        " figures are close to ours."
    )
    return full(*row, reason)


def _outside_bands(evidence: Evidence, run: Run) -> str:
    """Return which figure of a claimed log no other machine would give, as a clause, or ""."""
    return _jump(evidence, run) or _other_end(evidence, run)


def _claimed_records(evidence: Evidence, run: Run) -> Sequence[Record]:
    """Return the records of a claimed log; none if it cannot be read."""
    try:
        return parse_log((evidence.claims[run].log or b"").decode("utf-8"), "metrics.log")
    except (UserError, UnicodeDecodeError):
        return ()


def _jump(evidence: Evidence, run: Run) -> str:
    """Return the first figure that differs from ours by more than rounding can have grown to by then, or ""."""
    theirs, ours = _claimed_records(evidence, run), evidence.replay(run).records()
    if not theirs:
        return "the log cannot be read"
    places = [[(record.get("step"), record.get("epoch")) for record in log] for log in (theirs, ours)]
    if places[0] != places[1]:
        return "the log has other steps or epochs"
    grown, largest = _ROUNDING, dict.fromkeys(_GROWTH, 0.0)
    for given, own in zip(theirs, ours, strict=True):
        step = own.get("step")
        where = f"epoch {own['epoch']}" if step is None else f"step {step}"
        for signal in (name for name in _GROWTH if name in own):
            difference = _difference(given.get(signal), own[signal], _SMALL * largest[signal])
            if own[signal] is not None and math.isfinite(own[signal]):
                largest[signal] = max(largest[signal], abs(own[signal]))
            within = difference <= grown * _GROWTH[signal] or (grown > _CHAOS and given.get(signal) is not None)
            is_first = signal == "loss" and step is not None and step < _FIRST_STEPS
            if not within or (is_first and difference > _FIRST_BAND):
                return f"{signal} at {where} is {given.get(signal)}, and {own[signal]} here"
            grown = max(grown, min(difference, grown * _PACE))
        for signal in (name for name in _ACCURACIES if own.get(name) is not None):
            if not _near(given.get(signal), own[signal], 1.0 if grown > _CHAOS else _EARLY_ACCURACY):
                return f"{signal} at {where} is {given.get(signal)}, and {own[signal]} here"
    return ""


def _difference(theirs: float | None, own: float | None, least: float) -> float:
    """Return how far two figures are apart, relative to ours or to `least`, if that is larger.

    0 for the same non-finite ones, infinity for different ones.
    """
    if theirs is None or own is None:
        return 0.0 if theirs is own else math.inf
    if not (math.isfinite(theirs) and math.isfinite(own)):
        return 0.0 if theirs == own or (math.isnan(theirs) and math.isnan(own)) else math.inf
    if theirs == own:
        return 0.0
    unit = max(abs(own), least)
    return abs(theirs - own) / unit if unit else math.inf


def _other_end(evidence: Evidence, run: Run) -> str:
    """Return where a claimed run comes to another end than ours, as a clause, or "": symptoms, or the last epoch."""
    theirs, ours = _claimed_records(evidence, run), evidence.replay(run).records()
    ends = [epoch_records(log)[-1:] for log in (theirs, ours)]
    if len(batch_records(theirs)) != len(batch_records(ours)) or not all(ends):
        return "the log has another number of batches"
    if run == "broken":
        for symptom in evidence.recipe.on(evidence.settings.dataset).symptoms:
            if judge_symptom(theirs, symptom).present != judge_symptom(ours, symptom).present:
                return f"your log and ours disagree whether {symptom.says}"
        return ""
    (given,), (own,) = ends
    for signal in ("val_loss", "val_accuracy"):
        if (value := own.get(signal)) is not None:
            band = _LAST_ACCURACY if signal == "val_accuracy" else abs(value) * _LAST_LOSS
            if not _near(given.get(signal), value, band):
                return f"the last {signal} is {given.get(signal)}, and {value} here"
    return ""


def _near(theirs: float | None, own: float, band: float) -> bool:
    if theirs is None:
        return False
    if not math.isfinite(own) or not math.isfinite(theirs):
        return math.isfinite(own) == math.isfinite(theirs)
    return abs(theirs - own) <= band
