"""`harness doctor`: describe this machine, and say whether its runs are byte for byte the same as on other machines."""

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
    """Print the report, and return 0 if the machine is in the portable class, 1 if it is not."""
    found = examine_machine()
    print(_as_text(found))
    return 0 if found["portable"] else 1


def examine_machine() -> dict[str, Any]:
    """Return a description of the machine and its software, and the verdict for each operation in the golden table.

    A child process computes the operations, because portable numerics must be chosen before torch is imported. If there
    is no verdict, `problem` says why; otherwise it is None.
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
    """Run `harness.doctor.golden` in a child process. Return its output, and the problem if it failed."""
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
        return "\n".join([*lines, f"It is unknown whether this machine is in the portable class. {found['problem']}"])
    same, wrong, differs = (
        [name for name, verdict in found["operations"].items() if verdict == word]
        for word in ("same", "wrong", "differs")
    )
    lines.append(f"{len(same)} of {len(same) + len(wrong)} operations give the expected bytes.")
    lines += [f"  unexpected bytes: {name}" for name in wrong]
    if wrong:
        lines += [
            "This machine is NOT in the portable class: only similar machines compute the same hashes of a run.",
            "That is normal on an Arm processor. You can do and hand in every exercise here, and the difference costs",
            "you no points: the grader replays each run twice on its own machine, and compares metrics, not hashes.",
        ]
    else:
        lines.append("This machine is in the portable class: a run gives the same bytes as on other such machines.")
    optimizers = [name.removeprefix("optimizer ") for name in differs if name.startswith("optimizer ")]
    functions = [name for name in differs if not name.startswith("optimizer ")]
    lines += [
        f"The results of these functions differ between processors: {', '.join(functions)}.",
        f"So do the results of these optimizers in their default form: {', '.join(optimizers)}.",
        "No exercise uses them. Adam and AdamW with fused=True give the same bytes everywhere.",
    ]
    return "\n".join([*lines, as_typed("Next: make exercises")])
