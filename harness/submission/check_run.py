"""Judge both runs for `make check`: whether their files are complete, fit together, and can be made again."""

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from harness.errors import UserError
from harness.files import sha256_line
from harness.run.files import CHECKPOINT, CHECKSUM, EXPERIMENT, META, METRICS_LOG, source_hash
from harness.run.metrics_log import Record, batch_records, epoch_records, log_difference, read_metrics_log, read_object
from harness.submission.commands import commands_text, read_commands
from harness.submission.limits import Excess, line_excess, size_excess, total_excess
from harness.submission.program import Unparsable, parse_experiment
from harness.workspace.workspace import RUN_FILES, RUNS, Run, Workspace, read_source

# A function that makes the named run of the workspace again and returns the folder of the new run.
Rerun = Callable[[Run], Path]
ItemOutcome = Literal["passed", "failed", "could not judge"]


@dataclass(frozen=True)
class CheckItem:
    """One judged item: its id, its outcome, and a sentence that says what is wrong, where, and what to do.

    If `blocks` is true, `make submit` refuses to pack, because the tarball would be broken or contradict itself. For
    other failures `make submit` only warns.
    """

    id: str
    outcome: ItemOutcome
    message: str
    blocks: bool = False


def passed_item(item: str, message: str) -> CheckItem:
    """Return an item that passed."""
    return CheckItem(item, "passed", message)


def failed_item(item: str, message: str, *, blocks: bool = False) -> CheckItem:
    """Return an item that failed, so that the student has to fix something."""
    return CheckItem(item, "failed", message, blocks)


def could_not_judge(item: str, message: str) -> CheckItem:
    """Return an item that could not be judged, for a reason that is not the student's mistake."""
    return CheckItem(item, "could not judge", message)


# If one of these facts about two runs differs, it explains why their bytes differ: the student need not have edited a
# file.
_ENVIRONMENT = ("platform_class", "versions", "harness_sha256", "dataset_digest")


def remedy(workspace: Workspace, run: str) -> str:
    """Return a clause that says how to make the run `broken` or `fixed` again."""
    if run == "fixed":
        return f"{workspace.command('verify')} makes the run again"
    folder = workspace.run_folder(run)
    return f"delete {folder}, then {workspace.command('exercise')} makes the run again"


def check_run(workspace: Workspace, run: str) -> list[CheckItem]:
    """Check the files of one run, without making the run again."""
    folder, again = workspace.run_folder(run), remedy(workspace, run)

    def item(name: str, find: Callable[[], str], good: str, cure: str = again, *, blocks: bool = True) -> CheckItem:
        """Return a failed item if `find` returns a problem or raises `UserError`, else a passed item."""
        try:
            fault = find()
        except UserError as error:
            fault = str(error).rstrip(".")
        if not fault:
            return passed_item(f"{run}: {name}", good)
        return failed_item(f"{run}: {name}", f"{fault}: {cure}.", blocks=blocks)

    if not workspace.has_run(run):
        try:
            workspace.require_run(run)
        except UserError as error:
            return [failed_item(f"{run}: files", str(error), blocks=True)]
    missing = [name for name in RUN_FILES if not (folder / name).is_file()]
    if missing:
        return [failed_item(f"{run}: files", f"{folder} has no {', '.join(missing)}: {again}.", blocks=True)]
    log = folder / METRICS_LOG
    items = [passed_item(f"{run}: files", f"all {len(RUN_FILES)} files are there.")]
    if excess := _run_excess(folder, run):
        path, limit = excess
        return [*items, failed_item(f"{run}: size", f"{path} {limit.says}: {limit.cure}.", blocks=True)]
    items += [
        passed_item(f"{run}: size", "no file is too large to be read."),
        item("checksum", lambda: _checksum_fault(folder), "checkpoint.pt has the recorded SHA-256."),
        item("provenance", lambda: _provenance_fault(workspace, run), "the files come from a run of this exercise."),
        item("log", lambda: shape_fault(log, read_metrics_log(log)), "metrics.log contains only complete epochs."),
    ]
    if items[-1].outcome == "passed":
        good = "metrics.log contains loss, gradients and activations of every batch."
        cure = "do not replace layers or parameters of the model during training, so that the harness can measure them"
        find = partial(diagnostic_fault, log, read_metrics_log(log))
        items.append(item("diagnostics", find, good, cure, blocks=False))
    return items


