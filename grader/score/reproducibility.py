"""Judge reproducibility: whether the archive is complete, and whether our replays give the student's files again."""

import math
from collections.abc import Mapping, Sequence

from grader.score.evidence import Evidence, nothing_was_edited, same_bytes
from grader.score.verdict import RubricItem, ShownRow, full, lost, open_item
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
# The same run differs on two machines by rounding errors. Training magnifies the rounding errors step by step, until
# the run may become chaotic. So the allowed relative difference of a value grows: it is `_GROWTH` times the largest
# difference of the earlier values. This largest difference starts at `_ROUNDING`, and each value may raise it at most
# by the factor `_PACE`. A log from another program, seed or scale differs suddenly. If the largest difference is above
# `_CHAOS`, any value is possible. Then only the first steps and the end of the run decide.
#
# The column "machines" has the largest differences from runs with portable numerics. We measured the broken and the
# fixed runs of 106 recipes with native numerics and one thread, of 9 recipes with two threads, and of huge_lr on an
# emulated Arm processor. The column "float64" has larger errors than any machine makes: 30 recipes in float64, with the
# random numbers of float32, and without the three faults that cause an overflow. The bound is the allowed difference.
#
# | relative difference                                            | machines | float64 | bound |
# | loss of the first 5 steps                                      | 0.0001   | 0.0013  | 0.005 |
# | loss, as a multiple of the largest earlier difference          | 20       | 21      | 100   |
# | validation loss, as a multiple of the largest earlier one      | 1.4      | 2.3     | 100   |
# | gradient norm, as a multiple of the largest earlier one        | 250      | 37      | 1000  |
# | accuracy before the run becomes chaotic (absolute difference)  | 0.0002   | 0       | 0.01  |
# | last accuracy of a fixed run (absolute difference)             | 0.005    | 0.0025  | 0.05  |
# | last validation loss of a fixed run                            | 1.1 %    | 2 %     | 20 %  |
_ROUNDING, _PACE, _CHAOS = 1e-5, 3.0, 1e-3
_GROWTH = {"loss": 100.0, "val_loss": 100.0, "grad_norm": 1000.0}
_SMALL = 1e-3  # a loss near 0 has the same absolute rounding error as the larger losses before it
_FIRST_STEPS, _FIRST_BAND = 5, 5e-3
_ACCURACIES = ("val_accuracy", "val_accuracy_eval_mode", "val_accuracy_served")
_EARLY_ACCURACY, _LAST_ACCURACY, _LAST_LOSS = 0.01, 0.05, 0.2


def judge_reproducibility(evidence: Evidence) -> tuple[RubricItem, ...]:
    """Return the five rubric items of this criterion."""
    return (_archive(evidence), *(_repeats(evidence, run, file) for run, file in _POINTS))


def _archive(evidence: Evidence) -> RubricItem:
    row = ("archive", "The archive is complete, and the commands are recorded", 3.0)
    remedy = "Hand in the file that make submit writes, unchanged."
    if evidence.missing:
        return lost(*row, f"These files are missing: {', '.join(evidence.missing[:5])}.", remedy)
    if evidence.command_problem:
        return lost(*row, evidence.command_problem, remedy)
    return full(*row, "Every file is there, and command.txt has the commands of both runs.")


def _repeats(evidence: Evidence, run: Run, file: str) -> RubricItem:
    """Judge whether our replay of a run gives the same file as the student handed in, byte for byte."""
    row = (f"{run}_{file}", f"Our replay of the {run} run gives the same {_FILES[file]}", _POINTS[run, file])
    claim, replay = evidence.claims[run], evidence.replay(run)
    is_log = file == "log"
    claimed = claim.log if is_log else claim.checkpoint_sha256
    ours = replay.log.encode() if is_log else replay.checkpoint_sha256
    if run == "fixed" and nothing_was_edited(evidence):
        return lost(*row, "Your experiment is still the broken experiment, so there is no fixed run.", FIX_FIRST)
    if claimed is None:
        return lost(*row, f"runs/{run}/{_FILES[file]} is missing.", "Hand in all files of both runs.")
    if replay.status == "XX":
        return open_item(*row, f"The replay failed, which is not your fault: {replay.message}")
    if replay.status != "OK":
        ended = f"did not finish when we replayed it ({replay.status}): {replay.message}"
        return lost(*row, f"The {run} run {ended}", "Hand in an experiment that runs to its end with make verify.")
    if claimed == ours:
        lines = f"All {len(replay.records())} records of your log equal our replay, byte for byte."
        return full(*row, lines if is_log else f"The checkpoint of our replay has the same SHA-256, {str(ours)[:16]}.")
    if not evidence.same_class:
        return _across_classes(row, evidence, run)
    if isinstance(claimed, bytes):
        reason = f"metrics.log{log_difference(claimed, replay.log.encode())}."
    else:
        reason = f"Your checkpoint has the SHA-256 {claimed[:16]}, and our replay's checkpoint has {str(ours)[:16]}."
    remedy = (
        "Run make verify, then make submit, and change no file between these two commands. Your experiment must not"
        " depend on the clock or on random numbers that the seed does not control."
    )
    return lost(*row, reason, remedy)


