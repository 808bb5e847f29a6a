"""`harness doctor`: what this machine is, and whether its runs have the same bytes as elsewhere."""

import json
import platform
import shutil
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
    found = examine()
    print(json.dumps(found, indent=1) if as_json else _as_text(found))
    return 0 if found["portable"] else 1


def examine() -> dict[str, Any]:
    """Return the versions, the machine, and the verdict on each operation of the golden table.

    A child process computes the operations, because portable numerics must be chosen before torch is imported.
    `problem` is None, or says why there is no verdict.
    """
    measured, problem = _measure()
    table = json.loads(Path(__file__).with_name("golden.json").read_text(encoding="utf-8"))
    release = str(measured.get("torch", "")).partition("+")[0]
    if problem is None and release != table["torch"]:
        problem = f"The golden table is for torch {table['torch']}, and {release} is installed"
        problem += f": run `{sys.executable} -m pip install torch=={table['torch']}`."
    operations = {} if problem else _judge(measured["digests"], table["digests"])
    return {
        "portable": bool(operations) and "wrong" not in operations.values(),
        "problem": problem,
        "operations": operations,
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "libc": " ".join(platform.libc_ver()).strip() or "unknown",
            "processor": _processor(),
            "threads": usable_cores(),
            "cuda": measured.get("cuda", []),
            "free_disk_gb": round(shutil.disk_usage(Path.cwd()).free / 1e9, 1),
            "git": _git_version(),
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


def _judge(digests: dict[str, str], golden: dict[str, str | None]) -> dict[str, str]:
    """Return "same", "wrong", or "differs" (processors need not agree) for each operation."""
    verdicts = {}
    for name in {**golden, **digests}:
        expected = golden.get(name, "")
        same = expected == digests.get(name)
        verdicts[name] = "differs" if expected is None else "same" if same else "wrong"
    return verdicts


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown")


def _git_version() -> str | None:
    try:
        done = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip().removeprefix("git version ")


def _as_text(found: dict[str, Any]) -> str:
    machine = found["machine"]
    rows = {
        **{name: value or "not installed" for name, value in found["versions"].items()},
        "system": f"{machine['system']}, {machine['libc']}",
        "processor": f"{machine['processor']}, {machine['threads']} threads",
        "CUDA": ", ".join(machine["cuda"]) or "no card",
        "free disk": f"{machine['free_disk_gb']} GB here",
        "git": machine["git"] or "not found: runs will not record a commit; install git",
    }
    return "\n".join([*(f"{name:<12}{value}" for name, value in rows.items()), "", *_verdict(found)])


def _verdict(found: dict[str, Any]) -> list[str]:
    if found["problem"]:
        return [f"No verdict on portable numerics. {found['problem']}"]
    named: dict[str, list[str]] = {"same": [], "wrong": [], "differs": []}
    for name, verdict in found["operations"].items():
        named[verdict].append(name)
    judged = len(named["same"]) + len(named["wrong"])
    lines = [f"{len(named['same'])} of {judged} operations give the golden bytes."]
    if named["wrong"]:
        lines += [f"  not the golden bytes: {name}" for name in named["wrong"]]
        lines += [
            "This machine is NOT in the portable class: its hashes hold only on machines like it. The grader",
            "still grades such a run: it replays it twice, and compares metrics instead of the hash.",
        ]
    else:
        lines.append(
            "This machine is in the portable class: its runs have the same bytes on all machines in it."
        )
    lines.append(f"Avoid these, which differ between processors: {', '.join(named['differs'])}.")
    return [*lines, "Next: make exercises"]
