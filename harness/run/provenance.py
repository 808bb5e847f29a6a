"""Describe the origin of a run: commit and hash of the harness, versions of the libraries, and kind of machine."""

import hashlib
import platform
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import harness
from harness.canonical_setup import Numerics
from harness.recipes.suite import IS_WHEEL

_HARNESS = Path(__file__).resolve().parent.parent


def git_commit() -> str | None:
    """Return the commit of the harness's repository, or None if the harness is not in a repository."""
    if IS_WHEEL:  # because the folder of the installed wheel may be inside another repository
        return None
    try:
        command = ["git", "-C", str(_HARNESS.parent), "rev-parse", "HEAD"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


# The parts of the harness that runs, checks and measurements of behaviour never import, so they cannot change results.
ABOVE_CHECKS = (
    "console", "workspace", "page", "submission", "written", "student", "interview", "trainer", "cli", "__main__",
)  # fmt: skip


def harness_hash(*without: str) -> str:
    """Return the SHA-256 of the harness's Python sources and their paths. Leave out the given folders and modules."""
    total = hashlib.sha256()
    for path in sorted(_HARNESS.rglob("*.py")):
        name = path.relative_to(_HARNESS).as_posix()
        if name.startswith(tuple(f"{part}{end}" for part in without for end in ("/", ".py"))):
            continue
        content = path.read_bytes()
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()


def versions() -> dict[str, str]:
    """Return the versions of Python, torch, NumPy and the harness."""
    import numpy as np
    import torch

    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "harness": harness.__version__,
    }


def platform_class(numerics: Numerics, device: str) -> dict[str, Any]:
    """Return the platform class of this process: the facts about machine and libraries that decide how it rounds.

    Runs of the same class must have the same bytes (see `same_class`). `golden` says whether this process reproduces
    the results in the golden table, which were recorded on other machines. It is None if no table applies: for native
    numerics, a CUDA device, or another release of torch. For the CPU, `torch` is the release without a suffix, because
    "+cpu" and "+cu130" only name CUDA libraries, which a CPU run never calls.
    """
    import torch

    from harness.doctor.golden import read_table

    on_card = device.startswith("cuda")
    release = torch.__version__.partition("+")[0]
    golden = None
    if numerics == "portable" and not on_card and release == read_table()["torch"]:
        golden = _computes_right()
    machine = platform.machine().lower()
    return {
        "architecture": {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine),
        "numerics": numerics,
        "device": torch.cuda.get_device_name(torch.device(device)) if on_card else "cpu",
        "torch": str(torch.__version__) if on_card else release,
        "golden": golden,
    }


@cache  # this takes 20 ms, so the sandbox calls it once, before it forks
def _computes_right() -> bool:
    """Return whether this process, with portable numerics, computes the results that the golden table records."""
    from harness.doctor.golden import compute_goldens, judge
    from harness.doctor.operations import SENTINELS

    return "wrong" not in judge(compute_goldens(SENTINELS)).values()


def same_class(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether runs of these two platform classes must have the same bytes.

    On the CPU, both processes must match the golden table. If they do not (native numerics, or a processor with other
    results), two machines with equal platform classes may still round differently.
    """
    return dict(one) == dict(other) and (one["golden"] is True or one["device"] != "cpu")
