"""Find the experiment that a check command measures, and print the results as text or as JSON."""

import json
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from harness.checks import checks_for, load_check, run_checks
from harness.checks.core.finding import Finding, short
from harness.checks.core.library import load_check_for
from harness.checks.core.report import READ, CheckReport, Line, choice_lines, unsound, walk_lines, where_next
from harness.console.terminal import fold
from harness.errors import UserError
from harness.recipes.catalogue import is_case, load_recipe
from harness.recipes.mysteries import is_hidden
from harness.recipes.recipe import Triage, listed_ids
from harness.run.options import DEFAULT_SEED, RunOptions, check_dataset
from harness.run.settings import RunSettings
from harness.student.blind_spots import blind_spot_lines
from harness.workspace.progress import progress_of
from harness.workspace.workspace import SETTINGS, make_command, open_workspace, read_source

_BLIND_SPOTS = "A fault may remain in these areas, which no check judges completely:"
_READ_AGAIN = f"{READ}experiment.py again, these areas first. Does the code do anything that no check measures?"
_FIXED = "If you have fixed it: harness verify {name}"
_SAY_HEALTHY = "If you find nothing wrong, name the cause healthy in report.md, and do not edit the experiment."
_CLAIM_HEALTHY = "If you find nothing wrong, do not edit the experiment: harness verify {name} --healthy"
_UNDO_AND_SAY = "If nothing was wrong before your edit, undo your edit, and name the cause healthy in report.md."
_UNDO_AND_CLAIM = "If nothing was wrong before your edit, undo your edit: harness verify {name} --healthy"
# The same advice for the page of `harness serve`, which has a button for each.
_FIXED_ON_PAGE = "If you have fixed it, press Save and verify."
_CLAIM_ON_PAGE = "If you find nothing wrong, do not edit the experiment, and press Nothing is broken."
_UNDO_ON_PAGE = "If nothing was wrong before your edit, undo your edit, and press Nothing is broken."
_STYLES = {"plain": "", "heading": "bold", "good": "green", "bad": "bold red", "aside": "dim"}
DEFAULT_DATASET = "digits"
# The keys that a course may hide, because they reveal the outcome of a check.
_OF_OUTCOMES = ("outcome", "summary", "sound", "reading", "next")


@dataclass(frozen=True)
class Target:
    """The experiment that a check command measures, and the settings of its run.

    name: the name of the exercise or script in commands. path: the file that error messages name, or None for the
    unedited experiment. triage: whether the course shows the outcomes of checks, only measurements, or nothing ("off").
    modules: the folder with modules that a script may import. A file of a workspace has none: the grader gets one file.
    edited: whether the experiment of an exercise was edited.
    """

    name: str
    source: str
    settings: RunSettings
    path: Path | None
    triage: Triage = "outcomes"
    modules: Path | None = None
    edited: bool = False

    @property
    def words(self) -> str:
        """A line that says which experiment, seed and data set are measured."""
        which = f"{self.name}: {self.path or 'the original experiment'}"
        which = self.name if str(self.path) == self.name else which
        return f"{which}, seed {self.settings.seed}, data {self.settings.dataset}"


def print_json(target: Target, reports: Sequence[CheckReport]) -> None:
    """Print one object of strict JSON: the experiment, whether all checks passed, and the result of each check.

    If the course shows only measurements, the object does not say which checks passed.
    """
    whole = {
        "target": target.name,
        "file": None if target.path is None else str(target.path),
        "seed": target.settings.seed,
        "dataset": target.settings.dataset,
        "sound": all(one.outcome.sound for one in reports),
        "checks": [one.to_json() for one in reports],
    }
    if target.triage != "outcomes":
        del whole["sound"]
        whole["checks"] = [
            {name: value for name, value in one.to_json().items() if name not in _OF_OUTCOMES} for one in reports
        ]
    print(json.dumps(whole, allow_nan=False))


