"""`harness doctor`: what this machine is, and whether its runs have the same bytes as elsewhere."""

import json
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harness.canonical_setup import run_environment
from harness.run.provenance import usable_cores

_LIMIT_SECONDS = 300
_PACKAGES = ("torch", "numpy")


def run_doctor(as_json: bool = False) -> int:
    """Print the findings and return the exit status: 0 in the portable class, 1 outside it."""
    found = examine_machine()
    print(json.dumps(found, indent=1) if as_json else _as_text(found))
    return 0 if found["portable"] else 1


def examine_machine() -> dict[str, Any]:
    """Return the machine with its versions, and the verdict on each operation of the golden table.

    A child process computes the operations, because portable numerics must be chosen before torch is imported.
    `problem` is None, or says why there is no verdict.
    """
    measured, problem = _measure()
    installed, needed = measured.get("torch"), measured.get("golden_torch")
    if problem is None and installed != needed:
        problem = f"The golden table is for torch {needed}, and {installed} is installed"
        problem += f": run `{sys.executable} -m pip install torch=={needed}`."
    operations = {} if problem else measured["operations"]
    return {
        "portable": bool(operations) and "wrong" not in operations.values(),
        "problem": problem,
        "operations": operations,
        "machine": {
            "python": platform.python_version(),
            **{name: _version(name) for name in _PACKAGES},
            "system": f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver()).strip()}",
            "processor": f"{_processor()}, {usable_cores()} threads",
            "CUDA": ", ".join(measured.get("cuda", [])) or "no card",
        },
    }


def _measure() -> tuple[dict[str, Any], str | None]:
    """Return what `harness.doctor.golden` prints, and the problem if it failed."""
    words = [sys.executable, "-m", "harness.doctor.golden"]
    shown = " ".join(words)
    options: dict[str, Any] = {"env": run_environment("portable"), "capture_output": True, "text": True}
    try:
        done = subprocess.run(words, timeout=_LIMIT_SECONDS, check=False, **options)
    except subprocess.TimeoutExpired:
        return {}, f"`{shown}` did not end within {_LIMIT_SECONDS} s: run it by itself."
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return {}, f"`{shown}` failed ({last}): delete .venv and run `make test` to set it up again."
    return json.loads(done.stdout), None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown")


def _as_text(found: dict[str, Any]) -> str:
    machine = (f"{name:<12}{value}" for name, value in found["machine"].items())
    return "\n".join([*machine, "", *_verdict(found)])


def _verdict(found: dict[str, Any]) -> list[str]:
    if found["problem"]:
        return [f"No verdict on portable numerics. {found['problem']}"]
    named: dict[str, list[str]] = {"same": [], "wrong": [], "differs": []}
    for name, verdict in found["operations"].items():
        named[verdict].append(name)
    same, wrong = named["same"], named["wrong"]
    lines = [f"{len(same)} of {len(same) + len(wrong)} operations give the golden bytes."]
    lines += [f"  not the golden bytes: {name}" for name in wrong]
    if wrong:
        lines += [
            "This machine is NOT in the portable class: its hashes hold only on machines like it. The grader",
            "still grades such a run: it replays it twice, and compares metrics instead of the hash.",
        ]
    else:
        lines.append("This machine is in the portable class: its runs have the same bytes on all of them.")
    lines.append(f"Avoid these, which differ between processors: {', '.join(named['differs'])}.")
    return [*lines, "Next: make exercises"]
