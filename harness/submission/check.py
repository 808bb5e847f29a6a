"""`make check`: everything that can be judged of a workspace before it is handed in, without knowing the answer."""

import ast
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.checks import check_names
from harness.errors import UserError
from harness.plain_yaml import shown
from harness.recipe import suggestion
from harness.run.metrics_log import Record, read_metrics_log
from harness.submission.check_run import (
    CheckItem,
    Outcome,
    Replay,
    check_experiment,
    check_replay,
    check_run,
    could_not_judge,
    failed,
    passed,
)
from harness.submission.log_values import OFF_BY, LogValues, contradicted, load_causes
from harness.submission.prose import agreement, judge_numbers, shows_log, wrong_numbers
from harness.submission.report import HEALTHY, PARTS, WORD_LIMIT, Report, RuledOut, Run, Sign, read_report
from harness.workspace import EXPERIMENT, METRICS_LOG, RUNS, Workspace, read_source

# Makes the named checks of the broken experiment, and returns their outcomes.
Outcomes = Callable[[Sequence[str]], Mapping[str, str]]

# Mark, mark for a terminal that has only ASCII, style.
_MARKS: dict[Outcome, tuple[str, str, str]] = {
    "passed": ("✓", "+", "green"),
    "failed": ("✗", "x", "bold red"),
    "could not judge": ("?", "?", "yellow"),
}


def quick_checks(workspace: Workspace, outcomes: Outcomes | None = None) -> list[CheckItem]:
    """Judge what the files show. `outcomes` makes the checks that the report cites (None leaves them open)."""
    return [
        *check_run(workspace, "broken"),
        *check_run(workspace, "fixed"),
        *check_experiment(workspace),
        *check_report(workspace, outcomes),
    ]


def run_checks(
    workspace: Workspace, replay: Replay | None, outcomes: Outcomes | None = None
) -> list[CheckItem]:
    """Judge everything; `replay` makes the named run again and returns its folder (None leaves that open).

    If a run cannot be made again (`UserError`), its item is open; any other exception of `replay` is our fault, and
    is raised.
    """
    return [
        *quick_checks(workspace, outcomes),
        check_replay(workspace, "broken", replay),
        check_replay(workspace, "fixed", replay),
    ]


def render_checks(items: Sequence[CheckItem]) -> RenderableType:
    """Return the items as a table for the terminal, and under it the number of items by outcome."""
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    has_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    for item in items:
        mark, plain_mark, style = _MARKS[item.outcome]
        # As Text: rich would read markup in a message.
        table.add_row(
            Text(mark if has_unicode else plain_mark, style=style), Text(item.id), Text(item.message)
        )
    counts = {outcome: sum(item.outcome == outcome for item in items) for outcome in _MARKS}
    summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    return Group(table, Text(f"\n{summary}."))


def check_report(workspace: Workspace, outcomes: Outcomes | None) -> list[CheckItem]:
    """Judge the report: diagnosis, ruled out causes and evidence against the logs, then the text."""
    try:
        report = read_report(workspace.report)
    except UserError as error:
        return [failed("report: front matter", str(error), blocks=True)]
    judge = _ReportJudge(workspace, report, outcomes)
    counts = f"{len(report.diagnosis)} diagnosis, {len(report.ruled_out)} ruled out, {len(report.evidence)} evidence"
    return [
        passed("report: front matter", f"{counts}."),
        *judge.diagnosis(),
        *judge.ruled_out(),
        *judge.evidence(),
        *judge.text(),
    ]


