"""Find the target of a check command, and show the findings at a terminal or as JSON."""

import json
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.checks import Check, Finding, Outcome, load_check
from harness.checks.core.finding import short
from harness.console.terminal import fold
from harness.errors import UserError
from harness.recipes.catalogue import is_case, load_recipe
from harness.recipes.recipe import Triage, listed_ids
from harness.run.options import DEFAULT_SEED, RunOptions, check_dataset
from harness.run.settings import RunSettings
from harness.workspace.progress import progress_of
from harness.workspace.workspace import SETTINGS, make_command, open_workspace, read_source

_READ = "read: "
_MOST_NEXT = 3
_ALL_SOUND = (
    f"{_READ}experiment.py again. Does it do anything that no check measures?",
    "If you find nothing wrong, name the cause healthy in report.md, and do not edit the experiment.",
)
DEFAULT_DATASET = "digits"
# The JSON keys that reveal the outcome of a check.
_OF_OUTCOMES = ("outcome", "summary", "sound", "reading", "next")


@dataclass(frozen=True)
class Target:
    """An experiment and the settings of its run.

    name: its name in commands. path: the file that errors name, or None for the experiment as it was handed out.
    triage: how much of the checks the course shows.
    """

    name: str
    source: str
    settings: RunSettings
    path: Path | None
    triage: Triage = "outcomes"

    @property
    def words(self) -> str:
        """A line that says which experiment, seed and data set are measured."""
        which = f"{self.name}: {self.path or 'the experiment as it was handed out'}"
        which = self.name if str(self.path) == self.name else which
        return f"{which}, seed {self.settings.seed}, data {self.settings.dataset}"


@dataclass(frozen=True)
class CheckReport:
    """The finding of a check on a target (an exercise, a script or runs, as commands name it) with some options."""

    check: Check
    target: str
    finding: Finding
    options: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name of the check as in its command."""
        return self.check.name.replace("_", "-")

    @property
    def outcome(self) -> Outcome:
        """The outcome, with the sentence that explains it."""
        return self.check.outcome(self.finding.outcome)

    @property
    def command(self) -> str:
        """The command that makes this check."""
        return self._command(self.check)

    @property
    def next_lines(self) -> list[str]:
        """The next steps: a place to read, then commands."""
        place = [f"{_READ}{self.outcome.look}"] if self.outcome.look else []
        return [*place, *(self._command(load_check(name)) for name in self.outcome.next)]

    def _command(self, check: Check) -> str:
        return " ".join([check.command(self.target), *self.options])

    def to_json(self) -> dict[str, Any]:
        """Return plain data for strict JSON."""
        check, outcome = self.check, self.outcome
        return {
            "check": check.name,
            "question": check.question,
            "command": self.command,
            "minutes": check.minutes,
            **self.finding.to_json(),
            "sound": outcome.sound,
            "reading": outcome.reading,
            "next": self.next_lines,
        }


def unsound(reports: Sequence[CheckReport]) -> list[CheckReport]:
    """Return the unsound reports. Outcomes that show the fault itself come before its possible consequences."""
    return sorted((one for one in reports if not one.outcome.sound), key=lambda one: not one.outcome.mechanism)


def where_next(reports: Sequence[CheckReport]) -> list[str]:
    """Return the next steps that unsound outcomes suggest, without the checks just made.

    Places to read come first, beginning with the outcomes that show the fault itself. A single report gives its next
    steps even if it is sound. If several checks of an exercise are all sound, the steps say what else to look at.
    """
    told = list(reports) if len(reports) == 1 else unsound(reports)
    if not told and reports and not reports[0].target.endswith(".py"):
        return [*_ALL_SOUND[: 1 + is_case(reports[0].target)]]
    made = {one.command for one in reports}
    lines = dict.fromkeys(line for one in told for line in one.next_lines if line not in made)
    return sorted(lines, key=lambda line: not line.startswith(_READ))[:_MOST_NEXT]


def verdict(reports: Sequence[CheckReport]) -> str:
    """Return a sentence that says whether everything is sound, or which checks are not."""
    wrong = [one.title for one in unsound(reports)]
    if not wrong:
        judged = sum(one.outcome.judged for one in reports)
        return f"Everything is sound: {judged} checks found nothing wrong."
    return f"{len(wrong)} of {len(reports)} checks found something wrong: {', '.join(wrong)}."


def print_json(target: Target, reports: Sequence[CheckReport]) -> None:
    """Print one object of strict JSON: the target, whether all checks are sound, and each check.

    If the course shows only measurements, the object does not say what is sound.
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


def show(reports: Sequence[CheckReport], heading: str, triage: Triage = "outcomes") -> None:
    """Print one finding in full, or several on one screen, and the next steps.

    If the course shows only measurements, print only those. Sentences are wrapped at a terminal. Lines with a path or
    a command are not, so that they can be copied.
    """
    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    console.print(heading, style="bold")
    if triage != "outcomes":
        _show_figures(console, reports)
        return
    if len(reports) == 1:
        _show_whole(console, reports[0])
    else:
        _show_walk(console, reports)
    following = where_next(reports)
    if following:
        console.print("Next:", style="bold")
    for line in following:
        if line.startswith(_READ):
            _print(console, line, indent=2, hang=len(_READ))
        else:
            console.print(f"  {line}")
    if following and (activate := _activate()):
        console.print(f"To make this shell find the command harness: source {activate}", style="dim")


