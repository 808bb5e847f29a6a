"""`harness doctor`: describe this machine, and say whether its runs have the same bytes as on other machines."""

import json
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from harness.canonical_setup import run_environment, usable_cores
from harness.recipes.suite import as_typed


def run_doctor() -> int:
    """Print the findings and return the exit status: 0 in the portable class, 1 outside it."""
    found = examine_machine()
    print(_as_text(found))
    return 0 if found["portable"] else 1


def examine_machine() -> dict[str, Any]:
    """Return the machine with its versions, and the verdict on each operation of the golden table.

    A child process computes the operations, because portable numerics must be chosen before torch is imported.
    `problem` is None, or says why there is no verdict.
    """
    measured, problem = _measure()
    installed, needed = measured.get("torch"), measured.get("golden_torch")
    if problem is None and installed != needed:
        problem = f"The golden table is for torch {needed}, but {installed} is installed"
        problem += f": run `{sys.executable} -m pip install torch=={needed}`."
    operations = {} if problem else measured["operations"]
    return {
        "portable": bool(operations) and "wrong" not in operations.values(),
        "problem": problem,
        "operations": operations,
        "machine": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("torch", "numpy")},
            "system": f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver()).strip()}",
            "processor": f"{_processor()}, {usable_cores()} threads",
            "CUDA": ", ".join(measured.get("cuda", [])) or "no card",
        },
    }


def _measure() -> tuple[dict[str, Any], str | None]:
    """Run `harness.doctor.golden`. Return its output and, if it failed, the problem."""
    words = [sys.executable, "-m", "harness.doctor.golden"]
    done = subprocess.run(words, env=run_environment("portable"), capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout), None
    last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return {}, f"`{' '.join(words)}` failed ({last}): delete .venv and run `make exercises` to set it up again."


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown")


def _as_text(found: dict[str, Any]) -> str:
    lines = [*(f"{name:<12}{value}" for name, value in found["machine"].items()), ""]
    if found["problem"]:
        return "\n".join([*lines, f"No verdict on portable numerics. {found['problem']}"])
    same, wrong, differs = (
        [name for name, verdict in found["operations"].items() if verdict == word]
        for word in ("same", "wrong", "differs")
    )
    lines.append(f"{len(same)} of {len(same) + len(wrong)} operations give the golden bytes.")
    lines += [f"  not the golden bytes: {name}" for name in wrong]
    if wrong:
        lines += [
            "This machine is NOT in the portable class: its hashes are right only for similar",
            "machines. The grader still grades its runs: it replays each run twice, and",
            "compares metrics instead of hashes.",
        ]
    else:
        lines.append("This machine is in the portable class: its runs have the same bytes as on other machines.")
    optimizers = [name.removeprefix("optimizer ") for name in differs if name.startswith("optimizer ")]
    functions = [name for name in differs if not name.startswith("optimizer ")]
    lines += [
        f"These functions differ between processors: {', '.join(functions)};",
        f"and these optimizers in their default form: {', '.join(optimizers)}.",
        "No exercise uses them: Adam and AdamW with fused=True give the same bytes.",
    ]
    return "\n".join([*lines, as_typed("Next: make exercises")])
