"""Diagnostics: both logs are complete, and what the report cites is true, telling, and shown."""

from collections.abc import Sequence

from grader.intake.submission import Run
from grader.replay.replay import Replay
from grader.score.belief import figure_doubt
from grader.score.evidence import Evidence
from grader.score.verdict import Check, full, lost, open_check
from harness.errors import UserError
from harness.run.metrics_log import Record, batch_records, epoch_records, log_lines, parse_log
from harness.submission.check_run import diagnostic_faults
from harness.submission.cited_numbers import agrees, cited_value
from harness.submission.student_report import Evidence as Citation
from harness.submission.student_report import StudentReport, parse_report

_CITE = "Cite under evidence: a number of the {run} run as its metrics.log has it, rounded to the digits you write."


def judge_diagnostics(evidence: Evidence) -> tuple[Check, ...]:
    """Return the six checks of the criterion. Cited numbers are held against the replay, never the claim."""
    try:
        report: StudentReport | None = parse_report(evidence.report or "")
        problem = ""
    except UserError as error:
        report, problem = None, str(error)
    if evidence.report is None:
        problem = "There is no report.md."
    return (
        _complete(evidence, "broken", 8.0),
        _complete(evidence, "fixed", 4.0),
        _broken_cited(evidence, report, problem),
        _key_signal(evidence, report, problem),
        _recovery(evidence, report, problem),
        _shown(report, problem),
    )


def _complete(evidence: Evidence, run: Run, maximum: float) -> Check:
    id, title = f"{run}_complete", f"The {run} log is complete for every batch"
    remedy = "Hand in the log as the run wrote it, to its end."
    log = evidence.claims[run].log
    if log is None:
        return lost(id, title, maximum, f"runs/{run}/metrics.log is missing.", remedy)
    replay = evidence.replay(run)
    try:
        same = log == replay.log.encode()
        records = (
            replay.records() if same else parse_log(log_lines(log.decode("utf-8")), f"runs/{run}/metrics.log")
        )
    except UnicodeDecodeError:
        return lost(id, title, maximum, f"runs/{run}/metrics.log is not text.", remedy)
    except UserError as error:
        return lost(id, title, maximum, str(error), remedy)
    fault = _first_fault(f"runs/{run}/metrics.log", records)
    if fault is None and replay.status == "OK":
        fault = _too_short(records, replay)
    if fault is not None:
        return lost(id, title, maximum, f"{fault}.", remedy)
    reason = (
        f"Loss, every parameter's gradient mean, first and last activations, in all"
        f" {len(batch_records(records))} batches."
    )
    return full(id, title, maximum, reason)


def _first_fault(name: str, records: Sequence[Record]) -> str | None:
    if not batch_records(records) or not epoch_records(records):
        return f"{name} holds no whole epoch"
    try:
        return next(diagnostic_faults(name, records), None)
    except (AttributeError, TypeError, KeyError):
        return f"{name} holds records of another form"


def _too_short(records: Sequence[Record], replay: Replay) -> str | None:
    ours = replay.records()
    batches, expected = len(batch_records(records)), len(batch_records(ours))
    if batches != expected:
        return f"it has {batches} batches, and the run {expected}"
    return None


def _true_citations(report: StudentReport, evidence: Evidence, run: Run) -> tuple[list[Citation], str]:
    """Return what is cited of a run and true in its replay, and the first thing that is not, in words."""
    records, true, wrong = evidence.replay(run).records(), [], ""
    for citation in report.evidence:
        if citation.run != run:
            continue
        told = f"{citation.signal} at {citation.place} of the {run} run"
        try:
            value = cited_value(records, citation)
        except UserError as error:
            wrong = wrong or f"You cite {told}, but {error}"
            continue
        if agrees(citation.value, value):
            true.append(citation)
        else:
            wrong = wrong or f"You cite {told} as {citation.value}, and the replay has {value!r}."
    return true, wrong


