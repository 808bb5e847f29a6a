"""What of a machine may change the bytes of a run: the processor, its C library, Python and the packages."""

import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
# The lines of the first processor that tell its model and its instructions; others tell clocks and counts.
_LINES = ("vendor_id", "model name", "flags", "CPU implementer", "CPU part", "Features")


@cache
def machine_state() -> str:
    """Return it in words: replays of two machines that differ in it are kept apart, in a shared folder as well.

    It asks for more than a platform class, which takes a second to find out (`harness.doctor.golden.platform_class`).
    """
    packages = (f"{name} {version(name)}" for name in ("torch", "numpy"))
    return " ".join((platform.machine(), *platform.libc_ver(), platform.python_version(), *packages, *_cpu()))


def _cpu() -> list[str]:
    try:
        first = _CPUINFO.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    except OSError:
        return [platform.processor()]
    return [line for line in first.splitlines() if line.startswith(_LINES)]
