"""`make test-arm`: a student's work on an emulated Arm processor, from the broken run to the file to hand in.

QEMU's user mode emulates the processor, Debian gives the Python, and the package index gives the libraries. They lie in
a cache folder, so a second run begins at once. Prints each step; the last one says whether all succeeded. An emulated
step takes minutes.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from watch_matrix import ARM, CACHE, REPOSITORY, Impossible, debian, needs, pip

VERSION = "3.11"
# The last release whose wheel for Arm on PyPI is a build for the CPU. The index of pytorch.org has such wheels of later
# releases, too.
TORCH = "2.10.0"
EXERCISE = "huge_lr"
REPORT = """\
---
diagnosis:
  - cause: huge_lr
    where: build_optimizer
    first_wrong: {{signal: loss, step: 1, value: {first}}}
ruled_out:
  - {{cause: label_permute, check: data, outcome: sound}}
  - {{cause: loss_sum, check: loss_form, outcome: agrees}}
evidence:
{evidence}
---

# Symptom

The loss is 2.302 at step 0, and above 30 at step 1.

```
{line}
```

# Root cause

The learning rate in build_optimizer is 10.

# Fix

lr=0.1, nothing else.

# Verification

The loss falls, and the validation accuracy rises.
"""


def emulated_python() -> Path:
    """Return a script that runs this repository on an emulated Arm processor. Raises `Impossible`."""
    qemu = shutil.which("qemu-aarch64")
    if qemu is None or shutil.which("apt-get") is None:
        raise Impossible("emulation needs qemu-aarch64 (on Debian: apt-get install qemu-user)")
    root, folder = debian(VERSION), CACHE / f"arm-harness-{VERSION}-torch-{TORCH}"
    place = ["--only-binary", ":all:", "--python-version", VERSION, *(f"--platform={name}" for name in ARM)]
    if not (folder / "complete").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        with tempfile.TemporaryDirectory() as scratch:
            pip("download", "--quiet", "--no-deps", *place, "--dest", scratch, f"torch=={TORCH}")
            (archive,) = Path(scratch).glob("torch-*.whl")
            install: list[str | Path] = ["install", "--quiet", "--no-compile", *place, "--target", folder]
            pip(*install, "--no-deps", archive)
            pip(*install, *needs(archive, VERSION), *needs_of_harness())
        # The emulated Python would compile the libraries much more slowly. Python 3.11.x shares its compiled files.
        subprocess.run([sys.executable, "-m", "compileall", "-q", folder], capture_output=True, check=False)
        (folder / "complete").touch()
    script = folder / "python"
    script.write_text(
        f'#!/bin/sh\nPYTHONHOME="{root}/usr" PYTHONPATH="{folder}:{REPOSITORY}" exec {qemu} -L "{root}" -0 "{script}"'
        f' "{root}/usr/bin/python{VERSION}" "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    return script


def needs_of_harness() -> Iterator[str]:
    """Yield the requirements of the harness, without its release of torch."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    yield from (one for one in project["dependencies"] if Requirement(one).name != "torch")


def run_steps(python: Path, folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield each step of a student's work, and whether it succeeded."""

    def harness(*words: str) -> tuple[int, str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        command = [str(python), "-m", "harness", *words]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    code, output = harness("doctor")
    yield f"doctor: {code}", "portable class" in output
    code, output = harness("exercise", EXERCISE, "--epochs", "1", "--student", "ada")
    yield f"exercise: {output if code else 'the broken run'}", code == 0
    workspace = folder / "work" / EXERCISE
    experiment = workspace / "experiment.py"
    experiment.write_text(experiment.read_text().replace("lr=10.0", "lr=0.1"))
    code, output = harness("verify", EXERCISE)
    yield f"verify: {output if code else 'the fixed run'}", code == 0
    cited = [line for line in harness("show", EXERCISE, "--step", "1")[1].splitlines() if "signal: loss," in line]
    cited += [
        line
        for line in harness("show", EXERCISE, "--run", "fixed", "--epoch", "0")[1].splitlines()
        if "signal: val_accuracy," in line
    ]
    line = (workspace / "runs" / "broken" / "metrics.log").read_text().splitlines()[1][:60]
    first = cited[0].partition("value: ")[2].rstrip("}") if cited else "0"
    (workspace / "report.md").write_text(REPORT.format(first=first, evidence="\n".join(cited), line=line))
    code, output = harness("check", EXERCISE)
    repeats = [line for line in output.splitlines() if "repeats" in line]
    counts = [line for line in output.splitlines() if re.match(r"\d+ passed", line)]
    yield f"check: {' '.join(counts) or output}", [line.split()[0] for line in repeats] == ["passed", "passed"]
    code, output = harness("submit", EXERCISE)
    yield f"submit: {output.splitlines()[0]}", code == 0


def main() -> int:
    """Run the steps, and return 0 if all succeeded, 1 if one failed, or 2 if this machine cannot emulate them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--native", action="store_true", help="use this Python instead, to test the steps themselves")
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    try:
        python = Path(sys.executable) if options.native else emulated_python()
    except Impossible as why:
        print(f"not tried: {why}")
        return 2
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="trainwreck-arm-") as scratch:
        for says, good in run_steps(python, Path(scratch)):
            print(f"{'passed' if good else 'FAILED'}  {says}", flush=True)
            outcomes.append(good)
    print("All steps succeeded." if all(outcomes) else "Some steps failed.")
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