def _run_excess(folder: Path, run: str) -> tuple[Path, Excess] | None:
    """Return the first file of a run that exceeds a limit, and that limit, or None."""
    for name in RUN_FILES:
        path = folder / name
        excess = size_excess(f"runs/{run}/{name}", path.stat().st_size)
        if excess is None and name == METRICS_LOG:
            excess = line_excess(path.read_bytes())
        if excess is not None:
            return path, excess
    return None


def _checksum_fault(folder: Path) -> str:
    if (folder / CHECKSUM).read_bytes() == sha256_line((folder / CHECKPOINT).read_bytes(), CHECKPOINT).encode():
        return ""
    return (
        f"{folder / CHECKSUM} does not contain the SHA-256 of {CHECKPOINT}, so one of the two files was changed"
        " after the run"
    )


def _provenance_fault(workspace: Workspace, run: str) -> str:
    folder, settings = workspace.run_folder(run), workspace.settings
    meta = read_object(folder / META)
    expected = {
        "recipe": workspace.recipe,
        "run": run,
        "seed": settings.seed,
        "dataset": settings.dataset,
        "source_sha256": source_hash(read_source(folder / EXPERIMENT)),
    }
    for key, value in expected.items():
        if meta.get(key) != value:
            return f"in {folder / META}, {key} is {meta.get(key)!r}, but for this exercise it must be {value!r}"
    if not isinstance(meta.get("command"), str):
        return f"{folder / META} has no key command"
    if not re.fullmatch("[0-9a-f]{64}", str(meta.get("dataset_digest"))):
        return f"{folder / META} has no valid key dataset_digest"
    return ""


def check_archive(workspace: Workspace) -> list[CheckItem]:
    """Check the total size of all files, and the commands with which the grader makes the runs again.

    Return an empty list if a run is missing, because `check_run` reports that.
    """
    folders = {run: workspace.run_folder(run) for run in RUNS}
    files = [folder / name for folder in folders.values() for name in RUN_FILES]
    if not all(path.is_file() for path in files):
        return []
    files += [path for path in (workspace.experiment, workspace.report) if path.is_file()]
    if excess := total_excess(path.stat().st_size for path in files):
        items = [
            failed_item("archive: size", f"The files of {workspace.folder} {excess.says}: {excess.cure}.", blocks=True)
        ]
    else:
        items = [passed_item("archive: size", "all files together are small enough.")]
    try:
        text = commands_text({run: read_object(folder / META).get("command") for run, folder in folders.items()})
    except UserError:
        return items  # another item reports the missing command
    settings = workspace.settings
    _, problem = read_commands(text, workspace.recipe, settings.seed, settings.dataset)
    if problem:
        again = f"start over with {workspace.command('clean-work')}, then {workspace.command('exercise')}"
        return [*items, failed_item("archive: commands", f"{problem.rstrip('.')}: {again}.")]
    return [*items, passed_item("archive: commands", "the grader can make both runs again.")]


def shape_fault(log: Path | str, records: Sequence[Record]) -> str:
    """Return the first problem in a log, or "": a step or an epoch is out of order or incomplete, or has no loss."""
    step = epoch = batches = 0
    for number, record in enumerate(records, start=1):
        where, is_batch = f"{log}, line {number}", "step" in record
        if is_batch and record["step"] != step:
            return f"{where} has step {record['step']} instead of step {step}"
        if record.get("epoch") != epoch:
            return f"{where} has epoch {record.get('epoch')} instead of epoch {epoch}"
        if ("loss" if is_batch else "val_loss") not in record:
            return f"{where}: no loss"
        # A script may validate once more at its end, for example the network that it has kept as the best one.
        if not is_batch and not batches and not epoch:
            return f"{where}: epoch {epoch} has no batch"
        if is_batch:
            step, batches = step + 1, batches + 1
        else:
            epoch, batches = epoch + 1, 0
    return f"{log} ends in the middle of epoch {epoch}" if batches or not epoch else ""


def diagnostic_fault(log: Path | str, records: Sequence[Record]) -> str:
    """Return a clause about the first measurement that a batch or an epoch of a log lacks, or "".

    `log` is the file's name.
    """
    batches = batch_records(records)
    names = (batches[0].get("grad_mean") or {}).keys() if batches else ()
    for record in batches:
        where, means = f"{log}, step {record['step']}", record.get("grad_mean")
        if record.get("loss") is None:
            return f"{where}: no loss"
        if not means or means.keys() != names:
            return f"{where}: the gradient mean of a parameter is missing"
        for place in ("first", "last"):
            table = (record.get("activations") or {}).get(place)
            if not (isinstance(table, dict) and {type(table.get("mean")), type(table.get("var"))} <= {int, float}):
                return f"{where}: the mean and variance of the {place} layer's activations are missing"
    for record in epoch_records(records):
        if record.get("val_loss") is None or "val_accuracy" not in record:
            return f"{log}, epoch {record.get('epoch')}: validation loss or accuracy is missing"
    return ""