def _unjudged(
    id: str,
    title: str,
    maximum: float,
    evidence: Evidence,
    run: Run,
    report: StudentReport | None,
    problem: str,
) -> Check | None:
    """Return the verdict where there is nothing to hold against each other."""
    remedy = _CITE.format(run=run)
    if report is None:
        return lost(id, title, maximum, problem, remedy)
    if not any(citation.run == run for citation in report.evidence):
        return lost(id, title, maximum, f"The report cites no number of the {run} run.", remedy)
    replay = evidence.replay(run)
    if replay.status == "XX":
        reason = f"The {run} run could not be replayed, through no fault of yours: {replay.message}"
        return open_check(id, title, maximum, reason)
    if replay.status != "OK":
        reason = f"The {run} run did not come to its end when it was made again ({replay.status})."
        return lost(id, title, maximum, reason, remedy)
    return None


def _broken_cited(evidence: Evidence, report: StudentReport | None, problem: str) -> Check:
    id, title, maximum = "broken_cited", "A cited number of the broken run is true", 6.0
    if (verdict := _unjudged(id, title, maximum, evidence, "broken", report, problem)) is not None:
        return verdict
    assert report is not None
    true, wrong = _true_citations(report, evidence, "broken")
    if true:
        reason = f"{true[0].signal} at {true[0].place} is {true[0].value} in the replay, too."
        return full(id, title, maximum, reason)
    return lost(id, title, maximum, wrong, _CITE.format(run="broken"))


def _key_signal(evidence: Evidence, report: StudentReport | None, problem: str) -> Check:
    id, title, maximum = "key_signal", "It is a number in which this failure shows", 6.0
    if (verdict := _unjudged(id, title, maximum, evidence, "broken", report, problem)) is not None:
        return verdict
    assert report is not None
    true, wrong = _true_citations(report, evidence, "broken")
    keys = [citation for citation in true if evidence.solution.is_key_signal(citation.signal)]
    telling = [citation for citation in keys if not _has(evidence.reference, citation)]
    if telling:
        return full(id, title, maximum, f"{telling[0].signal} is a signal in which this failure shows.")
    reason = f"{true[0].signal} looks the same in a healthy run." if true else wrong
    if keys:
        reason = (
            f"{keys[0].signal} is a signal in which this failure shows, but at {keys[0].place} it is"
            f" {keys[0].value} in a healthy run, too."
        )
    remedy = "Cite a quantity in which the broken run differs from what a healthy one would show."
    return lost(id, title, maximum, reason, remedy)


def _has(replay: Replay, citation: Citation) -> bool:
    """Say whether a run has the number that is cited of another one, at that place and as it is rounded."""
    try:
        return replay.status == "OK" and agrees(citation.value, cited_value(replay.records(), citation))
    except UserError:  # it has no such place
        return False


def _recovery(evidence: Evidence, report: StudentReport | None, problem: str) -> Check:
    id, title, maximum = "recovery", "A cited number of the fixed run is true and shows recovery", 4.0
    if (verdict := _unjudged(id, title, maximum, evidence, "fixed", report, problem)) is not None:
        return verdict
    assert report is not None
    true, wrong = _true_citations(report, evidence, "fixed")
    recoveries = evidence.solution.recoveries_on(evidence.settings.dataset)
    records = evidence.fixed.records()
    shows = [
        citation
        for citation in true
        if any(item.shown_by(citation.signal, cited_value(records, citation)) for item in recoveries)
        and not _has(evidence.broken, citation)
    ]
    remedy = "Cite a number of the fixed run by which a reader sees that the failure is gone."
    if shows and (doubt := figure_doubt(evidence)):
        reason = f"The number is true in the replay's log, but {doubt}. The instructor decides."
        return open_check(id, title, maximum, reason)
    if shows:
        return full(
            id, title, maximum, f"{shows[0].signal} is {shows[0].value} at {shows[0].place}: recovered."
        )
    reason = f"{true[0].signal} {true[0].value} at {true[0].place} shows no recovery." if true else wrong
    return lost(id, title, maximum, reason, remedy)


def _shown(report: StudentReport | None, problem: str) -> Check:
    id, title, maximum = "shown", "A plot or a snippet shows the symptom", 2.0
    remedy = "Paste the lines of the log that matter into a code block, or a plot as a data: picture."
    if report is None:
        return lost(id, title, maximum, problem, remedy)
    pictures = [address for address in report.images if address.lower().startswith("data:image/")]
    if report.snippets or pictures:
        reason = f"Code blocks and tables: {report.snippets}, pictures: {len(pictures)}."
        return full(id, title, maximum, reason)
    return lost(id, title, maximum, "The report shows nothing of the log.", remedy)
