"""`make check`: check everything in a workspace that can be judged without the solution."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial

from rich.text import Text

from harness.checks import checks_for
from harness.checks.core.outcomes import check_of_value, outcomes_of, rival_outcome
from harness.console.terminal import fold
from harness.errors import UserError, printable, suggestion
from harness.recipes.recipe import HEALTHY
from harness.run.files import METRICS_LOG
from harness.run.metrics_log import Record, read_metrics_log
from harness.run.symptoms import judge_symptom
from harness.submission.check_run import (
    CheckItem,
    ItemOutcome,
    Rerun,
    check_archive,
    check_experiment,
    check_repeats,
    check_run,
    could_not_judge,
    failed_item,
    passed_item,
)
from harness.submission.document import EMBEDDED, TOO_LONG
from harness.submission.log_values import OFF_BY, LogValues, find_contradicted, load_causes, no_first_sign
from harness.submission.places import place_named, places_of
from harness.submission.report import (
    AREAS,
    BY_CHECKS,
    PARTS,
    RIVALS,
    WORD_LIMIT,
    Diagnosis,
    Report,
    RuledOut,
    Sign,
    read_report,
)
from harness.workspace.workspace import RUNS, Run, Workspace

# A function that runs the named checks on the broken experiment, and returns {check: outcome}.
FindOutcomes = Callable[[Sequence[str]], Mapping[str, str]]

_STYLES: dict[ItemOutcome, str] = {"passed": "green", "failed": "bold red", "could not judge": "yellow"}


def check_workspace(
    workspace: Workspace, rerun: Rerun | None = None, outcomes: FindOutcomes | None = None
) -> list[CheckItem]:
    """Judge both runs, the experiment and the report. Return one item for each judged part.

    rerun: a function that makes the named run again and returns its folder, or None to make no run again. If it raises
    `UserError`, the item of that run is not judged. outcomes: a function that runs the checks that the report cites, or
    None to leave the items of these checks unjudged.
    """
    return [
        *check_run(workspace, "broken"),
        *check_run(workspace, "fixed"),
        *check_experiment(workspace, expects_edit=not _finds_nothing_wrong(workspace)),
        *check_archive(workspace),
        *check_report(workspace, outcomes),
        *(check_repeats(workspace, run, rerun) for run in RUNS if rerun is not None),
    ]


def _finds_nothing_wrong(workspace: Workspace) -> bool:
    with suppress(UserError):
        return [entry.cause for entry in read_report(workspace.report).diagnosis] == [HEALTHY]
    return False


def render_checks(items: Sequence[CheckItem], width: int | None = None) -> Text:
    """Return a text with one line for each item, and a last line that counts the outcomes.

    Print the text with `soft_wrap`.

    width: the columns of the terminal, or None. Messages that are longer are wrapped and indented.
    """
    column = max((len(item.id) for item in items), default=0)
    text = Text()
    for item in items:
        word = "open" if item.outcome == "could not judge" else item.outcome
        start = f"{word:<6}  {item.id:<{column}}  "
        # Wrap only the first line of an error message, because its other lines quote the student's program.
        first, *more = item.message.split("\n")
        lines = [fold(start + first, width, hang=len(start)), *more]
        text.append(lines[0][:6], style=_STYLES[item.outcome]).append("\n".join(lines)[6:] + "\n")
    counts = {outcome: sum(item.outcome == outcome for item in items) for outcome in _STYLES}
    return text.append(f"\n{', '.join(f'{count} {outcome}' for outcome, count in counts.items() if count)}.")


def check_report(workspace: Workspace, outcomes: FindOutcomes | None) -> list[CheckItem]:
    """Compare the diagnosis, the ruled-out causes and the evidence in the report with the logs, then judge its text."""
    try:
        report = read_report(workspace.report)
    except UserError as error:
        return [failed_item("report: front matter", str(error), blocks=True)]
    counts = f"{len(report.diagnosis)} diagnosis, {len(report.ruled_out)} ruled out, {len(report.evidence)} evidence"
    return [passed_item("report: front matter", f"{counts}."), *_ReportJudge(workspace, report, outcomes).items()]


class _Open(Exception):
    """Raised if an item cannot be judged. The message says why."""


class _ReportJudge:
    """Compares one report with the logs of its workspace.

    There is a method for each item. It returns a sentence if the item passed. It raises `UserError` if the student has
    to fix something, and `_Open` if the item cannot be judged.
    """

    def __init__(self, workspace: Workspace, report: Report, outcomes: FindOutcomes | None) -> None:
        self.workspace = workspace
        self.report = report
        self.outcomes = outcomes
        self.records: dict[str, Sequence[Record]] = {}
        for run in RUNS:
            with suppress(UserError):  # if the log is invalid, the items of that run say why
                self.records[run] = read_metrics_log(workspace.run_folder(run) / METRICS_LOG)
        self.logs = {run: LogValues(records) for run, records in self.records.items()}

    def items(self) -> Iterator[CheckItem]:
        """Yield one item for each entry in the front matter, and for each requirement on the text."""
        report = self.report
        for number, entry in enumerate(report.diagnosis, start=1):
            yield self._item(f"diagnosis {number}", partial(self._diagnosis, entry))
        for number, rival in enumerate(report.ruled_out, start=1):
            yield self._item(f"ruled out {number}", partial(self._judge_rival, rival))
        if problem := self._too_few_rivals():
            yield failed_item("report: ruled out", f"{self.workspace.report} {problem}.")
        for run in RUNS:
            if not any(entry.run == run for entry in report.evidence):
                message = f"{self.workspace.report} cites no value of the {run} run: add such a value under evidence."
                yield failed_item(f"report: evidence of {run}", message)
        for number, cited in enumerate(report.evidence, start=1):
            yield self._item(f"evidence {number}", partial(self._fact, cited.run, cited))
        yield self._item("length", self._length, blocks=report.body.words > WORD_LIMIT or report.body.cut > 0)
        yield self._item("parts", self._parts)
        yield self._item("snippet", self._snippet)

    def _item(self, name: str, judge: Callable[[], str], *, blocks: bool = False) -> CheckItem:
        try:
            return passed_item(f"report: {name}", judge())
        except _Open as reason:
            return could_not_judge(f"report: {name}", str(reason))
        except UserError as error:
            return failed_item(f"report: {name}", str(error), blocks=blocks)

    @cached_property
    def _named(self) -> set[str]:
        return {entry.cause for entry in self.report.diagnosis}

    def _diagnosis(self, entry: Diagnosis) -> str:
        """Judge a diagnosis: cause and function must exist, and the value must be the first that the fault changes."""
        sign, places = entry.first_wrong, self._places()
        _require_cause(entry.cause)
        if entry.cause == HEALTHY:
            if self.workspace.is_edited():
                raise _Open(
                    f"the diagnosis {HEALTHY} says that nothing is wrong, but you edited {self.workspace.experiment}:"
                    " comments and prints cost no points, but any other edit does."
                )
            return "the diagnosis says that nothing is wrong, and you have not edited the experiment."
        if places and place_named(entry.where, places) not in places:
            known = suggestion(entry.where, list(places))
            raise UserError(f"experiment.py has no function or class {printable(entry.where)}: {known}")
        self._fact("broken", sign)
        broken, fixed = self.logs["broken"], self.logs.get("fixed")
        # Compare with the fixed run, which is healthy if the fix is right.
        comparable = fixed is not None and not sign.check and broken.beside(sign.signal, sign.index, fixed) is not None
        if comparable and fixed and (problem := no_first_sign(sign.signal, sign.index, broken, fixed)):
            message = f"{sign} is {sign.value}, but {problem}".replace("a healthy run", "your fixed run")
            raise UserError(f"{message}: cite the first value that the fault changes.")
        return f"{sign} is {sign.value or sign.outcome} in the broken run."

    def _too_few_rivals(self) -> str:
        """Return a clause that says which causes are missing under `ruled_out`, or "" if there are enough."""
        others = [entry for entry in self.report.ruled_out if entry.cause not in self._named]
        if self._named != {HEALTHY}:
            return (
                ""
                if len({entry.cause for entry in others}) >= RIVALS
                else "must rule out two causes that are not your diagnosis"
            )
        known = load_causes()
        areas = {known[entry.cause].area for entry in others if entry.cause in known}
        if len(areas) < AREAS:
            return (
                f"must rule out causes from {AREAS} different areas, but names only {len(areas)}; harness causes"
                " prints the area of each cause"
            )
        checks = {known[entry.cause].area for entry in others if entry.check and entry.cause in known}
        return (
            "" if len(checks) >= BY_CHECKS else f"must rule out causes from {BY_CHECKS} areas by the outcome of a check"
        )

    def _places(self) -> Mapping[str, str]:
        try:
            return places_of(self.workspace.broken_source())
        except UserError:
            return {}

    def _judge_rival(self, entry: RuledOut) -> str:
        """Judge a ruled-out cause.

        It must be a known cause but not the diagnosis, and the cited fact must contradict it.
        """
        cause = entry.cause
        _require_cause(cause)
        if cause == HEALTHY:
            raise UserError(f"{cause} is not the name of a fault: rule out a cause that could have broken the run.")
        if cause in self._named:
            raise UserError(f"{cause} is also your diagnosis: rule out another cause.")
        self._fact("broken", entry)
        symptoms = load_causes()[cause].on(self.workspace.settings.dataset)
        if not entry.check:
            symptom = find_contradicted(entry, symptoms, self.records["broken"], self.logs["broken"])
            if symptom is not None:
                return f"{entry} is {entry.value}, but in a run with the cause {cause}, {symptom.says}."
        check = entry.check or check_of_value(entry.signal, entry.step)
        if check and self._hides_outcomes:
            raise _Open("your course does not show the outcomes of checks, so only the grader judges this.")
        if check and self.outcomes is not None:
            try:
                theirs = rival_outcome(cause, check, self._outcomes[check])
                recorded = outcomes_of(self.workspace.exercise)
            except UserError:  # a student's kit does not contain the outcomes that checks have for other causes
                raise _Open("this fact is true. The grader judges whether it contradicts the cause.") from None
            if theirs and check not in recorded:
                raise _Open(f"the outcome of {check} for this experiment depends on the seed: cite another check.")
            if theirs:
                return (
                    f"the check {check} finds {self._outcomes[check]}, but in a run with the cause {cause} it"
                    f" finds {theirs}."
                )
        fact = f"the {entry} finds {entry.outcome}" if entry.check else f"{entry} is {entry.value}"
        judged = [judge_symptom(self.records["broken"], one) for one in symptoms]
        lacking = [one.symptom.signal for one in judged if one.value is not None and not one.present]
        about = f"a value of {' or '.join(dict.fromkeys(lacking))}, or " if lacking else ""
        remedy = (
            f"cite {about}a check that would find something else if {cause} were the cause, or rule out another cause."
        )
        raise UserError(f"{fact}, which does not rule out {cause}: {remedy}")

    def _fact(self, run: Run, sign: Sign) -> str:
        """Compare a cited fact with the run. Return a sentence if the fact is true, else raise `UserError`."""
        if sign.check:
            return self._outcome(sign)
        log = self.logs.get(run)
        if log is None:
            raise _Open(f"the log of the {run} run cannot be read.")
        if log.find(sign) is not None:
            return f"{sign} is {sign.value}."
        message = f"{self.workspace.report} cites {sign} of the {run} run, but {log.untrue(sign)}"
        if log.find(sign, within=OFF_BY) is not None:
            message += " The step or epoch just before or after has your value: count steps and epochs from 0."
        raise UserError(message)

    def _outcome(self, sign: Sign) -> str:
        if self._hides_outcomes:
            raise _Open("your course does not show the outcomes of checks, so only the grader judges this.")
        if self.outcomes is None:
            raise _Open(f"this command does not run the cited checks: {self.workspace.command('check')} does.")
        if sign.check not in self._checks:
            known = suggestion(sign.check, self._checks)
            raise UserError(f"there is no check {printable(sign.check)!r}: {known}")
        try:
            found = self._outcomes[sign.check]
        except UserError as error:
            raise _Open(f"the checks that you cite cannot run: {error}") from None
        if found == sign.outcome:
            return f"the {sign} finds {found}."
        said = f"{self.workspace.report} says that the {sign} finds {printable(sign.outcome)}"
        raise UserError(f"{said}, but it finds {found}: write the outcome that the check prints.")

    @cached_property
    def _checks(self) -> tuple[str, ...]:
        """The names of the checks that can measure this experiment."""
        return checks_for(self.workspace.broken_source())

    @cached_property
    def _hides_outcomes(self) -> bool:
        """Whether the course hides the outcomes of checks.

        If it does, the judgement of a cited outcome would reveal the outcome.
        """
        return self.workspace.exercise.triage != "outcomes"

    @cached_property
    def _outcomes(self) -> Mapping[str, str]:
        """The outcomes of all checks that the report cites. One process runs all of these checks."""
        assert self.outcomes is not None
        signs = [entry.first_wrong for entry in self.report.diagnosis]
        cited = {sign.check or check_of_value(sign.signal, sign.step) for sign in (*signs, *self.report.ruled_out)}
        return self.outcomes([name for name in self._checks if name in cited])

    def _length(self) -> str:
        words = self.report.body.words
        if self.report.body.cut:
            raise UserError(f"{self.workspace.report} is too long: {TOO_LONG}")
        if words > WORD_LIMIT:
            excess = f"{words} words, but {WORD_LIMIT} are allowed: remove {words - WORD_LIMIT}"
            counted = "words in the front matter, in code blocks and in tables do not count"
            raise UserError(f"{self.workspace.report} has {excess} ({counted}).")
        if not self.report.body.prose_words:
            raise UserError(f"{self.workspace.report} has no text yet: write your findings under its headings.")
        return f"{words} words of {WORD_LIMIT}."

    def _parts(self) -> str:
        filled = self.report.body.filled_sections
        sections = f"number of headings with text under them in {self.workspace.report}: {filled}"
        if filled < len(PARTS):
            raise UserError(f"{sections}; write {', '.join(PARTS)}, each under a heading.")
        return f"{sections}."

    def _snippet(self) -> str:
        body, report = self.report.body, self.workspace.report
        lost = [address for address in body.pictures if not EMBEDDED.fullmatch(address)]
        if lost:
            raise UserError(
                f"{report} has the picture {printable(lost[0])}, but your instructor will not see it: embed a PNG,"
                " JPEG, GIF or WebP in the text as a data: address, or paste lines of the log into a code block."
            )
        if not body.shows_picture and not body.value_lines:
            message = (
                f"{report} has no plot and no line of a log: paste lines that show the symptom, with their values,"
            )
            raise UserError(f"{message} into a code block (```).")
        return "the text shows a picture, or lines of a log."


def _require_cause(name: str) -> None:
    known = load_causes()
    if name not in known:
        listed = suggestion(name, list(known), "`harness causes` lists them.")
        raise UserError(f"there is no cause {printable(name)!r}: {listed}")
