"""Diagnostics: both logs are complete, and what the report cites is true, shows the fault, and shows the recovery."""

import math
from collections.abc import Sequence
from functools import lru_cache

from grader.intake.submission import Run
from grader.replay.replay import Replay
from grader.score.belief import figure_doubt
from grader.score.evidence import Evidence
from grader.score.explanation import body_of
from grader.score.verdict import Check, full, lost, open_check
from harness.errors import UserError
from harness.run.metrics_log import Record, batch_records, epoch_records, log_lines, parse_log
from harness.submission.causes import OFF_BY
from harness.submission.check_run import diagnostic_faults
from harness.submission.log_values import LogValues, departs, log_values
from harness.submission.prose import shows_log
from harness.submission.report import Report, Sign, parse_report

_BROKEN_CITED = ("broken_cited", "A cited value of the broken run is true", 6.0)
_KEY_SIGNAL = ("key_signal", "It is a value in which this fault shows", 6.0)
_RECOVERY = ("recovery", "A cited value of the fixed run is true and shows recovery", 4.0)
_SHOWN = ("shown", "A plot or a snippet of the log shows the symptom", 2.0)
_CITE = "Cite a value of the {run} run as its metrics.log has it, rounded as you like."


def judge_diagnostics(evidence: Evidence) -> tuple[Check, ...]:
    """Return the six checks of the criterion. Cited values are compared with the replay, never with the claim."""
    report: Report | None = None
    problem = "There is no report.md."
    if evidence.report is not None:
        try:
            report = parse_report(evidence.report)
        except UserError as error:
            problem = str(error)
    return (
        _complete(evidence, "broken", 8.0),
        _complete(evidence, "fixed", 4.0),
        _broken_cited(evidence, report, problem),
        _key_signal(evidence, report, problem),
        _recovery(evidence, report, problem),
        _shown(evidence),
    )


def _complete(evidence: Evidence, run: Run, maximum: float) -> Check:
    id, title = f"{run}_complete", f"The {run} log is complete for every batch"
    remedy = "Hand in the whole log as the run wrote it."
    log = evidence.claims[run].log
    if log is None:
        return lost(id, title, maximum, f"runs/{run}/metrics.log is missing.", remedy)
    replay = evidence.replay(run)
    name = f"runs/{run}/metrics.log"
    if log == replay.log.encode() and replay.status == "OK":  # nearly every log: judged once for all
        fault, batches = _replay_fault(replay.log, name)
        return lost(id, title, maximum, f"{fault}.", remedy) if fault else _whole(id, title, maximum, batches)
    try:
        records = parse_log(log_lines(log.decode("utf-8")), name)
    except UnicodeDecodeError:
        return lost(id, title, maximum, f"{name} is not text.", remedy)
    except UserError as error:
        return lost(id, title, maximum, str(error), remedy)
    fault = _first_fault(name, records)
    if fault is None and replay.status == "OK":
        batches, expected = len(batch_records(records)), len(batch_records(replay.records()))
        fault = None if batches == expected else f"it has {batches} batches, and the run has {expected}"
    if fault is not None:
        return lost(id, title, maximum, f"{fault}.", remedy)
    return _whole(id, title, maximum, len(batch_records(records)))


def _whole(id: str, title: str, maximum: float, batches: int) -> Check:
    reason = f"All {batches} batches have loss, gradient means, first and last activations."
    return full(id, title, maximum, reason)


@lru_cache(maxsize=64)
def _replay_fault(log: str, name: str) -> tuple[str | None, int]:
    """Return the first fault of a replayed log, and how many batches it has."""
    records = parse_log(log_lines(log), name)
    return _first_fault(name, records), len(batch_records(records))


def _first_fault(name: str, records: Sequence[Record]) -> str | None:
    if not batch_records(records) or not epoch_records(records):
        return f"{name} holds no whole epoch"
    try:
        return next(diagnostic_faults(name, records), None)
    except (AttributeError, TypeError, KeyError):
        return f"{name} holds records of another form"


def _not_compared(
    check: tuple[str, str, float], evidence: Evidence, run: Run, report: Report | None, problem: str
) -> Check | None:
    """Return the verdict if there is nothing to compare, or nothing to compare with."""
    remedy = _CITE.format(run=run)
    if report is None:
        return lost(*check, problem, remedy)
    if not report.cited(run):
        return lost(*check, f"The report cites no value of the {run} run.", remedy)
    replay = evidence.replay(run)
    if replay.status == "XX":
        return open_check(
            *check, f"The {run} run could not be replayed, which is not your fault: {replay.message}"
        )
    if replay.status != "OK":
        return lost(*check, f"The {run} run failed when it was made again ({replay.status}).", remedy)
    return None


