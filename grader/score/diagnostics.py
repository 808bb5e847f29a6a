"""Judge diagnostics: whether both logs are complete, and whether the cited values are true and show the fault."""

import math
from collections.abc import Mapping
from functools import lru_cache
from itertools import product

from grader.replay.replay import Replay
from grader.score.evidence import Evidence, nothing_was_edited, sound_logs
from grader.score.reproducibility import FIX_FIRST
from grader.score.verdict import RubricItem, ShownRow, full, lost, open_item
from harness.errors import UserError
from harness.run.metrics_log import batch_records, epoch_records, parse_log
from harness.submission.check_run import diagnostic_fault
from harness.submission.log_values import OFF_BY, LogValues, log_values
from harness.submission.report import Report, Sign, parse_report
from harness.submission.snippet import shows_departures
from harness.workspace.workspace import Run

_BROKEN_CITED = ("broken_cited", "A cited value of the broken run is true", 6.0)
_KEY_SIGNAL = ("key_signal", "The cited value shows this fault", 6.0)
_RECOVERY = ("recovery", "A cited value of the fixed run is true and shows recovery", 4.0)
_SHOWN = ("shown", "A plot or an excerpt of the log shows the symptom", 2.0)
_CITE = "Copy a value from metrics.log of the {run} run. You may round it."


def judge_diagnostics(evidence: Evidence, accepted: bool | None) -> tuple[RubricItem, ...]:
    """Return the six rubric items of this criterion. Cited values must match our replay, not the student's log.

    accepted: whether the fix is correct; None if the instructor has to decide that.
    """
    try:
        report = parse_report(evidence.report or "")
    except UserError as error:
        problem = "There is no report.md." if evidence.report is None else str(error)
        remedy = "Fill in the front matter of report.md. The command make check says what is missing."
        cited = [lost(*row, problem, remedy) for row in (_BROKEN_CITED, _KEY_SIGNAL, _RECOVERY)]
    else:
        cited = [_broken_cited(evidence, report), _key_signal(evidence, report, accepted)]
        cited.append(_recovery(evidence, report, accepted))
    return (
        _complete(evidence, "broken", 8.0),
        _complete(evidence, "fixed", 4.0),
        *cited,
        _judge_shown(evidence, accepted),
    )


def _complete(evidence: Evidence, run: Run, maximum: float) -> RubricItem:
    row = (f"{run}_complete", f"The {run} log is complete for every batch", maximum)
    log, replay, name = evidence.claims[run].log, evidence.replay(run), f"runs/{run}/metrics.log"
    if run == "fixed" and nothing_was_edited(evidence):
        return lost(*row, "Your experiment is still the broken experiment, so there is no fixed run.", FIX_FIRST)
    if replay.status not in ("OK", "XX"):
        return lost(*row, f"The {run} run failed when we replayed it ({replay.status}).", FIX_FIRST)
    fault, batches = (f"{name} is missing", 0) if log is None else _first_fault(log, name)
    if not fault and replay.status == "OK":
        _, expected = _first_fault(replay.log.encode(), name)
        fault = "" if batches == expected else f"{name} has {batches} batches, but our replay has {expected}"
    if fault:
        return lost(*row, f"{fault}.", "Hand in the whole log, exactly as the run wrote it.")
    return full(
        *row, f"Each of the {batches} batches has the loss, gradient means, and the first and last activations."
    )


@lru_cache(maxsize=64)  # the logs of nearly all students equal the log of our replay
def _first_fault(log: bytes, name: str) -> tuple[str, int]:
    """Return a clause about the first fault in a log (or ""), and the number of batches in the log."""
    try:
        records = parse_log(log.decode("utf-8"), name)
    except UnicodeDecodeError:
        return f"{name} is not text", 0
    except UserError as error:
        return str(error).rstrip("."), 0
    batches = len(batch_records(records))
    if not batches or not epoch_records(records):
        return f"{name} contains no complete epoch", batches
    try:
        return diagnostic_fault(name, records), batches
    except (AttributeError, TypeError, KeyError):
        return f"{name} contains records in an unknown format", batches


def _find_cited(
    row: ShownRow, evidence: Evidence, report: Report, run: Run, others: Mapping[str, Replay], within: int = 0
) -> list[tuple[Sign, int]] | RubricItem:
    """Return the cited values that the log of our replay confirms, each with its step or epoch.

    If the log confirms no cited value, or a run is missing, return the verdict instead.
    others: the runs to compare with, by name. within: the number of steps or epochs by which a citation may be wrong.
    """
    remedy, replay, signs = _CITE.format(run=run), evidence.replay(run), report.cited_signs(run)
    if not signs:
        return lost(*row, f"The report cites no value of the {run} run.", remedy)
    if replay.status == "XX":
        reason = f"We could not replay the {run} run, which is not your fault: {replay.message}"
        return open_item(*row, reason)
    if replay.status != "OK":
        return lost(*row, f"The {run} run failed when we replayed it ({replay.status}).", remedy)
    for name, other in others.items():
        if other.status != "OK":
            return open_item(*row, f"We have no {name} run to compare your values with: {other.message}")
    log = log_values(replay.log)
    found = ((sign, log.find(sign, within=within)) for sign in signs)
    true = [(sign, place) for sign, place in found if place is not None]
    return true or lost(*row, f"You cite {signs[0]} of the {run} run, but {log.untrue(signs[0])}", remedy)


