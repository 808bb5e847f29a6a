"""What the commands print: what happened, the figures, and the next step."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from harness.check import CheckItem, render_checks
from harness.exercise import read_result
from harness.metrics_log import batch_records, epoch_records, read_metrics_log
from harness.recipe import load_recipe, recipe_ids
from harness.submission import Submission
from harness.workspace import SETTINGS, Workspace, open_workspace

Figures = dict[str, str]


def number(value: float | None) -> str:
    """Return a figure in four digits, or a dash where there is none."""
    return "-" if value is None else f"{value:.4g}"


def percent(value: float | None) -> str:
    """Return a fraction in per cent."""
    return "-" if value is None else f"{100 * value:.1f} %"


def run_figures(folder: Path) -> Figures:
    """Return the figures of a finished run by which people compare runs."""
    result = read_result(folder)
    records = read_metrics_log(folder / "metrics.log")
    batches, epochs = batch_records(records), epoch_records(records)
    norms = [r["grad_norm"] for r in batches if r["grad_norm"] is not None]
    worst = max(norms, key=lambda norm: math.inf if math.isnan(norm) else norm, default=None)
    return {
        "first loss": number(batches[0]["loss"]),
        "last loss": number(batches[-1]["loss"]),
        "largest gradient norm": number(worst),
        "first non-finite loss": "none"
        if result["first_non_finite_step"] is None
        else f"step {result['first_non_finite_step']}",
        "validation loss": number(epochs[-1]["val_loss"]),
        "validation accuracy": percent(epochs[-1]["val_accuracy"]),
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


def _command(verb: str, workspace: Workspace, more: str = "") -> str:
    work = workspace.folder.parent
    place = "" if work == Path("work") else f" WORK={work}"
    return f"make {verb} BREAK={workspace.recipe}{more}{place}"


def _show_findings(console: Console, folder: Path) -> None:
    for finding in read_result(folder)["guardrails"]:
        console.print(f"  step {finding['step']}: {finding['message']}", markup=False)


def _show_next(console: Console, *lines: str) -> None:
    console.print("Next:", style="bold")
    for line in lines:
        console.print(f"  {line}", markup=False, soft_wrap=True)


def show_broken_run(workspace: Workspace, *, made: bool) -> None:
    """Print what the broken run did and how to go on."""
    console = Console()
    folder = workspace.run_folder("broken")
    if not made:
        console.print(f"{workspace.folder} is there already; nothing in it was changed.", markup=False)
    recipe = load_recipe(workspace.recipe)
    console.print(f"{recipe.id}: {recipe.title}", markup=False, style="bold")
    console.print(_table({"broken": run_figures(folder)}))
    _show_findings(console, folder)
    _show_next(
        console,
        f"1. look at {folder / 'run.html'} in a browser, and read {workspace.folder / 'PROMPT.md'}",
        f"2. find the cause and mend it in {workspace.experiment}",
        f"3. {_command('verify', workspace)}",
    )


def show_comparison(workspace: Workspace) -> None:
    """Print the broken and the fixed run side by side."""
    console = Console()
    fixed = workspace.run_folder("fixed")
    columns = {name: run_figures(workspace.run_folder(name)) for name in ("broken", "fixed")}
    console.print(f"{workspace.recipe}: broken against fixed", markup=False, style="bold")
    console.print(_table(columns))
    _show_findings(console, fixed)
    if not workspace.edited():
        console.print(
            f"{workspace.experiment} is still as it was handed out: both runs are the same.", markup=False
        )
        _show_next(console, f"mend {workspace.experiment}", _command("verify", workspace))
        return
    _show_next(
        console,
        f"1. look at both runs in {fixed / 'run.html'}; not convinced? edit and verify again",
        f"2. write what you found into {workspace.report}",
        f"3. {_command('check', workspace)}",
    )


def show_exercises(work: Path) -> None:
    """Print the list of exercises with what this student has done."""
    console = Console()
    rows = [("exercise", "layer", "experiment", "data", "state")]
    titles = [""]
    for recipe in map(load_recipe, recipe_ids()):
        started = (work / recipe.id / SETTINGS).is_file()
        state = open_workspace(work, recipe.id).state() if started else "not started"
        rows.append((recipe.id, recipe.layer, recipe.experiment, recipe.dataset, state))
        titles.append(recipe.title)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, title in zip(rows, titles, strict=True):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        console.print(line.rstrip(), markup=False, highlight=False, soft_wrap=True, style="bold")
        if title:
            console.print(f"    {title}", markup=False, highlight=False, soft_wrap=True)
    _show_next(console, "make exercise BREAK=<exercise>")


def show_checks(items: Sequence[CheckItem], workspace: Workspace) -> bool:
    """Print the checks; return whether none failed and all could be judged."""
    console = Console()
    console.print(render_checks(items))
    good = all(item.outcome == "passed" for item in items)
    if good:
        _show_next(console, _command("submit", workspace, " STUDENT=<your name>"))
    else:
        _show_next(console, "mend what failed", _command("check", workspace))
    return good


def show_submission(submission: Submission) -> None:
    """Print where the tarball is, and what may cost points."""
    console = Console()
    size = submission.path.stat().st_size / 1e6
    console.print(
        f"{submission.path} ({size:.1f} MB, SHA-256 {submission.sha256[:16]}) and its .sha256 "
        + ("were there already, the same." if submission.unchanged else "are written."),
        markup=False,
        soft_wrap=True,
    )
    if submission.kept is not None:
        console.print(f"What lay there before is kept as {submission.kept}.", markup=False, soft_wrap=True)
    for item in submission.warnings:
        console.print(f"Warning, {item.id}: {item.message}", markup=False, soft_wrap=True, style="yellow")
    _show_next(console, "hand both files in")


def show_single_run(result: dict[str, Any], folder: Path, *, as_json: bool) -> None:
    """Print the result of one run outside any workspace."""
    if as_json:
        print(
            json.dumps(
                {**result, "checkpoint_path": str(folder / result["checkpoint_path"])}, allow_nan=False
            )
        )
        return
    console = Console()
    console.print(_table({str(result["run"]): run_figures(folder)}))
    _show_findings(console, folder)
    _show_next(console, f"look at {folder / 'run.html'} in a browser")
