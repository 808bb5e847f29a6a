"""`grader doctor`: check whether this machine can grade, and list the protections of the sandbox."""

import ctypes
import platform
import re
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from grader.sandbox import sandbox_problem
from grader.sandbox.bubblewrap import DISABLES_USER_NAMESPACES, bwrap_version
from grader.sandbox.engine import nested_problem
from grader.sandbox.result import COUNTS_PROCESSES, kernel_release
from grader.sandbox.seccomp import rules
from harness.canonical_setup import usable_cores
from harness.console.terminal import fold
from harness.data.loading import default_cache, load_dataset
from harness.doctor.report import examine_machine
from harness.errors import UserError


def run_doctor() -> int:
    """Print the findings. Return 0 if this machine can grade, else 1."""
    console = Console()
    good = True
    for what, problem in (("sandbox", sandbox_problem()), ("numerics", _numerics_problem())):
        good = good and problem is None
        _line(console, what, problem or "works", "green" if problem is None else "bold red")
        if what == "sandbox" and problem is None:
            for name, here, lost in list_defences():
                _line(console, "", f"{name:<23} {here}" + (f", so {lost}" if lost else ""), "")
    for name in ("mnist", "cifar10"):
        _line(console, name, _data_problem(name) or "available", "")
    _line(console, "cores", str(usable_cores()), "")
    console.print("Next:", style="bold")
    console.print("  grader score submissions/" if good else "  fix the problems above, then run grader doctor again")
    return 0 if good else 1


def list_defences() -> Iterator[tuple[str, str, str]]:
    """Yield each feature of this machine that the sandbox uses: its name, its state, and what is lost without it.

    The third text is "" if the feature is available.
    """
    lost = "" if kernel_release() >= COUNTS_PROCESSES else "the processes of a run are counted only at intervals"
    yield "kernel", f"Linux {platform.release()}", lost
    version = bwrap_version() or (0,)
    lost = "" if version >= DISABLES_USER_NAMESPACES else "only the seccomp filter forbids new namespaces"
    yield "bubblewrap", ".".join(map(str, version)), lost
    yield "seccomp filter", f"allows {len(rules(platform.machine()))} system calls", ""
    problem = nested_problem()
    lost = "each run imports torch again, which takes seconds" if problem else ""
    yield "nested user namespaces", f"none ({problem})" if problem else "allowed", lost
    landlock = ctypes.CDLL(None).syscall(444, None, 0, 1)  # landlock_create_ruleset returns the version
    lost = "" if landlock > 0 else "only read-only mounts prevent writing"
    yield "Landlock", f"version {landlock}" if landlock > 0 else "none", lost
    limit = _cgroup_limit()
    lost = "" if limit else "each run may use 0.3 GB of kernel memory that no limit counts"
    yield "cgroup memory limit", f"{limit / 1e9:.1f} GB" if limit else "none", lost


def _cgroup_limit() -> int | None:
    """Return the lowest memory limit of all control groups (version 2) of this process, in bytes, or None."""
    found = re.search(r"^0::/(.*)$", Path("/proc/self/cgroup").read_text(encoding="utf-8"), re.MULTILINE)
    limits = []
    for group in (Path(found[1]), *Path(found[1]).parents) if found else ():
        path = Path("/sys/fs/cgroup", group, "memory.max")
        text = path.read_text(encoding="ascii").strip() if path.exists() else "max"
        limits += [int(text)] if text.isdecimal() else []
    return min(limits, default=None)


def _line(console: Console, what: str, text: str, style: str) -> None:
    start, width = f"{what:>9}{':' if what else ' '} ", console.width if console.is_terminal else None
    line = fold(start + text, width, hang=len(start) + 2)
    console.print(line, markup=False, highlight=False, soft_wrap=True, style=style)


def _numerics_problem() -> str | None:
    found = examine_machine()
    if found["portable"]:
        return None
    wrong = [name for name, verdict in found["operations"].items() if verdict == "wrong"]
    detail = found["problem"] or f"{len(wrong)} operations round differently here: {', '.join(wrong[:5])}."
    return f"{detail} So a replay here cannot have the hashes of a student's run, and the grader compares values."


def _data_problem(name: str) -> str | None:
    try:
        load_dataset(name, cache=default_cache())
    except UserError:
        return f"not available; for submissions that use it, run make data DATASET={name}"
    return None
