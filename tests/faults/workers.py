"""Processes inside the sandbox that are killed from outside, as by a machine that is short of memory."""

import json
import os
import signal
from collections.abc import Callable

from faults.fault import Fault
from faults.files import content
from faults.held import must
from faults.lab import RECIPE, Lab, Place, must_be_equal
from faults.running import Ended, Grader
from grader.replay.replayer import Engine

Finder = Callable[[Grader], int | None]


def _in_fresh(script: str) -> Finder:
    return lambda grader: grader.sandboxed(script)


def _killed(place: Place, finder: Finder, engine: Engine, most: int) -> tuple[int, Ended]:
    """Score the class, killing the process that the finder finds so often; return how often it was."""
    grader = place.start("--jobs", "1", "--sandbox", engine)
    killed: list[int] = []
    while len(killed) < most:
        process: list[int] = []

        def there(process: list[int] = process) -> bool:
            found = finder(grader)
            if found is not None and found not in killed:
                process.append(found)
            return bool(process)

        if not grader.wait_until(there):
            break
        os.kill(process[0], signal.SIGKILL)
        killed.append(process[0])
    return len(killed), grader.finish()


def _once(finder: Finder, lab: Lab, place: Place, engine: Engine = "fresh") -> str:
    place.remember(without="bob")
    count, ended = _killed(place, finder, engine, 1)
    must(count == 1, "there was nothing to kill")
    place.must_be_right(ended)
    must_be_equal(content(place.store), content(lab.store))
    return "it was tried once more, and all is right"


def _always(finder: Finder, lab: Lab, place: Place, engine: Engine = "fresh") -> str:
    place.remember(without="bob")
    count, ended = _killed(place, finder, engine, 10)
    must(count == 2, f"it was tried {count} times")
    must(ended.status == 1, f"exit {ended.status}: {ended.err}")
    rows = {
        row["submission"]: row for row in json.loads((place.out / "scores.json").read_bytes())["submissions"]
    }
    right = {row["submission"]: row for row in json.loads(lab.reports["scores.json"])["submissions"]}
    row = rows.pop(f"bob_{RECIPE}")
    right.pop(f"bob_{RECIPE}")
    must(rows == right, "another submission's row changed")
    must((row["status"], row["total"]) == ("not judged", None), f"{row['status']}, total {row['total']}")
    zeros = [check["id"] for check in row["criteria"]["fix"]["checks"] if check["points"] == 0]
    must(not zeros, f"no points for {zeros}")
    must(not place.replay_of("bob").exists(), "a replay that was killed is remembered")
    place.must_be_right(place.score())
    return f"tried twice, then not judged ({row['reason'][:60]}...), and not remembered; the next day all is right"


FAULTS = (
    Fault(
        "replay_killed", "the process that replays is killed once", "tried again, the same bytes",
        lambda lab, place: _once(_in_fresh("replay.py"), lab, place), in_suite=False,
    ),
    Fault(
        "replay_killed_always", "it is killed whenever it runs", "not judged, no zero, the others untouched",
        lambda lab, place: _always(_in_fresh("replay.py"), lab, place), in_suite=False,
    ),
    Fault(
        "forked_run_killed_always", "the run that was forked is killed whenever there is one",
        "not judged, no zero, the others untouched",
        lambda lab, place: _always(Grader.forked, lab, place, "warm"),
    ),
    Fault(
        "warm_process_killed", "the process that forks the runs is killed while one runs",
        "the run is made in a fresh process, the same bytes",
        lambda lab, place: _once(Grader.warm, lab, place, "warm"), in_suite=False,
    ),
    Fault(
        "evaluator_killed", "the process that judges the weights is killed once", "tried again, the same bytes",
        lambda lab, place: _once(_in_fresh("evaluate.py"), lab, place), in_suite=False,
    ),
    Fault(
        "evaluator_killed_always", "it is killed whenever it runs", "not judged, no zero, the others untouched",
        lambda lab, place: _always(_in_fresh("evaluate.py"), lab, place), in_suite=False,
    ),
)  # fmt: skip
