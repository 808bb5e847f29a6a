"""What a check command measures, and its findings: on a terminal, and as JSON."""

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.checks import Check, Finding, Outcome, load_check
from harness.checks.core.finding import short
from harness.errors import UserError
from harness.exercise import DEFAULT_SEED, RunOptions, check_dataset
from harness.recipe import load_recipe
from harness.run.settings import RunSettings
from harness.workspace import SETTINGS, open_workspace, read_source

_READ = "read: "
_MOST_NEXT = 3
DEFAULT_DATASET = "digits"


@dataclass(frozen=True)
class Target:
    """An experiment and the settings of its run.

    `name` is what commands call it, `path` the file that errors name, None for an experiment as it was handed out.
    """

    name: str
    source: str
    settings: RunSettings
    path: Path | None

    @property
    def words(self) -> str:
        """What is measured, in one line."""
        which = f"{self.name}: {self.path or 'the experiment as it was handed out'}"
        which = self.name if str(self.path) == self.name else which
        return f"{which}, seed {self.settings.seed}, data {self.settings.dataset}"


@dataclass(frozen=True)
class CheckReport:
    """What a check found of a target (an exercise, a script or runs, as commands name them) under some options."""

    check: Check
    target: str
    finding: Finding
    options: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """The outcome, with the sentence that says what it means."""
        return self.check.outcome(self.finding.outcome)

    @property
    def command(self) -> str:
        """The command that makes this check."""
        return self._command(self.check)

    @property
    def next_lines(self) -> list[str]:
        """A place to read, then commands."""
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


def where_next(reports: Sequence[CheckReport]) -> list[str]:
    """Return where to go on: what unsound outcomes say, less the checks just made.

    Places to read come first, and first of all those of outcomes that show the fault itself. If one check was made and
    is sound, return what it says; if several were made and all are sound, nothing.
    """
    told = [one for one in reports if not one.outcome.sound or len(reports) == 1]
    told.sort(key=lambda one: not one.outcome.mechanism)
    made = {one.command for one in reports}
    lines = dict.fromkeys(line for one in told for line in one.next_lines if line not in made)
    return sorted(lines, key=lambda line: not line.startswith(_READ))[:_MOST_NEXT]


def verdict(reports: Sequence[CheckReport]) -> str:
    """Return in words whether everything is sound."""
    unsound = [one.check.name.replace("_", "-") for one in reports if not one.outcome.sound]
    if not unsound:
        return f"Everything is sound: {len(reports)} checks found nothing wrong."
    return f"{len(unsound)} of {len(reports)} checks found something wrong: {', '.join(unsound)}."


def print_json(target: Target, reports: Sequence[CheckReport]) -> None:
    """Print one object of strict JSON: what was measured, whether all is sound, and each check."""
    whole = {
        "target": target.name,
        "file": None if target.path is None else str(target.path),
        "seed": target.settings.seed,
        "dataset": target.settings.dataset,
        "sound": all(one.outcome.sound for one in reports),
        "checks": [one.to_json() for one in reports],
    }
    print(json.dumps(whole, allow_nan=False))


def show(reports: Sequence[CheckReport], heading: str) -> None:
    """Print one finding in full, or several on one screen, and where to go on."""
    # Lines are neither wrapped nor styled: a path or command in them must survive being copied.
    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    console.print(heading, style="bold")
    if len(reports) == 1:
        _show_whole(console, reports[0])
    else:
        _show_walk(console, reports)
    if lines := where_next(reports):
        console.print("Next:", style="bold")
        console.print("\n".join(f"  {line}" for line in lines))


def _style(sound: bool) -> str:
    return "green" if sound else "bold red"


def _show_whole(console: Console, report: CheckReport) -> None:
    finding = report.finding
    console.print(f"{report.check.question}\n  {report.check.summary}\n")
    console.print(Text.assemble((finding.outcome, _style(report.outcome.sound)), f": {finding.summary}"))
    lines = [f"  {name}: {short(value)}" for name, value in finding.figures.items()]
    for table in finding.tables:
        lines += table.lines()
    console.print("\n".join([*lines, "", report.outcome.reading]))


def _show_walk(console: Console, reports: Sequence[CheckReport]) -> None:
    width = max(len(report.command) for report in reports)
    for number, report in enumerate(reports, 1):
        outcome = (f"{report.outcome.id:<14} ", _style(report.outcome.sound))
        command = f"{report.command:<{width}}  {report.check.minutes:g} min"
        console.print(Text.assemble(f"{number:2} ", outcome, command))
        if not report.outcome.sound:  # twenty sound checks must not hide the one that is not
            console.print(_indented(console, report.finding.summary))
            console.print(_indented(console, report.outcome.reading), style="dim")
    console.print(verdict(reports), style=_style(all(report.outcome.sound for report in reports)))


def _indented(console: Console, text: str) -> str:
    """Return a sentence below a line of the walk, in lines that fit a terminal."""
    if not console.is_terminal:
        return f"     {text}"
    return textwrap.fill(text, console.width, initial_indent="     ", subsequent_indent="     ")


def find_target(name: str, work: Path, options: RunOptions) -> Target:
    """Return the script of this name, or the experiment of an exercise: the workspace's, else as handed out.

    Raises `UserError` for an unknown exercise, a file or workspace that cannot be read, and data that do not fit.
    """
    if name.endswith(".py"):
        return _script(Path(name), options)
    recipe = load_recipe(name)
    if not (work / name / SETTINGS).is_file():
        return Target(name, recipe.broken_source(), options.settings(recipe), None)
    workspace = open_workspace(work, name)
    settings = options.settings(recipe, workspace.settings)
    return Target(name, read_source(workspace.experiment), settings, workspace.experiment)


def _script(path: Path, options: RunOptions) -> Target:
    if not path.is_file():
        raise UserError(f"There is no file {path}: name a training script, or an exercise.")
    dataset = options.dataset or DEFAULT_DATASET
    check_dataset(dataset, dataset)
    seed = DEFAULT_SEED if options.seed is None else options.seed
    settings = RunSettings(seed=seed, dataset=dataset, epochs=options.epochs, batch_size=options.batch_size)
    return Target(str(path), read_source(path), settings, path)
