"""Submissions that no student command can make."""

import json

from benchmarks.repack import Members, members_of, repacked


def special_cases(good: bytes) -> dict[str, bytes]:
    """Return archives that no student command makes, by name: odd names, an edited log, a crash, a cut tarball."""
    recipe = json.loads(members_of(good)["manifest.json"])["recipe"]
    cases = {
        "smith": repacked(good, student="Smith, Jr."),
        "formula": repacked(good, student="=1+1"),
        "forger": repacked(good, student="forger", change=_better_log),
        "crash": repacked(good, student="crash", change=_raising),
        "truncated": good[: len(good) // 2],
    }
    return {f"{name}_{recipe}": data for name, data in cases.items()}


def _better_log(members: Members) -> None:
    log = members["runs/fixed/metrics.log"].decode().splitlines()
    last = json.loads(log[-1])
    last["val_accuracy"] = 0.999
    members["runs/fixed/metrics.log"] = "\n".join([*log[:-1], json.dumps(last), ""]).encode()


def _raising(members: Members) -> None:
    members["experiment.py"] += b"\n\ndef compute_loss(outputs, labels):\n    return outputs.stpe()\n"
