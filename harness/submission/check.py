"""`make check`: everything that can be judged of a workspace before it is handed in, without knowing the answer."""

import ast
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.checks import check_names
from harness.errors import UserError
from harness.plain_yaml import shown
from harness.recipe import suggestion
from harness.run.metrics_log import log_lines, parse_record, read_metrics_log
from harness.submission.archive import CHECKPOINT, META, METRICS_LOG, RUNS
from harness.submission.causes import OFF_BY, contradicted, load_causes
from harness.submission.check_item import CheckItem, Outcome, could_not_judge, failed, passed
from harness.submission.check_run import check_run, read_object, remedy, same
from harness.submission.log_values import LogValues, departs
from harness.submission.prose import judge_numbers, shows_log
from harness.submission.report import HEALTHY, PARTS, WORD_LIMIT, Report, RuledOut, Run, Sign, read_report
from harness.workspace import EXPERIMENT, Workspace, read_source

__all__ = ["CheckItem", "Outcome", "Outcomes", "Replay", "quick_checks", "render_checks", "run_checks"]

# Makes the named run of the workspace again, from its own source, and returns the folder of the new run.
Replay = Callable[[Literal["broken", "fixed"]], Path]
# Makes the named checks of the broken experiment, and returns their outcomes.
Outcomes = Callable[[Sequence[str]], Mapping[str, str]]

# Mark, mark for a terminal that has only ASCII, style.
_MARKS: dict[Outcome, tuple[str, str, str]] = {
    "passed": ("✓", "+", "green"),
    "failed": ("✗", "x", "bold red"),
    "could not judge": ("?", "?", "yellow"),
}
# If one of these differs, other bytes say nothing about the student's files.
_SURROUNDINGS = ("platform_class", "versions", "harness_sha256", "dataset_digest")


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
    for item in items:
        mark, plain_mark, style = _MARKS[item.outcome]
        if not (sys.stdout.encoding or "").lower().startswith("utf"):
            mark = plain_mark
        # As Text: rich would read markup in a message.
        table.add_row(Text(mark, style=style), Text(item.id), Text(item.message))
    counts = {outcome: sum(item.outcome == outcome for item in items) for outcome in _MARKS}
    summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    return Group(table, Text(f"\n{summary}."))


def check_experiment(workspace: Workspace) -> list[CheckItem]:
    """Judge whether the fixed run used the experiment as it is now, and whether the student changed it."""
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
        return passed(item, "the fixed run used the experiment as it is now.")
    message = f"{workspace.experiment} was edited after the fixed run: {remedy(workspace, 'fixed')}."
    return failed(item, message, blocks=True)


def _edited(workspace: Workspace, source: str) -> CheckItem:
    item = "experiment: edited"
    handed_out = workspace.run_folder("broken") / EXPERIMENT
    if not handed_out.is_file():
        return could_not_judge(item, "there is no broken run to compare with.")
    before = read_source(handed_out)
    if source == before:
        return failed(item, f"you have not changed {workspace.experiment}: fix the cause in it, then verify.")
    if _tree(source) == _tree(before):
        message = f"you have changed only comments and layout of {workspace.experiment}"
        return failed(item, f"{message}: fix the cause in it, then verify.")
    return passed(item, "it differs from the broken experiment.")


