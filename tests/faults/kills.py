"""SIGKILL at random moments of `grader score`, and the same command again, until it ends."""

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from helpers.watched import Ended, Watched

from faults.lab import RECIPE, Lab, Place, Stamp, content, is_scratch, must, stamps, write_files
from grader.replay.replayer import Engine

Finder = Callable[[Watched], int | None]
# A class is killed so often at most, and then scored to its end.
_MOST_OF_A_CLASS = 8
# Writing the reports of the class takes about so long.
_WRITING_SECONDS = 0.03


def play_kills(lab: Lab, place: Place, *, kills: int, seed: int, from_nothing: bool = True) -> str:
    """Kill so many times; return what was seen. Raises `NotHeld`.

    Every other class has all its replays remembered, or nearly all kills would fall into them; the others have none, or
    all but one unless it is to begin `from_nothing`.
    """
    rng = random.Random(seed)
    done = classes = half_written = 0
    while done < kills:
        one = Place(lab, place.folder, *(place.folder / f"{name}{classes}" for name in ("out", "store")))
        if classes % 2 or not from_nothing:
            one.remember(without="" if classes % 2 else "bob")
        one.store.mkdir(exist_ok=True)
        if classes % 4 > 1:
            write_files(one.out, lab.before)
        seen = stamps(one.store)
        for _ in range(min(_MOST_OF_A_CLASS, -(-kills // 2), kills - done)):
            grader = one.start()
            if not _wait(grader, one, rng, known=len(seen)):
                break  # it was quicker than the moment drawn
            grader.kill(everything=rng.random() < 0.5)
            ended = grader.finish()
            if ended.status == 0:
                break  # it was quicker than the signal
            must(ended.status == 128 + 9, f"exit {ended.status} of a killed grader: {ended.err[-300:]}")
            done += 1
            seen = _look_after(one, seen)
            half_written += len(_scratch_folders(one.out))
        # If the last one came to its end, this one reads what it left.
        one.must_be_right(one.score())
        one.must_remember_all(seen)
        shutil.rmtree(one.out)
        shutil.rmtree(one.store)
        classes += 1
    return (
        f"{done} kills in {classes} classes: all ended in the same bytes, no replay was repeated,"
        f" {half_written} half-written folders of reports were left and cleared"
    )


def _wait(grader: Watched, place: Place, rng: random.Random, known: int) -> bool:
    """Wait for a random moment; say whether it came before the end."""
    replays = len(content(place.lab.store))
    seconds = place.lab.warm_seconds + (replays - known) * place.lab.replay_seconds
    # With nearly everything remembered, half of the kills fall where the reports are written.
    if known and rng.random() < 0.5:
        if not grader.wait_until(lambda: bool(_scratch_folders(place.out))):
            return False
        seconds = _WRITING_SECONDS
    moment = time.monotonic() + rng.uniform(0, seconds)
    return grader.wait_until(lambda: time.monotonic() >= moment)


def _look_after(place: Place, seen: Mapping[str, Stamp]) -> dict[str, Stamp]:
    """Look at what a killed grader left: entries as they were or whole, reports as before or as they are to be."""
    found, lab = stamps(place.store), place.lab
    must(seen.items() <= found.items(), "an entry that was there was made again")
    must(found.keys() <= stamps(lab.store).keys(), "an entry that no undisturbed run makes")
    for name, data in content(place.out).items() if place.out.exists() else ():
        must(data in (lab.reports.get(name), lab.before.get(name)), f"{name} is neither as it was nor as it is to be")
    return found


def _scratch_folders(out: Path) -> list[Path]:
    """Return the folders beside the reports in which a grader writes, or wrote, new ones."""
    return [path for path in out.parent.iterdir() if is_scratch(path.name) and f".{out.name}." in path.name]


def _score_and_kill(place: Place, finder: Finder, engine: Engine, most: int) -> tuple[int, Ended]:
    """Score the class, killing the process that the finder finds so often; return how often it was killed."""
    grader = place.start("--jobs", "1", "--sandbox", engine)
    killed: list[int] = []

    def came() -> bool:
        found = finder(grader)
        if found is None or found in killed:
            return False
        killed.append(found)
        return True

    while len(killed) < most and grader.wait_until(came):
        os.kill(killed[-1], signal.SIGKILL)
    return len(killed), grader.finish()


def kill_once(finder: Finder, place: Place, engine: Engine = "fresh") -> str:
    """Kill one process of ours while the class is scored: it is tried again."""
    place.remember(without="bob")
    count, ended = _score_and_kill(place, finder, engine, 1)
    must(count == 1, "there was nothing to kill")
    place.must_be_right(ended)
    place.must_remember_all()
    return "it was tried once more, and all is right"


def kill_always(finder: Finder, place: Place, engine: Engine = "fresh") -> str:
    """Kill a process of ours whenever it runs: its submission waits, the others are scored."""
    place.remember(without="bob")
    count, ended = _score_and_kill(place, finder, engine, 10)
    must((count, ended.status) == (2, 1), f"it was tried {count} times, and the grader ended with {ended.status}")
    rows, right = (
        {row["submission"]: row for row in json.loads(data)["submissions"]}
        for data in ((place.out / "scores.json").read_bytes(), place.lab.reports["scores.json"])
    )
    row = rows.pop(f"bob_{RECIPE}")
    right.pop(f"bob_{RECIPE}")
    must(rows == right, "another submission's row changed")
    must((row["status"], row["total"]) == ("not judged", None), f"{row['status']}, total {row['total']}")
    zeros = [check["id"] for check in row["criteria"]["fix"]["checks"] if check["points"] == 0]
    must(not zeros, f"no points for {zeros}")
    must(not place.replay_of("bob").exists(), "a replay that was killed is remembered")
    place.score()  # its pages say what has changed
    place.must_be_right(place.score())
    return f"tried twice, then not judged ({row['reason'][:60]}...), and not remembered; the next day all is right"
