"""Run a student's experiment in the process of the command, so that a debugger of an editor or pdb stops in it.

Other runs are made in a child process, which a debugger does not follow. This run uses native numerics, because
portable numerics must be chosen before the process starts: its values may differ from the log in the last digits.
"""

import ast
import dataclasses
import os
import sys
import tempfile
from pathlib import Path

from harness.canonical_setup import COMMON_VARIABLES
from harness.errors import UserError
from harness.recipes.form import is_script
from harness.run.debugger import support_breakpoints
from harness.student.runs import workspace_job
from harness.workspace.workspace import Workspace, read_source

STEP = "train_step"


def run_for_debugger(workspace: Workspace, *, stop: bool = True) -> None:
    """Run the student's experiment in this process, and delete the files of the run.

    stop: whether each call of `train_step` begins with a call of `breakpoint()`, which starts the debugger of the
    editor or, in a terminal, pdb. Raises `UserError` for a script, which a debugger can run directly, if there is
    neither a debugger nor a terminal, and as `harness.student.run_process.make_run` does.
    """
    workspace.require_run("broken")
    path, source = workspace.experiment, read_source(workspace.experiment)
    if is_script(source):
        raise UserError(
            f"{path} is a script, which a debugger runs directly: cd {workspace.folder}, then python -m pdb {path.name}"
        )
    job = workspace_job(workspace, workspace.exercise, "fixed", stop_at_start(source) if stop else source)
    if sys.breakpointhook is sys.__breakpointhook__:  # else the debugger of an editor waits for breakpoint()
        if stop and not sys.stdin.isatty():
            raise UserError(
                "harness debug needs a terminal or the debugger of an editor: run it in a terminal, or start it with"
                " the debugger."
            )
        support_breakpoints((lambda: None) if sys.stdin.isatty() else None)
    os.environ.update(COMMON_VARIABLES)  # cuBLAS reads its variable later

    from harness.run.launch import Reporter
    from harness.student.run_process import make_run

    with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch:
        native = dataclasses.replace(job.settings, numerics="native")
        job = dataclasses.replace(job, settings=native, folder=str(Path(scratch, "run").resolve()))
        make_run(job, Reporter(os.open(os.devnull, os.O_WRONLY)))


def stop_at_start(source: str) -> str:
    """Return the source with a call of `breakpoint()` at the start of `train_step`. No line gets another number.

    Return the source unchanged if it is not valid Python, if it has no such function, or if the function starts with a
    statement such as `for`, before which a line has no room for a call.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source  # to run it says what is wrong
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name == STEP:
            first = function.body[0]
            if ast.get_docstring(function) is not None:
                return _insert(source, first.end_lineno, first.end_col_offset, "; breakpoint()")
            if not hasattr(first, "body"):
                return _insert(source, first.lineno, first.col_offset, "breakpoint(); ")
    return source


def _insert(source: str, line: int | None, column: int | None, text: str) -> str:
    """Insert a text at a place that `ast` gives: a line from 1, and a column in bytes."""
    assert line is not None and column is not None
    lines = source.split("\n")  # splitlines() also splits at a form feed, which ast does not count
    encoded = lines[line - 1].encode()
    lines[line - 1] = (encoded[:column] + text.encode() + encoded[column:]).decode()
    return "\n".join(lines)
