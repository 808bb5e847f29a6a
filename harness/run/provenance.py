"""Which suite made a run: its commit, and the hash of its sources."""

import hashlib
import subprocess
from pathlib import Path


def git_commit() -> str | None:
    """Return the commit of the suite that made the run, or None where it is not in a repository."""
    root = Path(__file__).resolve().parent.parent.parent
    try:
        command = ["git", "-C", str(root), "rev-parse", "HEAD"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def harness_hash() -> str:
    """Return the SHA-256 over the sources of the harness, the paths included."""
    root = Path(__file__).resolve().parent.parent
    total = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        content = path.read_bytes()
        total.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()