def _tree(source: str) -> str:
    """Return the syntax tree of a source, or the source itself if Python cannot read it."""
    try:
        return ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source


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
        self.logs = {run: _log(workspace, run) for run in RUNS}

    def diagnosis(self) -> Iterator[CheckItem]:
        """Judge each diagnosis: a known cause, a function of the experiment, a first wrong value that is one."""
        for number, entry in enumerate(self.report.diagnosis, start=1):
            item = f"report: diagnosis {number}"
            if problem := _unknown_cause(entry.cause):
                yield failed(item, problem)
                continue
            functions = self._functions()
            if functions and entry.where.strip("`() ") not in functions:
                message = f"experiment.py has no function {shown(entry.where)}: {suggestion(entry.where, functions)}"
                yield failed(item, message)
                continue
            yield self._fact(item, "broken", entry.first_wrong) or self._departs(item, entry.first_wrong)

    def _functions(self) -> list[str]:
        try:
            tree = ast.parse(self.workspace.broken_source())
        except (UserError, SyntaxError, ValueError, RecursionError, MemoryError):
            return []
        return [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]

    def _departs(self, item: str, sign: Sign) -> CheckItem:
        """Judge a true first wrong value: if the fixed run shows the same there, the fault does not change it."""
        broken, fixed = self.logs["broken"], self.logs["fixed"]
        if sign.signal is None or broken is None or fixed is None:
            return passed(item, "it is complete, and true of the broken run.")
        value, beside = (log.series.get(sign.signal, {}).get(sign.index) for log in (broken, fixed))
        if value is None or beside is None or departs(sign.signal, value, beside):
            return passed(item, f"{sign} is {sign.value} in the broken run.")
        message = f"{sign} is {value:.6g} in the broken run, and {beside:.6g} in the fixed run"
        return failed(item, f"{message}: cite the first value that the fault changes.")

    def ruled_out(self) -> Iterator[CheckItem]:
        """Judge each cause that is ruled out: another known cause, and a fact that contradicts it."""
        named = {entry.cause for entry in self.report.diagnosis}
        for number, entry in enumerate(self.report.ruled_out, start=1):
            item = f"report: ruled out {number}"
            if problem := _unknown_cause(entry.cause):
                yield failed(item, problem)
            elif entry.cause == HEALTHY:
                yield failed(
                    item, f"{HEALTHY} is no other cause: rule out one that could have broken the run."
                )
            elif entry.cause in named:
                yield failed(
                    item, f"{entry.cause} is your diagnosis, too: rule out a cause that you do not name."
                )
            elif (problem_item := self._fact(item, "broken", entry)) is not None:
                yield problem_item
            else:
                yield self._contradicted(item, entry)
        if len({entry.cause for entry in self.report.ruled_out} - named) < 2:
            yield failed("report: ruled out", f"{self.workspace.report} must rule out two other causes.")

    def _contradicted(self, item: str, entry: RuledOut) -> CheckItem:
        log = self.logs["broken"]
        if entry.check is not None or log is None:
            return passed(
                item, "it is true of the broken run; grading judges whether it contradicts the cause."
            )
        records = read_metrics_log(self.workspace.run_folder("broken") / METRICS_LOG)
        symptoms = load_causes()[entry.cause].on(self.workspace.settings.dataset)
        symptom = contradicted(entry, symptoms, records, log)
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
        if sign.check is not None:
            return self._outcome(item, sign)
        log = self.logs[run]
        if log is None:
            return could_not_judge(item, f"the log of the {run} run cannot be read.")
        path = self.workspace.run_folder(run) / METRICS_LOG
        try:
            value = log.value(sign.signal or "", sign.step, sign.epoch)
        except UserError as error:
            return failed(
                item, f"{self.workspace.report} cites {sign} of the {run} run, but in {path} {error}"
            )
        if log.agrees(sign.value or "", sign.signal or "", sign.index):
            return None
        message = (
            f"{self.workspace.report} says {sign} of the {run} run is {sign.value}, and {path} says {value}"
        )
        if log.agrees(sign.value or "", sign.signal or "", sign.index, within=OFF_BY):
            return failed(
                item, f"{message}: your value is that of the place before or after; both count from 0."
            )
        return failed(item, f"{message}: cite what the log holds, rounded as you like.")

    def _outcome(self, item: str, sign: Sign) -> CheckItem | None:
        if self.outcomes is None:
            return could_not_judge(item, f"not measured here: {self.workspace.command('check')} does that.")
        name = _check_name(sign)
        if name not in check_names():
            return failed(item, f"there is no check {shown(name)!r}: {suggestion(name, check_names())}")
        try:
            found = self._outcomes[name]
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
        cited = {_check_name(sign) for sign in (*signs, *self.report.ruled_out) if sign.check is not None}
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
        if body.filled_sections < len(PARTS):
            parts = f"write {', '.join(PARTS)}, each under a heading"
            message = f"{body.filled_sections} headings of {report} have text: {parts}."
            yield failed("report: parts", message)
        else:
            yield passed("report: parts", f"{body.filled_sections} headings have text.")
        logs = [log for log in self.logs.values() if log is not None]
        yield self._numbers(logs)
        yield self._snippet(logs)

    def _numbers(self, logs: Sequence[LogValues]) -> CheckItem:
        item = "report: numbers"
        sources = [read_source(path) for path in self._sources() if path.is_file()]
        numbers = judge_numbers(self.report.body, logs, sources)
        wrong = [f"{number.text} ({number.signals[0]})" for number in numbers if number.verdict == "wrong"]
        if wrong and len(logs) == len(RUNS):
            message = f"{self.workspace.report} has numbers that neither log holds for their signal"
            return failed(item, f"{message}: {', '.join(wrong[:5])}: take them from metrics.log.")
        if wrong:
            return could_not_judge(item, f"a log is missing to compare {', '.join(wrong[:5])} with.")
        true = sum(number.verdict == "true" for number in numbers)
        return passed(item, f"{true} numbers beside a signal's name agree with the logs, and none disagrees.")

    def _sources(self) -> list[Path]:
        return [self.workspace.experiment, self.workspace.run_folder("broken") / EXPERIMENT]

    def _snippet(self, logs: Sequence[LogValues]) -> CheckItem:
        item, body = "report: snippet", self.report.body
        outside = [address for address in body.images if not address.lower().startswith("data:")]
        if outside:
            return failed(
                item,
                f"{self.workspace.report} shows {shown(outside[0])}, which is not handed in with it: put the picture"
                " into the text as a data: address, or paste lines of the log into a code block.",
            )
        if body.images or shows_log(body, logs):
            return passed(item, "it shows a picture, or lines of a log.")
        message = f"{self.workspace.report} has no plot and no line of a log: paste the lines that matter"
        return failed(item, f"{message} into a code block (```).")