def trusted_log(evidence: Evidence, run: Run) -> str:
    """Return the log that the cited values of a run must match: our replay's log or the student's log.

    Return the student's log only if the run is from another platform class, and rounding errors can explain how its
    values differ from ours.
    """
    claimed = evidence.claims[run].log
    if evidence.same_class or claimed is None or evidence.replay(run).status != "OK" or _outside_bands(evidence, run):
        return evidence.replay(run).log
    return claimed.decode("utf-8")


def _across_classes(row: ShownRow, evidence: Evidence, run: Run) -> RubricItem:
    """Judge a run of another platform class: our two replays must be equal, and close to the student's values."""
    replay, again = evidence.replay(run), evidence.again.get(run)
    if again is None or again.status == "XX":
        return open_item(*row, "Your runs come from another platform, so we need a second replay. This replay failed.")
    if not same_bytes(replay, again):
        remedy = "Make the experiment independent of the clock and of unseeded random numbers."
        return lost(*row, "We replayed your run twice on one machine, and the results differ.", remedy)
    if problem := _outside_bands(evidence, run):
        reason = f"The values from your machine may differ a little from ours, but this difference is large: {problem}."
        if "dropout" in evidence.recipe.broken_source().lower() and not _other_end(evidence, run):
            more = "On a GPU, dropout uses other random numbers, so your instructor decides."
            return open_item(*row, f"{reason} {more}")
        return lost(*row, reason, "Hand in the log exactly as the run wrote it.")
    reason = (
        "Your machine is of another type than ours, so your files may differ a little from ours. Our two replays are"
        " equal, and your values are close to our values."
    )
    return full(*row, reason)


def _outside_bands(evidence: Evidence, run: Run) -> str:
    """Return a clause about the first value in the student's log that rounding errors cannot explain, or ""."""
    return _jump(evidence, run) or _other_end(evidence, run)


def _claimed_records(evidence: Evidence, run: Run) -> Sequence[Record]:
    """Return the records of the student's log; () if it cannot be read."""
    try:
        return parse_log((evidence.claims[run].log or b"").decode("utf-8"), "metrics.log")
    except (UserError, UnicodeDecodeError):
        return ()


def _jump(evidence: Evidence, run: Run) -> str:
    """Return a clause about the first value that differs from our value by more than rounding errors, or ""."""
    theirs, ours = _claimed_records(evidence, run), evidence.replay(run).records()
    if not theirs:
        return "the log cannot be read"
    places = [[(record.get("step"), record.get("epoch")) for record in log] for log in (theirs, ours)]
    if places[0] != places[1]:
        return "your log has other steps or epochs than our replay"
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
                return f"{signal} at {where} is {given.get(signal)}, but {own[signal]} in our replay"
            grown = max(grown, min(difference, grown * _PACE))
        for signal in (name for name in _ACCURACIES if own.get(name) is not None):
            if not _near(given.get(signal), own[signal], 1.0 if grown > _CHAOS else _EARLY_ACCURACY):
                return f"{signal} at {where} is {given.get(signal)}, but {own[signal]} in our replay"
    return ""


def _difference(theirs: float | None, own: float | None, least: float) -> float:
    """Return the difference of two values, divided by the size of our value or by `least`, whichever is larger.

    If both values are non-finite and equal, return 0. If only one is non-finite, or they are unequal, return infinity.
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
    """Return a clause about how the end of the student's log differs from the end of our replay, or "".

    For a broken run, compare the symptoms in both logs. For a fixed run, compare the last epoch.
    """
    theirs, ours = _claimed_records(evidence, run), evidence.replay(run).records()
    ends = [epoch_records(log)[-1:] for log in (theirs, ours)]
    if len(batch_records(theirs)) != len(batch_records(ours)) or not all(ends):
        return "your log has a different number of batches than our replay"
    if run == "broken":
        for symptom in evidence.recipe.on(evidence.settings.dataset).symptoms:
            if judge_symptom(theirs, symptom).present != judge_symptom(ours, symptom).present:
                return f"only one of the two logs, yours and ours, shows this symptom: {symptom.says}"
        return ""
    (given,), (own,) = ends
    for signal in ("val_loss", "val_accuracy"):
        if (value := own.get(signal)) is not None:
            band = _LAST_ACCURACY if signal == "val_accuracy" else abs(value) * _LAST_LOSS
            if not _near(given.get(signal), value, band):
                return f"the last {signal} is {given.get(signal)}, but {value} in our replay"
    return ""


def _near(theirs: float | None, own: float, band: float) -> bool:
    if theirs is None:
        return False
    if not math.isfinite(own) or not math.isfinite(theirs):
        return math.isfinite(own) == math.isfinite(theirs)
    return abs(theirs - own) <= band
