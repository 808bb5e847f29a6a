"""What decides the bytes of a replay besides its request: the code of this repository, and the machine."""

import hashlib
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

from harness.recipe import EXERCISES, ROOT

_CPUINFO = Path("/proc/cpuinfo")
# The lines about the first processor that name its model and its instructions; the others hold clocks and counts.
_LINES = ("vendor_id", "model name", "flags", "CPU implementer", "CPU part", "Features")
_SUFFIXES = {".py", ".toml", ".md", ".yaml", ".json"}


@cache
def machine_state() -> str:
    """Return processor, C library, Python and packages in words. Replays of two machines that differ are kept apart.

    This is stricter than a platform class, which takes a second to compute (`harness.doctor.golden.platform_class`).
    """
    packages = (f"{name} {version(name)}" for name in ("torch", "numpy"))
    first = _CPUINFO.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    processor = [line for line in first.splitlines() if line.startswith(_LINES)]
    return " ".join(
        (platform.machine(), *platform.libc_ver(), platform.python_version(), *packages, *processor)
    )


@cache
def code_and_machine_hash() -> str:
    """Return the SHA-256 of the code and of this machine, computed once a process."""
    return hashlib.sha256(f"{code_hash()} {machine_state()}".encode()).hexdigest()


def code_hash() -> str:
    """Return the SHA-256 of programs, recipes and solutions, as the files are now. Templates are left out."""
    total = hashlib.sha256()
    for folder in (ROOT / "grader", EXERCISES, ROOT / "harness", ROOT / "solutions"):
        for path in sorted(folder.rglob("*")):
            if path.suffix in _SUFFIXES or path.name == "SHA256SUMS":
                total.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return total.hexdigest()
