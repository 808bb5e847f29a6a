"""What machines must have in common for their replays to have the same bytes: code, libraries, platform class."""

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import version

from grader.replay.machine import machine_state
from grader.score.code_state import code_hash
from harness.doctor.report import examine

Description = Mapping[str, str]


def describe() -> Description:
    """Return what this machine is; the golden table, which takes seconds, says whether it is portable."""
    return {
        "code": code_hash(),
        "Python": ".".join(
            platform.python_version_tuple()[:2]
        ),  # an error may be worded otherwise in another one
        "torch": version("torch").partition("+")[0],
        "NumPy": version("numpy"),
        # Outside the portable class only machines of one kind agree.
        "platform": f"{platform.machine()}, portable" if examine()["portable"] else machine_state(),
    }


def fingerprint(description: Description) -> str:
    """Return the SHA-256 of a description."""
    return hashlib.sha256(json.dumps(dict(description), sort_keys=True).encode()).hexdigest()


def difference(ours: Description, theirs: Description) -> str:
    """Return in what a machine differs from this one, and what to do about it; empty where it does not."""
    differing = [name for name in ours if theirs.get(name) != ours[name]]
    if not differing:
        return ""
    if differing == ["platform"]:
        return "its platform class is another one: grader doctor says on both machines what keeps them apart"
    if differing[0] == "code":
        return "its trainwreck is another one: install the commit that is here, and start the worker anew"
    told = ", ".join(
        f"{name} {theirs.get(name)}, here {ours[name]}" for name in differing if name != "platform"
    )
    return f"it has other versions ({told}): install the same ones, and start the worker anew"
