"""Checks of the report and of the experiment, none of which knows the answer."""

import ast
from collections.abc import Sequence

from harness.errors import UserError
from harness.plain_yaml import shown
from harness.run.metrics_log import Record, read_metrics_log
from harness.submission.archive import METRICS_LOG, RUNS
from harness.submission.check_item import CheckItem, could_not_judge, failed, passed
from harness.submission.check_run import remedy
from harness.submission.cited_numbers import agrees, cited_value
from harness.submission.report_body import WORD_LIMIT
from harness.submission.student_report import Evidence, StudentReport, read_report
from harness.workspace import EXPERIMENT, Workspace, read_source


def check_experiment(workspace: Workspace) -> list[CheckItem]:
    """Judge whether the fixed run is of the experiment as it now stands, and was edited at all."""
    try:
        source = read_source(workspace.experiment)
    except UserError as error:
        return [failed("experiment: verified", str(error), blocks=True)]
    return [_verified(workspace, source), _edited(workspace, source)]


def _verified(workspace: Workspace, source: str) -> CheckItem:
    item = "experiment: verified"
    ran = workspace.run_folder("fixed") / EXPERIMENT
    if not ran.is_file():
        return could_not_judge(item, f"there is no fixed run yet: {remedy(workspace, 'fixed')}.")
    if read_source(ran) == source:
        return passed(item, "the fixed run is of the experiment as it now stands.")
    return failed(
        item,
        f"{workspace.experiment} was edited after the fixed run: {remedy(workspace, 'fixed')}.",
        blocks=True,
    )


def _edited(workspace: Workspace, source: str) -> CheckItem:
    item = "experiment: edited"
    handed_out = workspace.run_folder("broken") / EXPERIMENT
    if not handed_out.is_file():
        return could_not_judge(item, "there is no broken run to compare with.")
    before = read_source(handed_out)
    if source == before:
        return failed(
            item, f"{workspace.experiment} is as it was handed out: mend the cause in it, then verify."
        )
    if _tree(source) == _tree(before):
        message = f"{workspace.experiment} differs from what was handed out in comments and layout alone"
        return failed(item, f"{message}: mend the cause in it, then verify.")
    return passed(item, "it differs from what was handed out.")


def _tree(source: str) -> str:
    """Return what a source says to Python, or the source itself where Python cannot read it."""
    try:
        return ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source


def check_report(workspace: Workspace) -> list[CheckItem]:
    """Judge the report: its front matter, its length, and each number that it cites."""
    try:
        report = read_report(workspace.report)
    except UserError as error:
        return [failed("report: front matter", str(error), blocks=True)]
    items = [passed("report: front matter", f"{len(report.evidence)} cited numbers, and the layer is named.")]
    items += [_length(workspace, report), _picture(workspace, report)]
    logs = {run: _log(workspace, run) for run in RUNS}
    for run in RUNS:
        if not any(evidence.run == run for evidence in report.evidence):
            message = f"{workspace.report} cites no number of the {run} run: add one under evidence."
            items.append(failed(f"report: evidence of {run}", message))
    for number, evidence in enumerate(report.evidence, start=1):
        items.append(_cited(workspace, f"report: evidence {number}", evidence, logs[evidence.run]))
    return items


def _length(workspace: Workspace, report: StudentReport) -> CheckItem:
    item = "report: length"
    try:
        report.require_length(str(workspace.report))
    except UserError as error:
        return failed(item, str(error), blocks=True)
    if not report.prose_words:
        return failed(item, f"{workspace.report} tells nothing yet: write what you found under its headings.")
    return passed(item, f"{report.word_count} words of {WORD_LIMIT}.")


def _picture(workspace: Workspace, report: StudentReport) -> CheckItem:
    item = "report: snippet"
    outside = [address for address in report.images if not address.lower().startswith("data:")]
    if outside:
        return failed(
            item,
            f"{workspace.report} shows {shown(outside[0])}, which is not handed in with it: put the picture"
            " into the text as a data: address, or the lines of the log into a code block.",
        )
    if report.snippets or report.images:
        return passed(item, f"code blocks and tables: {report.snippets}, pictures: {len(report.images)}.")
    return failed(
        item, f"{workspace.report} shows nothing of the log: put the lines that matter into a code block."
    )


def _log(workspace: Workspace, run: str) -> Sequence[Record] | None:
    try:
        return read_metrics_log(workspace.run_folder(run) / METRICS_LOG)
    except UserError:
        return None  # the checks of that run say so


def _cited(
    workspace: Workspace, item: str, evidence: Evidence, records: Sequence[Record] | None
) -> CheckItem:
    if records is None:
        return could_not_judge(item, f"the log of the {evidence.run} run cannot be read.")
    log = workspace.run_folder(evidence.run) / METRICS_LOG
    told = f"{shown(evidence.signal)} at {evidence.place} of the {evidence.run} run"
    try:
        true = cited_value(records, evidence)
    except UserError as error:
        return failed(item, f"{workspace.report} cites {told}, but in {log} {error}")
    if agrees(evidence.value, true):
        return passed(item, f"{told} is {evidence.value}.")
    return failed(
        item,
        f"{workspace.report} says {told} is {evidence.value}, and {log} says {true}:"
        " cite what the log holds, rounded to the digits you write.",
    )
