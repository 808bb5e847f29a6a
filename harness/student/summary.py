"""Print the results of the commands, and the next steps."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.console.output import console_width, show_diff, show_folded, show_line, show_next
from harness.recipes.mysteries import is_hidden, is_mystery, level_of_hidden
from harness.recipes.recipe import HEALTHY, NO_HINTS, load_recipes
from harness.run.files import METRICS_LOG, RESULT, RUN_PAGE
from harness.run.metrics_log import batch_records, epoch_records, read_metrics_log, read_object
from harness.student.goal import UNLIKE_HEALTHY, describe_goal
from harness.workspace.progress import begun_exercises, noted_student, progress_of
from harness.workspace.workspace import HISTORY_PAGE, PROMPT, Workspace, make_command, queue_command
from harness.written.workspace import FileWorkspace

if TYPE_CHECKING:  # their imports load libraries that a run does not need
    from harness.page.history_page import AttemptView
    from harness.student.attempts import Attempt
    from harness.student.goal import GoalItem
    from harness.student.hand_in import Tarball
    from harness.student.verdict_children import VerdictChildren
    from harness.submission.check_run import CheckItem

RunFigures = dict[str, str]
CHECKPOINT_ROW = "checkpoint SHA-256"
_NAME_HEALTHY = f"or, if you find nothing wrong, name the cause {HEALTHY} in {{report}}"
HIDDEN_GOAL = (
    "It counts as solved if your run matches a healthy one. If nothing is broken, leave the file alone and say so."
)
# Further evaluations of the last weights: how each is made, and the suffix of its names in the log.
_OTHERWISE = {"second evaluation": "repeated", "in eval mode": "eval_mode", "of the service": "served"}


ATTEMPT_COLUMNS = ("attempt", "result", "edit", "last loss", "validation")


def run_figures(folder: Path) -> RunFigures:
    """Return the metrics of a run as text, for a table that compares runs.

    A dash means that the log lacks the metric.
    """

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.4g}"

    def share(value: float | None) -> str:
        return "-" if value is None else f"{100 * value:.1f} %"

    result = read_object(folder / RESULT)
    records = read_metrics_log(folder / METRICS_LOG)
    batches, epochs = batch_records(records), epoch_records(records)
    step = result["first_non_finite_step"]
    last = epochs[-1]
    norms = [r["grad_norm"] for r in batches if r["grad_norm"] is not None]
    worst = max(norms, key=lambda norm: math.inf if math.isnan(norm) else norm, default=None)
    return {
        "first loss": number(batches[0]["loss"]),
        "last loss": number(batches[-1]["loss"]),
        "largest gradient norm": number(worst),
        "first non-finite loss": "none" if step is None else f"step {step}",
        "validation loss": number(last["val_loss"]),
        **{f"validation loss, {how}": number(last.get(f"val_loss_{end}")) for how, end in _OTHERWISE.items()},
        "validation accuracy": share(last["val_accuracy"]),
        **{f"validation accuracy, {how}": share(last.get(f"val_accuracy_{end}")) for how, end in _OTHERWISE.items()},
        "steps": str(result["steps"]),
        CHECKPOINT_ROW: result["checkpoint_sha256"][:16],
    }


def _table(columns: dict[str, RunFigures]) -> Table:
    """Return a table with a column for each run."""
    table = Table()
    table.add_column("")
    for name in columns:
        table.add_column(name, justify="right")
    for row in metric_rows([*columns.values()]):
        table.add_row(*row)
    return table


def metric_rows(runs: Sequence[RunFigures]) -> list[tuple[str, ...]]:
    """Return the rows of a table that compares runs: the name of a metric, and its value in each run.

    A further evaluation of the last weights gets a row only if its value differs.
    """
    rows: list[tuple[str, ...]] = []
    first: list[str] = []
    for name in runs[0]:
        if name == CHECKPOINT_ROW and len(runs) > 1:
            continue  # it also differs if only the recorded metrics differ, and the weights are equal
        values = [figures[name] for figures in runs]
        if not name.endswith(tuple(f", {how}" for how in _OTHERWISE)):
            first = values
        elif all(value in ("-", own) for value, own in zip(values, first, strict=True)):
            continue
        rows.append((name, *values))
    return rows


def _show_findings(console: Console, folder: Path) -> None:
    for finding in read_object(folder / RESULT)["guardrails"]:
        show_folded(console, f"step {finding['step']}: {finding['message']}", indent=2, hang=2)


def _what_was_there(folder: Path, restored: Sequence[str]) -> str:
    if not restored:
        return f"{folder} exists already, so nothing in it was changed."
    return f"{folder} exists already. Restored missing files: {', '.join(restored)}."


def show_broken_run(workspace: Workspace, *, made: bool, restored: Sequence[str] = ()) -> None:
    """Print the metrics of the broken run and the next steps.

    made: True if this command made the run. restored: missing files of the workspace that were written again.
    """
    console = Console()
    folder = workspace.run_folder("broken")
    if not made:
        show_line(console, _what_was_there(workspace.folder, restored))
    recipe = workspace.exercise
    console.print(f"{recipe.id}: {recipe.title}", markup=False, style="bold")
    if is_mystery(recipe.id):
        seed = workspace.settings.seed
        chosen = f"LEVEL and SEED selected this hidden exercise. The seed of its run is another number: {seed}."
        show_folded(console, chosen, style="dim")
    console.print(_table({"broken": run_figures(folder)}))
    _show_findings(console, folder)
    if progress_of(workspace.folder).prediction is not None:
        from harness.student.prediction import show_prediction

        show_prediction(workspace)
    if recipe.is_case:
        show_folded(console, HIDDEN_GOAL, style="bold")
    else:
        console.print("The experiment counts as fixed if", style="bold")
        for line in describe_goal(recipe, workspace.settings.dataset):
            show_folded(console, line, indent=2, hang=2)
    hint = "" if recipe.hints == NO_HINTS else f" (or get a hint: {workspace.command('hint', ' LEVEL=1')})"
    checks = f"run nearly all checks: {workspace.command('triage')}"
    if recipe.triage == "off":
        checks = f"print values from the log of the run: harness show {recipe.id} --step 0"
    show_next(
        console,
        f"1. look at {folder / RUN_PAGE} in a browser, and read {workspace.folder / PROMPT}",
        f"2. {checks}{hint}",
        f"3. find the cause and fix it in {workspace.experiment}",
        f"4. {workspace.command('verify')}",
        *([_claim_line(workspace)] if recipe.is_case else []),
    )


def _claim_line(workspace: Workspace) -> str:
    """Return the line that says how to claim that nothing is broken. A course judges the claim in the report."""
    if is_hidden(workspace.recipe):
        return f"or, if you find nothing wrong: {workspace.command('verify', ' HEALTHY=1')}"
    return _NAME_HEALTHY.format(report=workspace.report)


def show_verdict_of(workspace: Workspace, children: "VerdictChildren", *, again: str = "") -> None:
    """Judge the fixed run, and print each result as soon as it is known: the table, the criteria, then the verdict.

    children: as in `verify_exercise`. again: words that say how to run the experiment again (default: use `verify`).
    Raises `UserError` if the checks cannot run on the experiment.
    """
    from harness.student.exercise import judge_attempt

    if workspace.is_edited():
        show_attempt_run(workspace)
    show_attempt(workspace, judge_attempt(workspace, show_criterion, children), again=again)


def show_attempt_run(workspace: Workspace) -> None:
    """Print the run of the edited experiment next to the broken run."""
    console = Console()
    broken, fixed = (workspace.run_folder(run) for run in ("broken", "fixed"))
    console.print(f"{workspace.recipe}: the broken run and yours", markup=False, style="bold")
    console.print(_table({"broken": run_figures(broken), "yours": run_figures(fixed)}))
    _show_findings(console, fixed)


def show_criterion(item: "GoalItem") -> None:
    """Print whether the attempt meets one criterion."""
    mark, style = ("✓", "green") if item.reached else ("✗", "bold red")
    show_folded(Console(), f"{mark} {item.says}: {item.found}", hang=2, style=style)


def show_attempt(workspace: Workspace, attempt: "Attempt | None", *, again: str = "") -> None:
    """Print the verdict on an attempt, whose criteria were printed before, and the next steps.

    attempt: None if the experiment was not edited. again: as in `show_verdict_of`.
    """
    console, recipe = Console(), workspace.exercise
    again = again or f"then {workspace.command('verify')}"
    broken, fixed = (workspace.run_folder(run) for run in ("broken", "fixed"))
    if attempt is None:
        console.print(f"{workspace.recipe}: the broken run, and the same run made again", markup=False, style="bold")
        console.print(_table({"broken": run_figures(broken), "again": run_figures(fixed)}))
        show_line(console, attempt_verdict(workspace, None))
        show_next(
            console, f"edit {workspace.experiment}, {again}", *([_claim_line(workspace)] if recipe.is_case else [])
        )
        return
    if attempt.fixed:
        _show_fixed(console, workspace, attempt)
    elif _is_judged(workspace, attempt):
        show_folded(console, attempt_verdict(workspace, attempt), style="bold")
        which = "" if not any(item.checks for item in attempt.criteria) else workspace.command("verify", " WHICH=1")
        show_next(
            console,
            f"edit {workspace.experiment}, {again}",
            *([f"to see which checks differ: {which} (your submission says that you asked)"] if which else []),
            f"your attempts so far: {workspace.command('history')}",
        )
    else:
        show_folded(console, attempt_verdict(workspace, attempt))
        _show_report_steps(console, workspace)


def _show_fixed(console: Console, workspace: Workspace, attempt: "Attempt") -> None:
    """Print that an attempt is fixed, what there is to learn from the exercise, and the next exercise."""
    from harness.student.debrief import has_debrief, show_explanation

    if workspace.exercise.is_healthy and is_hidden(workspace.recipe):
        show_folded(console, attempt_verdict(workspace, attempt), style="bold")
        show_next(console, f"undo your edit, then claim it: {workspace.command('verify', ' HEALTHY=1')}")
        return
    show_folded(console, attempt_verdict(workspace, attempt), style="bold green")
    if not has_debrief(workspace.exercise):
        show_folded(console, "A course kit contains no solution. Your report goes to your instructor with your runs.")
        _show_report_steps(console, workspace)
        return
    show_explanation(workspace.exercise, attempt)
    console.print()
    _show_level(console, workspace)
    following = _next_command(workspace)
    show_next(
        console,
        f"look at both runs in {workspace.run_folder('fixed') / RUN_PAGE}",
        *([f"the next exercise: {following}"] if following else []),
        f"to hand in for a grade: write {workspace.report}, then {workspace.command('check')}",
    )


def _show_level(console: Console, workspace: Workspace) -> None:
    """After a hidden exercise is solved, print how far its level is, and where the certificate is."""
    if is_hidden(workspace.recipe):
        from harness.student.overview import level_line
        from harness.student.queue import PracticeQueue

        work = workspace.folder.parent
        show_line(console, level_line(work, level_of_hidden(workspace.recipe), PracticeQueue(work)))


def claim_verdict(workspace: Workspace, *, right: bool) -> str:
    """Return sentences that say whether the claim is right that nothing is broken."""
    if not right:
        return f"Wrong: something is broken in {workspace.recipe}. Your claim counts as an attempt."
    _, _, why = workspace.exercise.cause.partition(". ")
    why = f"{why}." if why else "It is a healthy program without any change."
    return f"Right: nothing is broken in {workspace.recipe}. {why}"


def show_claim(workspace: Workspace, *, right: bool) -> None:
    """Print whether the claim is right that nothing is broken, and the next steps."""
    console = Console()
    show_folded(console, claim_verdict(workspace, right=right), style="bold green" if right else "bold")
    if right:
        from harness.student.debrief import describe_overfitting, first_records

        if said := describe_overfitting(first_records(workspace.folder)):
            show_folded(console, said)
        _show_level(console, workspace)
        show_next(console, f"the next exercise: {_next_command(workspace)}")
        return
    show_next(
        console,
        f"run nearly all checks: {workspace.command('triage')}",
        f"edit {workspace.experiment}, then {workspace.command('verify')}",
    )


def _show_report_steps(console: Console, workspace: Workspace) -> None:
    show_next(
        console,
        f"1. look at both runs in {workspace.run_folder('fixed') / RUN_PAGE}; if you are not sure that the fault is"
        " gone, edit and verify again",
        f"2. write your findings into {workspace.report}",
        f"3. {workspace.command('check')}",
    )


def _next_command(workspace: Workspace) -> str:
    """Return the command that starts the next exercise: one that was not begun, on the same level if there is one."""
    recipe, work = workspace.exercise, workspace.folder.parent
    begun = begun_exercises(work)
    level = recipe.goal.level if recipe.goal else 1
    if is_hidden(recipe.id):
        return queue_command("next", work)
    others = [one for one in load_recipes()[0] if one.id not in begun and one.goal and one.goal.level >= level]
    # Another area first: the same kind of fault again teaches less.
    nearest = min(others, key=lambda one: (one.goal.level if one.goal else 0, one.area == recipe.area), default=None)
    return "" if nearest is None else make_command("exercise", work / nearest.id)


def show_differing_checks(workspace: Workspace, names: Sequence[str]) -> None:
    """Print the commands of the checks that differ in the last attempt at a mystery."""
    from harness.checks import load_check

    console = Console()
    show_line(console, "These checks differ from a healthy run:", style="bold")
    for name in names:
        show_line(console, f"  {load_check(name).command(workspace.recipe)}  # {load_check(name).question}")
    show_folded(console, "Your submission says that you asked.")
    show_next(console, f"edit {workspace.experiment}, then {workspace.command('verify')}")


def attempt_verdict(workspace: Workspace, attempt: "Attempt | None", *, in_shell: bool = True) -> str:
    """Return a sentence that says whether an attempt is fixed. attempt: None if the experiment was not edited.

    in_shell: False for the page of `harness serve`, which has a button in place of a command.
    """
    if attempt is None:
        return f"You have not edited {workspace.experiment} yet: both runs are the same."
    if attempt.fixed and workspace.exercise.is_healthy:
        return "Your run is healthy, and so was the run before your edit. Your edit was not necessary."
    if attempt.fixed:
        return "Fixed, as far as your machine can tell. The grader also evaluates the weights on held-out data."
    if _is_judged(workspace, attempt):
        return _not_yet(attempt.criteria)
    logs = [workspace.run_folder(run) / METRICS_LOG for run in ("broken", "fixed")]
    same = all(log.is_file() for log in logs) and logs[0].read_bytes() == logs[1].read_bytes()
    said = "Your edit does not change the log. " if same else ""
    again = f", and run {workspace.command('triage')} again" if in_shell else ", and press Run checks again"
    again = "" if workspace.exercise.triage == "off" else again
    return f"{said}Decide for yourself whether the experiment is fixed: compare both runs{again}."


def _is_judged(workspace: Workspace, attempt: "Attempt") -> bool:
    """Return False if a verdict would reveal whether anything is broken: on a case, or on an edit without effect."""
    return bool(attempt.criteria) or not workspace.exercise.is_case


def _not_yet(criteria: "Sequence[GoalItem]") -> str:
    """Return a sentence that says why an attempt does not count as fixed. It never names the cause."""
    missed = [item for item in criteria if not item.reached]
    if not missed:
        return "Not judged: no criterion applies to a run with these settings. The checks may still show a difference."
    if missed[0].by_check and len(criteria) > len(missed):
        return "The curves look right, but a check still finds the fault."
    if missed[0].found == UNLIKE_HEALTHY:
        return (
            "The curves look right, but as far as your machine can tell, the fault is still there. If you can explain "
            "why your fix is right, hand it in: your instructor decides about fixes that this program does not"
            " recognize."
        )
    return "Not fixed yet."


def show_history(workspace: Workspace) -> None:
    """Print a table of the attempts, and write the page that draws the curves of all attempts in the same charts."""
    from harness.page.history_page import write_history_page

    console, views, claims = Console(), attempt_views(workspace), claim_rows(workspace)
    table = Table()
    for name in ATTEMPT_COLUMNS:
        table.add_column(name, justify="left" if name == "result" else "right")
    for cells in (*(view.cells for view in views), *claims):
        table.add_row(*map(Text, cells))
    if views or claims:
        console.print(table)
    if not views:
        show_line(console, f"No attempt yet: edit {workspace.experiment}, then {workspace.command('verify')}")
        return
    path = workspace.folder / HISTORY_PAGE
    title = f"{workspace.recipe}: {len(views)} {'attempt' if len(views) == 1 else 'attempts'}"
    write_history_page(path, title, workspace.run_folder("broken"), ATTEMPT_COLUMNS, views)
    show_next(
        console,
        f"look at {path} in a browser",
        f"to see the edit of an attempt: {workspace.command('history', f' DIFF={views[-1].number}')}",
    )


def attempt_views(workspace: Workspace) -> "list[AttemptView]":
    """Return the attempts, oldest first, each with the cells of `ATTEMPT_COLUMNS` and the lines of its diff."""
    from harness.page.history_page import AttemptView
    from harness.student.attempts import edit_of, list_attempts, size_of

    broken, views = workspace.broken_source(), []
    for attempt in list_attempts(workspace):
        figures, edit = run_figures(attempt.folder), edit_of(broken, attempt.source())
        accuracy = figures["validation accuracy"]
        validation = figures["validation loss"] if accuracy == "-" else accuracy
        missed = [item.short for item in attempt.criteria if not item.reached]
        fixed = "healthy before and after your edit" if workspace.exercise.is_healthy else "fixed"
        result = fixed if attempt.fixed else f"not yet: {missed[0]}" if missed else "not judged"
        cells = (str(attempt.number), result, size_of(edit), figures["last loss"], validation)
        views.append(AttemptView(attempt.number, attempt.folder, cells, edit))
    return views


def claim_rows(workspace: Workspace) -> list[tuple[str, ...]]:
    """Return the cells of `ATTEMPT_COLUMNS` for each claim that nothing is broken, the wrong claims first."""
    progress = progress_of(workspace.folder)
    wrong = [("claim", "wrong: something is broken", "", "", "")] * progress.wrong_claims
    is_right = progress.solved is not None and workspace.exercise.is_healthy
    return [*wrong, *([("claim", "right: nothing is broken", "", "", "")] if is_right else [])]


def show_edit(workspace: Workspace, number: int) -> None:
    """Print the diff between the broken experiment and an attempt. Raises `UserError` if no attempt has this number."""
    from harness.student.attempts import edit_of, find_attempt

    names = ("the broken experiment", f"attempt {number}")
    lines = edit_of(workspace.broken_source(), find_attempt(workspace, number).source(), names)
    show_diff(Console(), lines or ["This attempt has no edit: it is the broken experiment."])


def show_file_workspace(workspace: FileWorkspace, *, made: bool, restored: Sequence[str] = ()) -> None:
    """Print the next steps of a written exercise. `made` and `restored` mean the same as in `show_broken_run`."""
    console = Console()
    if not made:
        show_line(console, _what_was_there(workspace.folder, restored))
    exercise = workspace.exercise
    console.print(f"{exercise.id}: {exercise.title}", markup=False, style="bold")
    show_next(
        console,
        f"1. read {workspace.folder / PROMPT}",
        f"2. write your answer into {workspace.answer}",
        f"3. {workspace.command('check')}",
    )


def show_checks(items: "Sequence[CheckItem]", workspace: Workspace | FileWorkspace) -> bool:
    """Print the items that `make check` judged, and the next steps. Return whether all items passed."""
    from harness.submission.check import render_checks

    console = Console()
    console.print(render_checks(items, console_width(console)), soft_wrap=True)
    outcomes = {item.outcome for item in items}
    known = noted_student(workspace.folder.parent)
    submit = workspace.command("submit", "" if known else " STUDENT=<your login>")
    if outcomes == {"passed"}:
        show_next(console, submit)
    elif "failed" in outcomes:
        show_next(console, "fix the failed items", workspace.command("check"))
    else:
        done = f"or hand in your work as it is: {submit}"
        show_next(console, "follow the advice in the lines that begin with open, and check again", done)
    return outcomes == {"passed"}


def show_submission(submission: "Tarball") -> None:
    """Print the path of the tarball, and a warning about each problem that may cost points."""
    console = Console()
    size = submission.path.stat().st_size / 1000
    shown = f"{size:.1f} kB" if size < 100 else f"{size / 1000:.1f} MB"
    about = f"({shown}, SHA-256 {submission.sha256[:16]})"
    show_line(console, f"Written: {submission.path} {about} and its .sha256 file.")
    for item in submission.warnings:
        show_folded(console, f"Warning, {item.id}: {item.message}", hang=2, style="yellow")
    show_next(console, "hand in both files", "for the next exercise: make next")


def show_single_run(result: dict[str, Any], folder: Path, *, as_json: bool) -> None:
    """Print the result of a run that belongs to no workspace."""
    if as_json:
        path = str(folder / result["checkpoint_path"])
        print(json.dumps({**result, "checkpoint_path": path}, allow_nan=False))
        return
    console = Console()
    console.print(_table({str(result["run"]): run_figures(folder)}))
    _show_findings(console, folder)
    show_next(console, f"look at {folder / RUN_PAGE} in a browser")
