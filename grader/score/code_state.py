"""One hash over everything besides a submission that decides about its score: programs, recipes, solutions."""

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from grader.replay.machine import machine_state
from harness.recipe import EXERCISES, EXPERIMENTS, ROOT
from harness.run.provenance import harness_hash

# Templates are not among them: pages are made anew each time.
_SUFFIXES = {".py", ".toml", ".md", ".yaml", ".json"}


@cache
def code_state() -> str:
    """Return the SHA-256 of the code and of this machine; it is computed once a process."""
    return hashlib.sha256(f"{code_hash()} {machine_state()}".encode()).hexdigest()


def code_hash() -> str:
    """Return the SHA-256 of the files as they are now."""
    total = hashlib.sha256(harness_hash().encode())
    for path in _files():
        total.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return total.hexdigest()


def _files() -> Iterator[Path]:
    instruments = ROOT / "harness" / "checks"  # their checks are data
    for folder in (Path(__file__).parent.parent, EXERCISES, EXPERIMENTS, instruments, ROOT / "solutions"):
        for path in sorted(folder.rglob("*")):
            if path.suffix in _SUFFIXES or path.name == "SHA256SUMS":
                yield path