def _style(sound: bool) -> str:
    return "green" if sound else "bold red"


def _show_whole(console: Console, report: CheckReport) -> None:
    finding, outcome = report.finding, report.outcome
    console.print(report.check.question)
    _print(console, report.check.summary, indent=2)
    console.print()
    _print(console, f"{finding.outcome}: {finding.summary}", hang=2, style=_style(outcome.sound))
    for name, value in finding.figures.items():
        _print(console, f"{name}: {short(value)}", indent=2, hang=2)
    for table in finding.tables:
        console.print("\n".join(table.lines()))
    console.print()
    _print(console, outcome.reading)


def _show_figures(console: Console, reports: Sequence[CheckReport]) -> None:
    """Print measurements without their meaning and, for a single check, the outcomes to choose from."""
    _print(console, "Your course shows the measurements of the checks, but not their meaning: you decide that.")
    for one in reports:
        words = [f"{name}: {short(value)}" for name, value in one.finding.figures.items()]
        console.print(one.title if len(reports) > 1 else one.check.question, style="bold")
        _print(console, "; ".join(words) or "nothing measured", indent=2, hang=2)
    if len(reports) > 1:
        console.print("Next:", style="bold")
        console.print(f"  {reports[0].command} (or another check) shows its tables and possible outcomes")
        return
    for table in reports[0].finding.tables:
        console.print("\n".join(table.lines()))
    console.print("Its possible outcomes: which one do the measurements show?", style="bold")
    for outcome in reports[0].check.outcomes:
        _print(console, f"{outcome.id}: {outcome.reading}", indent=2, hang=2)


def _show_walk(console: Console, reports: Sequence[CheckReport]) -> None:
    wrong = unsound(reports)
    _print(console, verdict(reports), hang=2, style=_style(not wrong))
    faults = sum(one.outcome.mechanism for one in wrong)
    shown = "Likely causes, perhaps one fault that several checks see:" if faults > 1 else "Likely cause:"
    others = "Perhaps consequences:" if faults else "No check shows the cause yet. Perhaps consequences of it:"
    for title, is_fault in ((shown, True), (others, False)):
        found = [one for one in wrong if one.outcome.mechanism == is_fault]
        if found:
            console.print(title, style="bold")
        for one in found:
            console.print(Text.assemble("  ", (f"{one.outcome.id:<14} ", _style(False)), one.command))
            _print(console, one.finding.summary, indent=4)
            _print(console, one.outcome.reading, indent=4, style="dim")
    sound = [one for one in reports if one.outcome.sound]
    for title, judged in (("Sound", True), ("Nothing to judge", False)):
        words = [f"{one.title} ({one.outcome.id})" for one in sound if one.outcome.judged == judged]
        if words:
            _print(console, f"{title}: {', '.join(words)}.", hang=2)


def _print(console: Console, text: str, *, indent: int = 0, hang: int = 0, style: str = "") -> None:
    """Print a sentence. At a terminal it is wrapped, and its later lines are indented by `hang` more."""
    width = console.width if console.is_terminal else None
    console.print(fold(text, width, indent=indent, hang=hang), style=style)


def _activate() -> str | None:
    """Return the `activate` script to source, or None if the shell already finds this `harness` or there is no script.

    The path is relative if the file is below the current folder.
    """
    here = Path(sys.prefix) / "bin"
    found = shutil.which("harness")
    script = here / "activate"
    if (found and Path(found).resolve() == (here / "harness").resolve()) or not script.is_file():
        return None
    inside = script.is_relative_to(Path.cwd())
    return shlex.quote(str(script.relative_to(Path.cwd()) if inside else script))


def find_target(name: str, work: Path, options: RunOptions) -> Target:
    """Return the script of this name, or the experiment of an exercise, from its workspace if there is one.

    Raises `UserError` for an unknown exercise, a course without checks, an unreadable file or workspace, and data that
    do not fit.
    """
    if name.endswith(".py"):
        return _script(Path(name), options)
    recipe = load_recipe(name)
    _require_checks(name, recipe.triage)
    if recipe.predict and progress_of(work / name).prediction is None:
        raise UserError(f"First predict the run of {name}: {make_command('predict', work / name)}")
    if not (work / name / SETTINGS).is_file():
        return Target(name, recipe.broken_source(), options.settings(recipe), None, recipe.triage)
    workspace = open_workspace(work, name)
    settings = options.settings(recipe, workspace.settings)
    return Target(name, read_source(workspace.experiment), settings, workspace.experiment, recipe.triage)


def _require_checks(case: str, triage: Triage) -> None:
    if triage == "off":
        raise UserError(f"Your course has switched the checks off for {case}: read its experiment and its log.")


def _script(path: Path, options: RunOptions) -> Target:
    if not path.is_file():
        raise UserError(f"There is no file {path}: name a training script, or an exercise.")
    # A file of a workspace, given as a script, must not show more than its exercise does.
    case = path.absolute().parent.name
    triage = load_recipe(case).triage if case in listed_ids() and (path.parent / SETTINGS).is_file() else "outcomes"
    _require_checks(case, triage)
    dataset = options.dataset or DEFAULT_DATASET
    check_dataset(dataset, dataset)
    seed = DEFAULT_SEED if options.seed is None else options.seed
    settings = RunSettings(seed=seed, dataset=dataset, epochs=options.epochs, batch_size=options.batch_size)
    return Target(str(path), read_source(path), settings, path, triage)