def check_experiment(workspace: Workspace, *, expects_edit: bool = True) -> list[CheckItem]:
    """Judge whether the fixed run used the current experiment, and whether the student has edited the experiment.

    expects_edit: False if the report says that nothing is wrong with the broken run.
    """
    path, verified, edited = workspace.experiment, "experiment: verified", "experiment: edited"
    ran, handed_out = (workspace.run_folder(run) / EXPERIMENT for run in ("fixed", "broken"))
    try:
        source = read_source(path)
    except UserError as error:
        return [failed_item(verified, str(error), blocks=True)]
    if excess := size_excess(EXPERIMENT, path.stat().st_size):
        return [failed_item("experiment: size", f"{path} {excess.says}: {excess.cure}.", blocks=True)]
    again, unchanged = (
        remedy(workspace, "fixed"),
        "fix the cause in this file, or name the cause healthy in the report.",
    )
    if not ran.is_file():
        items = [could_not_judge(verified, f"there is no fixed run yet: {again.removesuffix(' again')}.")]
    elif read_source(ran) != source:
        items = [failed_item(verified, f"{path} was edited after the fixed run: {again}.", blocks=True)]
    else:
        items = [passed_item(verified, "the fixed run used the current experiment.")]
    try:
        parse_experiment(source)
    except Unparsable as error:
        message = f"{path} cannot be compared with the broken experiment, because {error}: shorten or simplify it."
        items.append(failed_item("experiment: program", message))
    if line := _debugger_line(source):
        message = f"{path}, line {line} opens the debugger, but grading has no terminal: remove the call, then verify."
        items.append(failed_item("experiment: debugger", message))
    if not handed_out.is_file():
        return [*items, could_not_judge(edited, "there is no broken run for a comparison.")]
    before = read_source(handed_out)
    if not expects_edit:
        return items
    if source == before:
        return [*items, failed_item(edited, f"you have not changed {path}: {unchanged}")]
    if _tree(source) == _tree(before):
        return [*items, failed_item(edited, f"you have changed only comments and formatting in {path}: {unchanged}")]
    return [*items, passed_item(edited, "your experiment differs from the broken experiment.")]


def _debugger_line(source: str) -> int | None:
    """Return the number of the line that calls the debugger, or None. A source that is not Python gives None, too."""
    try:
        nodes = ast.walk(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    calls = (node for node in nodes if isinstance(node, ast.Call))
    return next((call.lineno for call in calls if ast.unparse(call.func) in ("breakpoint", "pdb.set_trace")), None)


def _tree(source: str) -> str:
    """Return the syntax tree of a source as text, or the source itself if it is not Python."""
    try:
        return ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source


def check_repeats(workspace: Workspace, run: Run, rerun: Rerun) -> CheckItem:
    """Make one run again and compare its log and checkpoint, byte by byte."""
    item = f"{run}: repeats"
    if not (workspace.has_run(run) and workspace.has_run("broken")):
        return could_not_judge(item, "there is no finished run to make again.")
    folder, cure = workspace.run_folder(run), remedy(workspace, run)
    log, checkpoint = folder / METRICS_LOG, folder / CHECKPOINT
    try:
        again = rerun(run)
        if (old := log.read_bytes()) != (new := (again / METRICS_LOG).read_bytes()):
            difference = f"{log}{log_difference(old, new)}"
        elif checkpoint.read_bytes() != (again / CHECKPOINT).read_bytes():
            difference = f"{checkpoint} differs when the run is made again, although the log is the same"
        else:
            return passed_item(item, f"when the run is made again, {METRICS_LOG} and {CHECKPOINT} have the same bytes.")
        was, now = read_object(folder / META), read_object(again / META)
    except UserError as error:
        return could_not_judge(item, f"the run could not be made again: {error}")
    changed = next((key for key in _ENVIRONMENT if was.get(key) != now.get(key)), None)
    if changed is not None:
        return could_not_judge(item, f"{difference}, but the first run was made with another {changed}: {cure}.")
    return failed_item(
        item,
        f"{difference}. If you edited {folder} after the run, {cure}. If not, the experiment depends on something"
        " besides the seed, such as the time or a random generator of its own.",
    )