def _true_signs(
    report: Report, replay: Replay, run: Run, *, within: int = 0
) -> tuple[list[tuple[Sign, int]], str]:
    """Return the cited values that the replay has, each with its place there, and what is wrong with the first other.

    within: how many places off a value may stand.
    """
    log, true, problem = log_values(replay.log), [], ""
    for sign in report.cited(run):
        signal, written = sign.signal or "", sign.value or ""
        try:
            value = log.value(signal, sign.step, sign.epoch)
        except UserError as error:
            problem = problem or f"You cite {sign} of the {run} run, but {error}"
            continue
        near = sorted(
            range(sign.index - within, sign.index + within + 1), key=lambda at: abs(at - sign.index)
        )
        place = next((at for at in near if log.agrees(written, signal, at)), None)
        if place is not None:
            true.append((sign, place))
        else:
            problem = (
                problem or f"You cite {sign} of the {run} run as {written}, and the replay has {value:.6g}."
            )
    return true, problem


def _broken_cited(evidence: Evidence, report: Report | None, problem: str) -> Check:
    if (verdict := _not_compared(_BROKEN_CITED, evidence, "broken", report, problem)) is not None:
        return verdict
    assert report is not None
    true, wrong = _true_signs(report, evidence.broken, "broken")
    if true:
        return full(*_BROKEN_CITED, f"{true[0][0]} is {true[0][0].value} in the replay, too.")
    return lost(*_BROKEN_CITED, wrong, _CITE.format(run="broken"))


def _key_signal(evidence: Evidence, report: Report | None, problem: str) -> Check:
    if (verdict := _not_compared(_KEY_SIGNAL, evidence, "broken", report, problem)) is not None:
        return verdict
    assert report is not None
    if evidence.reference.status != "OK":
        reason = f"There is no healthy run to compare with: {evidence.reference.message}"
        return open_check(*_KEY_SIGNAL, reason)
    broken, healthy = log_values(evidence.broken.log), log_values(evidence.reference.log)
    # A step that is off by one has cost the points of broken_cited already.
    true, wrong = _true_signs(report, evidence.broken, "broken", within=OFF_BY)
    for sign, place in true:
        if _departs(sign, place, broken, healthy):
            beside = healthy.series[sign.signal or ""][place]
            return full(*_KEY_SIGNAL, f"{sign} is {sign.value}, and {beside:.4g} in a healthy run.")
    reason = f"{true[0][0]} is {true[0][0].value}, much as in a healthy run." if true else wrong
    remedy = "Cite a value in which the broken run differs from what a healthy one would show."
    return lost(*_KEY_SIGNAL, reason, remedy)


def _departs(sign: Sign, place: int, log: LogValues, other: LogValues) -> bool:
    """Return whether a log departs from another at a place; an exact 0 departs from any other value."""
    signal = sign.signal or ""
    value, beside = log.series.get(signal, {}).get(place), other.series.get(signal, {}).get(place)
    return value is not None and beside is not None and departs(signal, value, beside)


def _recovery(evidence: Evidence, report: Report | None, problem: str) -> Check:
    if (verdict := _not_compared(_RECOVERY, evidence, "fixed", report, problem)) is not None:
        return verdict
    assert report is not None
    for name, replay in (("broken", evidence.broken), ("healthy", evidence.reference)):
        if replay.status != "OK":
            return open_check(*_RECOVERY, f"There is no {name} run to compare with: {replay.message}")
    broken, fixed, healthy = (
        log_values(replay.log) for replay in (evidence.broken, evidence.fixed, evidence.reference)
    )
    true, wrong = _true_signs(report, evidence.fixed, "fixed")
    for sign, place in true:
        if _departs(sign, place, fixed, broken) and _is_back(sign, place, fixed, healthy):
            if doubt := figure_doubt(evidence):
                reason = f"The value is true of the replay's log, but {doubt}. The instructor decides."
                return open_check(*_RECOVERY, reason)
            return full(*_RECOVERY, f"{sign} is {sign.value}: recovered.")
    reason = f"{true[0][0]} is {true[0][0].value}, which shows no recovery." if true else wrong
    remedy = "Cite a value of the fixed run that was wrong in the broken run and is healthy now."
    return lost(*_RECOVERY, reason, remedy)


def _is_back(sign: Sign, place: int, fixed: LogValues, healthy: LogValues) -> bool:
    """Return whether a value of the fixed run is near the healthy run's, or within what that shows over its run."""
    signal = sign.signal or ""
    value, shown = fixed.series[signal][place], healthy.series.get(signal, {})
    finite = [item for item in shown.values() if math.isfinite(item)]
    within = bool(finite) and min(finite) <= value <= max(finite)
    return within or (place in shown and not departs(signal, value, shown[place]))


def _shown(evidence: Evidence) -> Check:
    remedy = "Paste the lines of the log that matter into a code block, or a plot as a data: picture."
    if evidence.report is None:
        return lost(*_SHOWN, "There is no report.md.", remedy)
    body = body_of(evidence.report)
    pictures = [address for address in body.images if address.lower().startswith("data:image/")]
    replays = [replay for replay in (evidence.broken, evidence.fixed) if replay.status == "OK"]
    if pictures or shows_log(body, [log_values(replay.log) for replay in replays]):
        return full(*_SHOWN, "The report shows a picture, or lines of a log.")
    if len(replays) < 2 and any(replay.status == "XX" for replay in (evidence.broken, evidence.fixed)):
        return open_check(*_SHOWN, "A log of the replay is missing to compare the snippets with.")
    return lost(*_SHOWN, "The report shows no plot and no line of a log.", remedy)