def show_heading(text: str) -> None:
    """Print which experiment is measured, before the checks run."""
    _print([Line(text, wraps=False, tone="heading")])


def show_early(report: CheckReport) -> None:
    """Print one line if a check found something wrong, while other checks still run."""
    if not report.outcome.sound:
        _print([Line(f"{report.title} finds {report.outcome.id}", 2, wraps=False)])


def show(
    reports: Sequence[CheckReport], triage: Triage = "outcomes", *, source: str = "", edited: bool = False
) -> None:
    """Print the whole result of one check, or a summary of several checks, and then the next steps.

    If the course shows only measurements, print only the measurements. source: the experiment; if no check finds
    anything wrong, it decides which areas are shown that no check judges completely. edited: as in `Target`.
    """
    _print(screen_lines(reports, triage, source, edited=edited))


def _print(lines: Iterable[Line]) -> None:
    """Print lines. At a terminal, sentences are wrapped, but lines with a path or a command can be copied."""
    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    width = console.width if console.is_terminal else None
    for line in lines:
        text = fold(line.text, width, indent=line.indent, hang=line.hang) if line.wraps else str(line)
        console.print(text, style=_STYLES[line.tone])


def measure(
    target: Target, names: Sequence[str] = (), *, options: tuple[str, ...] = (), early: bool = False
) -> list[CheckReport]:
    """Run the named checks, or by default all of triage, and return their reports.

    options: the options that suggested commands repeat. early: whether to print a line for each finding of several
    checks at once, unless the course shows only measurements. Raises as `run_checks` does.
    """

    def report(name: str, finding: Finding) -> CheckReport:
        return CheckReport(load_check_for(name, target.source), target.name, finding, options)

    names = names or [name for name in checks_for(target.source) if load_check(name).in_triage]
    several = len(names) > 1
    tells = early and several and target.triage == "outcomes"
    # Many checks call `train_step`, so its prints would bury the findings. A single check shows them.
    findings = run_checks(
        target.source, target.settings, names, source_path=target.path, modules=target.modules, bar=True,
        quiet=several, say=(lambda name, finding: show_early(report(name, finding))) if tells else None,
    )  # fmt: skip
    return [report(name, finding) for name, finding in findings.items()]


def screen_lines(
    reports: Sequence[CheckReport], triage: Triage, source: str = "", *, edited: bool = False, in_shell: bool = True
) -> Iterator[Line]:
    """Yield the lines about the result of one check or of several checks.

    source, edited: see `show`. in_shell: False for the page of `harness serve`, which has buttons in place of some
    commands.
    """
    if triage != "outcomes":
        yield from _measurements(reports)
        return
    if len(reports) == 1:
        [report] = reports
        yield Line(report.check.question, wraps=False)
        yield Line(report.check.summary, 2)
        yield Line("")
        yield from report.lines()
    else:
        yield from walk_lines(reports)
    following = where_next(reports)
    # If no check finds a fault in an exercise, the fault may be in something that no check measures.
    if len(reports) > 1 and not unsound(reports):
        yield Line(_BLIND_SPOTS, tone="heading")
        yield from (Line(line, 2, 2) for line in blind_spot_lines(source))
        if not reports[0].target.endswith(".py"):
            name = reports[0].target
            following = [_READ_AGAIN, *_verify_lines(name, edited=edited, in_shell=in_shell)]
    if following:
        yield Line("Next:", tone="heading")
    for line in following:
        yield Line(line, 2, len(READ), wraps=line.startswith(READ))
    if following and in_shell and (activate := _activate()):
        yield Line(f"To make this shell find the command harness: source {activate}", wraps=False, tone="aside")


