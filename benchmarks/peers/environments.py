"""An environment of its own for each tool: its pinned version, and what a student has of this suite."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.timing import BenchmarkError, run
from grader.course.kit import LISTING, build_kit

# The versions that are measured. The kit pins torch.
PINS = {
    "nbgrader": "nbgrader==0.9.6",
    "otter": "otter-grader[grading]==7.0.0",
    "check50": "check50==3.5.0",
    "gradescope": "gradescope-utils==0.5.0",
}
_PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
# Whatever else of Python's and Jupyter's is set would lead out of the environment.
_OUTSIDE = ("PYTHON", "JUPYTER", "IPYTHON")


def default_folder() -> Path:
    """Return where environments lie unless told otherwise: in the user's cache, outside of the repository."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "trainwreck" / "peers"


def ready_environment(tool: str, folder: Path) -> Path:
    """Return the Python of a tool's environment below `folder`.

    It is made anew where the pin has changed; where only the suite has, the kit is installed again. Raises
    `BenchmarkError` where an installation fails, or where a folder of that name is something else.
    """
    place = folder / tool
    python = place / "bin" / "python"
    marker = folder / f"{tool}.json"
    kit = build_kit(folder / "kit").resolve()
    # Not the folder itself, in which pip would leave what it builds.
    archive = str(kit.with_name(f"{kit.name}.tar.gz"))
    wanted = {"pin": PINS[tool], "kit": (kit / LISTING).read_text(encoding="utf-8")}
    found = json.loads(marker.read_text(encoding="utf-8")) if marker.is_file() else {}
    if found == wanted:
        return python
    if place.exists() and not marker.is_file():
        raise BenchmarkError(f"{place} is no environment of this benchmark: name another folder with --envs.")
    # What is cut off from here on is begun again the next time.
    marker.write_text("{}", encoding="utf-8")
    if found.get("pin") == wanted["pin"]:
        run([str(python), *_PIP, "--no-deps", "--force-reinstall", archive])
    else:
        run([sys.executable, "-m", "venv", "--clear", str(place)])
        run([str(python), *_PIP, PINS[tool], archive])
    marker.write_text(json.dumps(wanted), encoding="utf-8")
    return python


def activated(python: Path, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of a shell in which this environment is activated."""
    base = os.environ if base is None else base
    kept = {name: value for name, value in base.items() if not name.startswith(_OUTSIDE)}
    folders = f"{python.parent}{os.pathsep}{base.get('PATH', os.defpath)}"
    return {**kept, "PATH": folders, "VIRTUAL_ENV": str(python.parent.parent)}
