"""Whether a run that is made again has the same bytes and, where not, the first place where it differs."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from harness.errors import UserError
from harness.plain_yaml import shown
from harness.run.metrics_log import log_lines, parse_record
from harness.submission.archive import CHECKPOINT, META, METRICS_LOG
from harness.submission.check_item import CheckItem, could_not_judge, failed, passed
from harness.submission.check_run import read_object, remedy, same
from harness.workspace import Workspace

# Makes the named run of the workspace again, from its own source, and returns the folder of the new run.
Replay = Callable[[Literal["broken", "fixed"]], Path]

# Where one of these differs, other bytes say nothing about the student's files.
_SURROUNDINGS = ("platform_class", "versions", "harness_sha256", "dataset_digest")


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
        return could_not_judge(
            item, f"{difference}; but its {changed} is another one than here: {remedy(workspace, run)}."
        )
    return failed(
        item,
        f"{difference}; if {folder} was edited after the run, {remedy(workspace, run)}; if not, the"
        " experiment draws on something that the seed does not decide (the clock, a generator of its own).",
    )


def first_difference(recorded: Path, again: Path) -> str | None:
    """Return where two folders of a run first differ in their log or else in their checkpoint, or None."""
    log, new_log = (folder / METRICS_LOG for folder in (recorded, again))
    old, new = log.read_bytes(), new_log.read_bytes()
    if old != new:
        return f"{log}{log_difference(old, new)}"
    if (recorded / CHECKPOINT).read_bytes() != (again / CHECKPOINT).read_bytes():
        return f"{recorded / CHECKPOINT} has other bytes when the run is made again, though the log has not"
    return None


def log_difference(old: bytes, new: bytes) -> str:
    """Return where two logs that differ first do, as the end of a sentence that began with the file's name."""
    lines, new_lines = (log_lines(data.decode("utf-8", "backslashreplace")) for data in (old, new))
    for number, (line, new_line) in enumerate(zip(lines, new_lines, strict=False), start=1):
        if line != new_line:
            return f", line {number}{_record_difference(line, new_line)}"
    if len(lines) != len(new_lines):
        return f" has {len(lines)} lines, and {len(new_lines)} when the run is made again"
    return " ends in another way when the run is made again"


def _record_difference(line: str, new_line: str) -> str:
    try:
        record, new_record = parse_record(line), parse_record(new_line)
    except ValueError:
        return " is not the record that the run writes when it is made again"
    kind = "step" if "step" in new_record else "epoch"
    for path, old, new in _differences(record, new_record, ""):
        return f" ({kind} {new_record.get(kind)}): {shown(path)} is {shown(old)}, and {shown(new)} made again"
    return f" ({kind} {new_record.get(kind)}) is written in another way"


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
