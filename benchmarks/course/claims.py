"""Submissions whose claims are not true: the code is what it is, and the runs handed in are not those of the code."""

import hashlib
import json

from benchmarks.course.tarballs import Members
from harness.files import sha256_line

_LOG, _CHECKPOINT = "runs/fixed/metrics.log", "runs/fixed/checkpoint.pt"


def with_claim(claim: str, members: Members, other: Members) -> tuple[Members, dict[str, str]]:
    """Return the members with an untrue claim, one of `plan.CLAIMS`, and the hashes that the manifest is to lie about.

    other: a submission of another fix of the same recipe. Raises `ValueError` for no such claim, and where the other
    fix ended with the same weights, so that the claim would be true.
    """
    members = dict(members)
    if other[_CHECKPOINT] == members[_CHECKPOINT]:
        raise ValueError("the two fixes end with the same weights")
    match claim:
        case "better log":
            members[_LOG] = _better(members[_LOG])
        case "other checkpoint":
            members[_CHECKPOINT] = other[_CHECKPOINT]
            members[f"{_CHECKPOINT}.sha256"] = sha256_line(other[_CHECKPOINT], _CHECKPOINT).encode()
        case "other run":
            members |= {name: data for name, data in other.items() if name.startswith("runs/fixed/")}
            members["runs/fixed/experiment.py"] = members["experiment.py"]
        case "wrong hash":
            return members, {_CHECKPOINT: hashlib.sha256(other[_CHECKPOINT]).hexdigest()}
        case _:
            raise ValueError(f"{claim!r} is no untrue claim")
    return members, {}


def _better(log: bytes) -> bytes:
    """Return the log with a last validation that is better than it was."""
    *lines, last = log.decode().splitlines()
    record = json.loads(last)
    if record["val_accuracy"] is None:
        record["val_loss"] = 1e-6
    else:
        record["val_accuracy"] = 0.999
    return "\n".join([*lines, json.dumps(record), ""]).encode()