def _verify_lines(name: str, *, edited: bool, in_shell: bool) -> Iterator[str]:
    """Yield how to get a verdict on an exercise in which no check finds a fault."""
    fixed = (_FIXED if in_shell else _FIXED_ON_PAGE).format(name=shlex.quote(name))
    if not is_case(name):
        yield fixed
        return
    if edited:
        yield fixed
    if not is_hidden(name):
        yield _UNDO_AND_SAY if edited else _SAY_HEALTHY
        return
    on_page = _UNDO_ON_PAGE if edited else _CLAIM_ON_PAGE
    claim = _UNDO_AND_CLAIM if edited else _CLAIM_HEALTHY
    yield claim.format(name=shlex.quote(name)) if in_shell else on_page


def _measurements(reports: Sequence[CheckReport]) -> Iterator[Line]:
    """Yield measurements without their meaning.

    For a single check, also yield its possible outcomes, so that a student can choose one.
    """
    yield Line(
        "Your course shows the measurements of the checks, but not what they mean: decide for yourself whether"
        " they show a fault."
    )
    for one in reports:
        words = [f"{name}: {short(value)}" for name, value in one.finding.figures.items()]
        yield Line(one.title if len(reports) > 1 else one.check.question, wraps=False, tone="heading")
        yield Line("; ".join(words) or "nothing measured", 2, 2)
    if len(reports) > 1:
        yield Line("Next:", tone="heading")
        yield Line(
            f"{reports[0].command} (or another check) shows the tables and the possible outcomes of the check",
            2,
            wraps=False,
        )
        return
    for table in reports[0].finding.tables:
        yield from (Line(line, wraps=False) for line in table.lines())
    yield from choice_lines(reports[0].check)


def _activate() -> str | None:
    """Return the path of the `activate` script, or None if it is not needed or does not exist.

    The shell does not need the script if it already finds this `harness`. The path is relative if the script is below
    the current folder.
    """
    here = Path(sys.prefix) / "bin"
    found = shutil.which("harness")
    script = here / "activate"
    if (found and Path(found).resolve() == (here / "harness").resolve()) or not script.is_file():
        return None
    inside = script.is_relative_to(Path.cwd())
    return shlex.quote(str(script.relative_to(Path.cwd()) if inside else script))


def find_target(name: str, work: Path, options: RunOptions) -> Target:
    """Return the script or exercise with this name. An exercise is read from its workspace if there is one.

    Raises `UserError` for an unknown exercise, for a course without checks, for an unreadable file or workspace, and
    for a data set that does not fit.
    """
    if name.endswith(".py"):
        return _script(Path(name), options)
    recipe = load_recipe(name)
    _require_checks(name, recipe.triage)
    if recipe.predict and progress_of(work / name).prediction is None:
        raise UserError(f"First predict what the run of {name} will do: {make_command('predict', work / name)}")
    if not (work / name / SETTINGS).is_file():
        return Target(name, recipe.broken_source(), options.settings(recipe), None, recipe.triage)
    workspace = open_workspace(work, name)
    settings = options.settings(recipe, workspace.settings)
    source = read_source(workspace.experiment)
    edited = workspace.has_run("broken") and workspace.is_edited()
    return Target(name, source, settings, workspace.experiment, recipe.triage, edited=edited)


def _require_checks(case: str, triage: Triage) -> None:
    if triage == "off":
        raise UserError(f"Your course has switched off the checks for {case}: read the experiment and its log instead.")


def _script(path: Path, options: RunOptions) -> Target:
    if not path.is_file():
        raise UserError(f"There is no file {path}: give the path of a training script, or the name of an exercise.")
    # If the script is a file of a workspace, do not show more than the checks of its exercise may show.
    case = path.absolute().parent.name
    in_workspace = (path.parent / SETTINGS).is_file()
    triage = load_recipe(case).triage if case in listed_ids() and in_workspace else "outcomes"
    _require_checks(case, triage)
    dataset = options.dataset or DEFAULT_DATASET
    check_dataset(dataset, dataset)
    seed = DEFAULT_SEED if options.seed is None else options.seed
    settings = RunSettings(seed=seed, dataset=dataset, epochs=options.epochs, batch_size=options.batch_size)
    return Target(str(path), read_source(path), settings, path, triage, None if in_workspace else path.parent)