def _log(workspace: Workspace, run: str) -> LogValues | None:
    try:
        return LogValues(read_metrics_log(workspace.run_folder(run) / METRICS_LOG))
    except UserError:
        return None  # the checks of that run say so


def _check_name(sign: Sign) -> str:
    return str(sign.check).replace("-", "_")


def _unknown_cause(name: str) -> str:
    known = load_causes()
    return "" if name in known else f"there is no cause {shown(name)!r}: {suggestion(name, list(known))}"


def check_replay(workspace: Workspace, run: Literal["broken", "fixed"], replay: Replay | None) -> CheckItem:
    """Make one run again and compare its log and checkpoint, byte by byte."""
    item = f"{run}: repeats"
    if replay is None:
        return could_not_judge(item, f"not made again here: {workspace.command('check')} does that.")
    if not workspace.has_run(run):
        return could_not_judge(item, "there is no finished run to make again.")
    folder = workspace.run_folder(run)
    try:
        again = replay(run)
        difference = first_difference(folder, again)
        if difference is None:
            return passed(
                item, f"{METRICS_LOG} and {CHECKPOINT} have the same bytes when the run is made again."
            )
        changed = _changed_surroundings(folder, again)
    except UserError as error:
        return could_not_judge(item, f"the run could not be made again: {error}")
    if changed:
        message = f"{difference}; but the run was made with another {changed}"
        return could_not_judge(item, f"{message}: {remedy(workspace, run)}.")
    return failed(
        item,
        f"{difference}; if you edited {folder} after the run, {remedy(workspace, run)}; if not, the"
        " experiment uses something that the seed does not decide (the clock, a generator of its own).",
    )


def first_difference(recorded: Path, again: Path) -> str | None:
    """Return where two folders of a run first differ in their log or else in their checkpoint, or None."""
    log, new_log = (folder / METRICS_LOG for folder in (recorded, again))
    old, new = log.read_bytes(), new_log.read_bytes()
    if old != new:
        return f"{log}{log_difference(old, new)}"
    if (recorded / CHECKPOINT).read_bytes() != (again / CHECKPOINT).read_bytes():
        return f"{recorded / CHECKPOINT} has other bytes when the run is made again, but the log is the same"
    return None


def log_difference(old: bytes, new: bytes) -> str:
    """Return where two different logs first differ, as the end of a sentence that began with the file's name."""
    lines, new_lines = (log_lines(data.decode("utf-8", "backslashreplace")) for data in (old, new))
    for number, (line, new_line) in enumerate(zip(lines, new_lines, strict=False), start=1):
        if line != new_line:
            return f", line {number}{_record_difference(line, new_line)}"
    if len(lines) != len(new_lines):
        return f" has {len(lines)} lines, and {len(new_lines)} when the run is made again"
    return " ends differently when the run is made again"


def _record_difference(line: str, new_line: str) -> str:
    try:
        record, new_record = parse_record(line), parse_record(new_line)
    except ValueError:
        return " is not the record that the run writes when it is made again"
    kind = "step" if "step" in new_record else "epoch"
    for path, old, new in _differences(record, new_record, ""):
        return f" ({kind} {new_record.get(kind)}): {shown(path)} is {shown(old)}, and {shown(new)} made again"
    return f" ({kind} {new_record.get(kind)}) is written differently"


_ABSENT = "absent"


def _differences(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*new, *(key for key in old if key not in new)]:
            inner = f"{path}.{key}" if path else str(key)
            yield from _differences(old.get(key, _ABSENT), new.get(key, _ABSENT), inner)
    elif not same(old, new):
        yield path, old, new


def _changed_surroundings(recorded: Path, again: Path) -> str | None:
    old, new = read_object(recorded / META), read_object(again / META)
    return next((key for key in _SURROUNDINGS if old.get(key) != new.get(key)), None)