def _broken_cited(evidence: Evidence, report: Report) -> RubricItem:
    found = _find_cited(_BROKEN_CITED, evidence, report, "broken", {})
    if isinstance(found, RubricItem):
        return found
    sign, _ = found[0]
    return full(*_BROKEN_CITED, f"{sign} is {sign.value} in our replay as well.")


def _key_signal(evidence: Evidence, report: Report, accepted: bool | None) -> RubricItem:
    # The cited step may be wrong by one, because `broken_cited` already takes points for that mistake.
    found = _find_cited(_KEY_SIGNAL, evidence, report, "broken", {"healthy": evidence.reference}, OFF_BY)
    if isinstance(found, RubricItem):
        return found
    broken = log_values(evidence.broken.log)
    for (sign, place), healthy in product(found, sound_logs(evidence, accepted)):
        if broken.departs(sign.signal, place, healthy):
            theirs = broken.beside(sign.signal, place, healthy)
            return full(*_KEY_SIGNAL, f"{sign} is {sign.value}, and {theirs:.4g} in a healthy run.")
    if _is_silent(evidence):
        silent = "No value in the log shows this fault. Only a check finds the fault."
        return full(*_KEY_SIGNAL, "Nothing is broken, so no value is wrong." if evidence.recipe.is_healthy else silent)
    reason = f"{found[0][0]} is {found[0][0].value}, about the same as in a healthy run."
    remedy = "Cite a value that is different in the broken run and in a healthy run."
    return lost(*_KEY_SIGNAL, reason, remedy)


def _recovery(evidence: Evidence, report: Report, accepted: bool | None) -> RubricItem:
    # If the fix is not correct, nothing has recovered: perhaps code that only hides the fault wrote the cited value.
    if accepted is False:
        return lost(*_RECOVERY, "The fix is not correct, so no value can show recovery.", FIX_FIRST)
    others = {"broken": evidence.broken, "healthy": evidence.reference}
    found = _find_cited(_RECOVERY, evidence, report, "fixed", others)
    if isinstance(found, RubricItem):
        return found
    replays = (evidence.broken, evidence.fixed, evidence.reference)
    broken, fixed, healthy = (log_values(replay.log) for replay in replays)
    for sign, place in found:
        shown = fixed.departs(sign.signal, place, broken) and _has_recovered(sign.signal, place, fixed, healthy)
        if (shown or _is_silent(evidence)) and accepted is None:
            return open_item(*_RECOVERY, "Your value counts only if your fix is correct. The instructor decides.")
        if shown:
            return full(*_RECOVERY, f"{sign} is {sign.value} in the fixed run, which shows recovery.")
    if _is_silent(evidence):
        said = "nothing had to recover" if evidence.recipe.is_healthy else "the fix is correct"
        return full(*_RECOVERY, f"The log of the broken run shows no fault, and {said}.")
    reason = f"{found[0][0]} is {found[0][0].value} in the fixed run, which does not show recovery."
    remedy = "Cite a value that is wrong in the broken run and healthy in the fixed run."
    return lost(*_RECOVERY, reason, remedy)


def _is_silent(evidence: Evidence) -> bool:
    """Return whether the recipe lists no symptom in the log, so that only a check shows the fault."""
    return not evidence.recipe.symptoms


def _has_recovered(signal: str, place: int, fixed: LogValues, healthy: LogValues) -> bool:
    """Return whether a fixed value is near the healthy value at its step, or in the range of all healthy values."""
    value, sound = fixed.of(signal)[place], healthy.of(signal)
    finite = [item for item in sound.values() if math.isfinite(item)]
    within = bool(finite) and min(finite) <= value <= max(finite)
    return within or (place in sound and not fixed.departs(signal, place, healthy))


def _judge_shown(evidence: Evidence, accepted: bool | None) -> RubricItem:
    remedy = "Paste log lines that show the fault into a code block, or add a plot as an image with a data: URI."
    if evidence.report is None:
        return lost(*_SHOWN, "There is no report.md.", remedy)
    if evidence.body.shows_picture:
        return full(*_SHOWN, "The report contains an image.")
    if not evidence.body.value_lines:
        return lost(*_SHOWN, "The report contains neither a plot nor lines of a log.", remedy)
    if _is_silent(evidence):
        return full(*_SHOWN, "The report contains log values. This is enough, because the log does not show the fault.")
    for name, replay in (("broken", evidence.broken), ("reference", evidence.reference)):
        if replay.status != "OK":
            return open_item(*_SHOWN, f"We could not replay the {name} run: {replay.message}")
    if shows_departures(evidence.body.value_lines, log_values(evidence.broken.log), sound_logs(evidence, accepted)):
        return full(*_SHOWN, "The report contains values of the broken run that differ from a healthy run.")
    reason = "The report contains numbers, but none of them differs between the broken run and a healthy run."
    return lost(*_SHOWN, reason, remedy)
