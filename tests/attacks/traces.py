"""What a class has left outside its reports: files, and shared memory."""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from attacks.attack import BREACHED
from harness.recipe import ROOT

# Others write there as well; an attack that gets there leaves a file with the mark in its name.
SHARED = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), ROOT)
_SEGMENTS = ("shm", "sem", "msg")

Trace = Mapping[str, object]


def traces(folders: Iterable[Path], *, apart_from: Iterable[Path] = ()) -> Trace:
    """Return what lies below the folders, each with its kind, size and time, and shared memory of the machine."""
    skipped = {str(path) for path in apart_from}
    found: dict[str, object] = {}
    for folder in folders:
        for place, names, files in os.walk(folder):
            names[:] = [name for name in names if str(Path(place, name)) not in skipped]
            for name in (*names, *files):
                path = Path(place, name)
                about = path.lstat()
                # A folder's time changes with every temporary file in it.
                times = () if stat.S_ISDIR(about.st_mode) else (about.st_size, about.st_mtime_ns)
                found[str(path)] = (stat.S_IFMT(about.st_mode), stat.S_IMODE(about.st_mode), *times)
    for shared in SHARED:
        found.update((str(path), "marked") for path in shared.glob(f"*{BREACHED}*"))
    return {**found, **_segments()}


def _segments() -> dict[str, object]:
    """Return the System V objects of this machine whose maker does not live any more, or is not told."""
    found: dict[str, object] = {}
    for kind in _SEGMENTS:
        try:
            heading, *lines = Path("/proc/sysvipc", kind).read_text().splitlines()
        except OSError:  # a kernel without them
            continue
        for line in lines:
            row = dict(zip(heading.split(), line.split(), strict=False))
            if "cpid" not in row or not Path("/proc", row["cpid"]).exists():
                found[f"System V {kind} {row.get(f'{kind}id')}"] = row.get("key")
    return found


def changes(before: Trace, after: Trace) -> list[str]:
    """Return what appeared, changed or went, each in a few words."""
    found = [f"created {path}" for path in after.keys() - before.keys()]
    found += [f"removed {path}" for path in before.keys() - after.keys()]
    found += [f"changed {path}" for path in before.keys() & after.keys() if before[path] != after[path]]
    return sorted(found)
