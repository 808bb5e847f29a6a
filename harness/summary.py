"""The output of the commands: what happened, the figures, and the next step."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from harness.exercise import read_result
from harness.recipe import load_recipe, load_recipes
from harness.run.metrics_log import batch_records, epoch_records, read_metrics_log
from harness.terminal import folded
from harness.workspace import METRICS_LOG, PROMPT, RUN_PAGE, SETTINGS, Workspace, open_workspace
from harness.written.exercise import file_exercise_ids, find_file_exercise
from harness.written.workspace import FileWorkspace

if TYPE_CHECKING:  # reading reports takes libraries that no run needs
    from harness.submission.archive import Submission
    from harness.submission.check_run import CheckItem

Figures = dict[str, str]


def run_figures(folder: Path) -> Figures:
    """Return the figures that people compare runs by; a dash stands for a figure that was not recorded."""

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.4g}"

    result = read_result(folder)
    records = read_metrics_log(folder / METRICS_LOG)
    batches, epochs = batch_records(records), epoch_records(records)
    step, accuracy = result["first_non_finite_step"], epochs[-1]["val_accuracy"]
    norms = [r["grad_norm"] for r in batches if r["grad_norm"] is not None]
    worst = max(norms, key=lambda norm: math.inf if math.isnan(norm) else norm, default=None)
    return {
        "first loss": number(batches[0]["loss"]),
        "last loss": number(batches[-1]["loss"]),
        "largest gradient norm": number(worst),
        "first non-finite loss": "none" if step is None else f"step {step}",
        "validation loss": number(epochs[-1]["val_loss"]),
        "validation accuracy": "-" if accuracy is None else f"{100 * accuracy:.1f} %",
        "steps": str(result["steps"]),
        "checkpoint SHA-256": result["checkpoint_sha256"][:16],
    }


def _table(columns: dict[str, Figures]) -> Table:
    table = Table()
    table.add_column("")
    for name in columns:
        table.add_column(name, justify="right")
    for row in next(iter(columns.values())):
        table.add_row(row, *(figures[row] for figures in columns.values()))
    return table


def _show_line(console: Console, line: str, style: str = "") -> None:
    """Print a line as it is: a path in it must survive being copied."""
    console.print(line, markup=False, highlight=False, soft_wrap=True, style=style)


def _show_folded(console: Console, line: str, *, indent: int = 0, hang: int = 0, style: str = "") -> None:
    """Print a sentence, wrapped at a terminal."""
    _show_line(console, folded(line, _width(console), indent=indent, hang=hang), style)


def _width(console: Console) -> int | None:
    return console.width if console.is_terminal else None


def _show_findings(console: Console, folder: Path) -> None:
    for finding in read_result(folder)["guardrails"]:
        _show_folded(console, f"step {finding['step']}: {finding['message']}", indent=2, hang=2)


def _show_next(console: Console, *lines: str) -> None:
    console.print("Next:", style="bold")
    for line in lines:
        _show_folded(console, line, indent=2, hang=3)


def _what_was_there(folder: Path, restored: Sequence[str]) -> str:
    if not restored:
        return f"{folder} exists already; nothing in it was changed."
    return f"{folder} exists already. Missing, and written again: {', '.join(restored)}."


def show_broken_run(workspace: Workspace, *, made: bool, restored: Sequence[str] = ()) -> None:
    """Print the figures of the broken run and the next step.

    made: whether it was made just now. restored: files that were missing in it, and are written again.
    """
    console = Console()
    folder = workspace.run_folder("broken")
    if not made:
        _show_line(console, _what_was_there(workspace.folder, restored))
    recipe = load_recipe(workspace.recipe)
    console.print(f"{recipe.id}: {recipe.title}", markup=False, style="bold")
    console.print(_table({"broken": run_figures(folder)}))
    _show_findings(console, folder)
    _show_next(
        console,
        f"1. look at {folder / RUN_PAGE} in a browser, and read {workspace.folder / PROMPT}",
        f"2. find the cause and fix it in {workspace.experiment}",
        f"3. {workspace.command('verify')}",
    )


def show_comparison(workspace: Workspace) -> None:
    """Print the broken and the fixed run side by side."""
    console = Console()
    fixed = workspace.run_folder("fixed")
    columns = {name: run_figures(workspace.run_folder(name)) for name in ("broken", "fixed")}
    console.print(f"{workspace.recipe}: broken and fixed", markup=False, style="bold")
    console.print(_table(columns))
    _show_findings(console, fixed)
    if not workspace.edited():
        _show_line(console, f"{workspace.experiment} has no edit yet: both runs are the same.")
        _show_next(console, f"fix {workspace.experiment}", workspace.command("verify"))
        return
    _show_next(
        console,
        f"1. look at both runs in {fixed / RUN_PAGE}; if you are not convinced, edit and verify again",
        f"2. write what you found into {workspace.report}",
        f"3. {workspace.command('check')}",
    )


def show_file_workspace(workspace: FileWorkspace, *, made: bool, restored: Sequence[str] = ()) -> None:
    """Print which file to write, and the next step; see `show_broken_run`."""
    console = Console()
    if not made:
        _show_line(console, _what_was_there(workspace.folder, restored))
    exercise = workspace.exercise
    console.print(f"{exercise.id}: {exercise.title}", markup=False, style="bold")
    _show_next(
        console,
        f"1. read {workspace.folder / PROMPT}",
        f"2. write your answer into {workspace.answer}",
        f"3. {workspace.command('check')}",
    )


def show_exercises(work: Path) -> None:
    """Print the list of exercises, and how far the student is with each."""
    console = Console()
    recipes, problems = load_recipes()
    rows: list[tuple[str, ...]] = []
    for recipe in recipes:
        started = (work / recipe.id / SETTINGS).is_file()
        state = open_workspace(work, recipe.id).state() if started else "not started"
        rows.append((recipe.title, recipe.id, recipe.experiment, recipe.dataset, state))
    _show_list(console, ("exercise", "experiment", "data", "state"), rows)
    rows = []
    for exercise in filter(None, map(find_file_exercise, file_exercise_ids())):
        workspace = FileWorkspace(work / exercise.id, exercise)
        rows.append((exercise.title, exercise.id, exercise.kind, exercise.file, workspace.state()))
    if rows:
        _show_list(console, ("exercise", "kind", "file", "state"), rows)
    for problem in problems.values():
        _show_line(console, f"Left out: {problem}", style="bold red")
    _show_next(console, "make exercise BREAK=<exercise>")


def _show_list(console: Console, heading: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    """Print the cells of each row in columns, and below them its title, which comes first."""
    cells = [heading, *(row[1:] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for title, line in zip(("", *(row[0] for row in rows)), cells, strict=True):
        shown = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        _show_line(console, shown.rstrip(), style="bold")
        if title:
            _show_line(console, f"    {title}")


def show_checks(items: "Sequence[CheckItem]", workspace: Workspace | FileWorkspace) -> bool:
    """Print the checks; return whether all passed."""
    from harness.submission.check import render_checks

    console = Console()
    console.print(render_checks(items, _width(console)), soft_wrap=True)
    outcomes = {item.outcome for item in items}
    submit = workspace.command("submit", " STUDENT=<your login>")
    if outcomes == {"passed"}:
        _show_next(console, submit)
    elif "failed" in outcomes:
        _show_next(console, "fix what failed", workspace.command("check"))
    else:
        done = f"or hand it in as it is: {submit}"
        _show_next(console, "do what the open lines say, and check again", done)
    return outcomes == {"passed"}


def show_submission(submission: "Submission") -> None:
    """Print the path of the tarball, and what may cost points."""
    console = Console()
    size = submission.path.stat().st_size / 1000
    shown = f"{size:.1f} kB" if size < 100 else f"{size / 1000:.1f} MB"
    about = f"({shown}, SHA-256 {submission.sha256[:16]})"
    _show_line(console, f"{submission.path} {about} and its .sha256 are written.")
    for item in submission.warnings:
        _show_folded(console, f"Warning, {item.id}: {item.message}", hang=2, style="yellow")
    _show_next(console, "hand both files in")


def show_single_run(result: dict[str, Any], folder: Path, *, as_json: bool) -> None:
    """Print the result of one run outside any workspace."""
    if as_json:
        path = str(folder / result["checkpoint_path"])
        print(json.dumps({**result, "checkpoint_path": path}, allow_nan=False))
        return
    console = Console()
    console.print(_table({str(result["run"]): run_figures(folder)}))
    _show_findings(console, folder)
    _show_next(console, f"look at {folder / RUN_PAGE} in a browser")