class _ReportJudge:
    """Compares one report with the logs of its workspace."""

    def __init__(self, workspace: Workspace, report: Report, outcomes: Outcomes | None) -> None:
        self.workspace = workspace
        self.report = report
        self.outcomes = outcomes
        self.records: dict[str, list[Record]] = {}
        for run in RUNS:
            try:
                self.records[run] = read_metrics_log(workspace.run_folder(run) / METRICS_LOG)
            except UserError:
                continue  # the checks of that run say so
        self.logs = {run: LogValues(records) for run, records in self.records.items()}

    def diagnosis(self) -> Iterator[CheckItem]:
        """Judge each diagnosis: a known cause, a function of the experiment, a first wrong value that is one."""
        for number, entry in enumerate(self.report.diagnosis, start=1):
            item, sign, functions = f"report: diagnosis {number}", entry.first_wrong, self._functions()
            if problem := _unknown_cause(entry.cause):
                yield failed(item, problem)
            elif functions and entry.where not in functions:
                unknown = f"experiment.py has no function {shown(entry.where)}"
                yield failed(item, f"{unknown}: {suggestion(entry.where, functions)}")
            elif (problem_item := self._fact(item, "broken", sign)) is not None:
                yield problem_item
            elif (same := self._same_when_fixed(sign)) is not None:
                message = f"{sign} is {sign.value} in the broken run, and {same:.6g} in the fixed run"
                yield failed(item, f"{message}: cite the first value that the fault changes.")
            else:
                yield passed(item, f"{sign} is {sign.value or sign.outcome} in the broken run.")

    def _same_when_fixed(self, sign: Sign) -> float | None:
        """Return the value of the fixed run if a true value of the broken run does not depart from it, or None."""
        fixed = self.logs.get("fixed")
        if fixed is None or not sign.signal or self.logs["broken"].departs(sign.signal, sign.index, fixed):
            return None
        return fixed.series.get(sign.signal, {}).get(sign.index)

    def _functions(self) -> list[str]:
        try:
            tree = ast.parse(self.workspace.broken_source())
        except (UserError, SyntaxError, ValueError, RecursionError, MemoryError):
            return []
        return [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]

    def ruled_out(self) -> Iterator[CheckItem]:
        """Judge each cause that is ruled out: another known cause, and a fact that contradicts it."""
        named = {entry.cause for entry in self.report.diagnosis}
        for number, entry in enumerate(self.report.ruled_out, start=1):
            item, cause = f"report: ruled out {number}", entry.cause
            if problem := _unknown_cause(cause):
                yield failed(item, problem)
            elif cause == HEALTHY:
                yield failed(item, f"{cause} is no other cause: rule out one that could have broken the run.")
            elif cause in named:
                yield failed(item, f"{cause} is your diagnosis, too: rule out a cause that you do not name.")
            else:
                yield self._fact(item, "broken", entry) or self._contradicted(item, entry)
        if len({entry.cause for entry in self.report.ruled_out} - named) < 2:
            yield failed("report: ruled out", f"{self.workspace.report} must rule out two other causes.")

    def _contradicted(self, item: str, entry: RuledOut) -> CheckItem:
        if entry.check:
            return passed(
                item, "it is true of the broken run; grading judges whether it contradicts the cause."
            )
        symptoms = load_causes()[entry.cause].on(self.workspace.settings.dataset)
        symptom = contradicted(entry, symptoms, self.records["broken"], self.logs["broken"])
        if symptom is not None:
            return passed(item, f"{entry} is {entry.value}, and with {entry.cause} {symptom.says}.")
        about = ", ".join(dict.fromkeys(symptom.signal for symptom in symptoms))
        message = f"{entry} is {entry.value}, which {entry.cause} allows"
        return failed(item, f"{message}: cite another place or signal ({about}), or the outcome of a check.")

    def evidence(self) -> Iterator[CheckItem]:
        """Judge each value that is cited as evidence, and whether there is one of each run."""
        for run in RUNS:
            if not any(entry.run == run for entry in self.report.evidence):
                message = f"{self.workspace.report} cites no value of the {run} run: add one under evidence."
                yield failed(f"report: evidence of {run}", message)
        for number, entry in enumerate(self.report.evidence, start=1):
            item = f"report: evidence {number}"
            yield self._fact(item, entry.run, entry) or passed(item, f"{entry} is {entry.value}.")

    def _fact(self, item: str, run: Run, sign: Sign) -> CheckItem | None:
        """Return what is wrong with a fact about a run, or None if it is true."""
        if sign.check:
            return self._outcome(item, sign)
        log = self.logs.get(run)
        if log is None:
            return could_not_judge(item, f"the log of the {run} run cannot be read.")
        if log.find(sign) is not None:
            return None
        path = self.workspace.run_folder(run) / METRICS_LOG
        message = f"{self.workspace.report} cites {sign} of the {run} run, but in {path} {log.untrue(sign)}"
        if log.find(sign, within=OFF_BY) is not None:
            message += " Your value is that of the place before or after; both count from 0."
        return failed(item, message)

    def _outcome(self, item: str, sign: Sign) -> CheckItem | None:
        if self.outcomes is None:
            return could_not_judge(item, f"not measured here: {self.workspace.command('check')} does that.")
        if sign.check not in check_names():
            known = suggestion(sign.check, check_names())
            return failed(item, f"there is no check {shown(sign.check)!r}: {known}")
        try:
            found = self._outcomes[sign.check]
        except UserError as error:
            return could_not_judge(item, f"the checks that you cite cannot be made: {error}")
        if found == sign.outcome:
            return None
        message = (
            f"{self.workspace.report} says that the {sign} finds {shown(sign.outcome)}, and it finds {found}"
        )
        return failed(item, f"{message}: write what the check prints.")

    @cached_property
    def _outcomes(self) -> Mapping[str, str]:
        """The outcomes of all checks that the report cites: they share one process."""
        assert self.outcomes is not None
        signs = [entry.first_wrong for entry in self.report.diagnosis]
        cited = {sign.check for sign in (*signs, *self.report.ruled_out)}
        return self.outcomes([name for name in check_names() if name in cited])

    def text(self) -> Iterator[CheckItem]:
        """Judge the text: its length, its four parts, the numbers in it, and the snippet or plot."""
        body, report = self.report.body, self.workspace.report
        if body.words > WORD_LIMIT:
            excess = f"{body.words} words, and {WORD_LIMIT} are allowed: leave out {body.words - WORD_LIMIT}"
            message = f"{report} has {excess} (front matter, code blocks and tables do not count)."
            yield failed("report: length", message, blocks=True)
        elif not body.prose_words:
            message = f"{report} has no text yet: write what you found under its headings."
            yield failed("report: length", message)
        else:
            yield passed("report: length", f"{body.words} words of {WORD_LIMIT}.")
        sections = f"{body.filled_sections} headings of {report} have text"
        if body.filled_sections < len(PARTS):
            yield failed("report: parts", f"{sections}: write {', '.join(PARTS)}, each under a heading.")
        else:
            yield passed("report: parts", f"{sections}.")
        yield self._numbers()
        yield self._snippet()

    def _numbers(self) -> CheckItem:
        item = "report: numbers"
        paths = [self.workspace.experiment, self.workspace.run_folder("broken") / EXPERIMENT]
        sources = [read_source(path) for path in paths if path.is_file()]
        numbers = judge_numbers(self.report.body, list(self.logs.values()), sources)
        wrong = ", ".join(wrong_numbers(numbers)[:5])
        if not wrong:
            return passed(item, agreement(numbers))
        if len(self.logs) < len(RUNS):
            return could_not_judge(item, f"a log is missing to compare {wrong} with.")
        message = f"{self.workspace.report} has numbers that neither log holds for their signal"
        return failed(item, f"{message}: {wrong}: take them from metrics.log.")

    def _snippet(self) -> CheckItem:
        item, body, report = "report: snippet", self.report.body, self.workspace.report
        outside = [address for address in body.images if not address.lower().startswith("data:")]
        if outside:
            return failed(
                item,
                f"{report} shows {shown(outside[0])}, which is not handed in with it: put the picture"
                " into the text as a data: address, or paste lines of the log into a code block.",
            )
        if body.images or shows_log(body, list(self.logs.values())):
            return passed(item, "it shows a picture, or lines of a log.")
        message = f"{report} has no plot and no line of a log: paste the lines that matter"
        return failed(item, f"{message} into a code block (```).")


def _unknown_cause(name: str) -> str:
    known = load_causes()
    return "" if name in known else f"there is no cause {shown(name)!r}: {suggestion(name, list(known))}"
