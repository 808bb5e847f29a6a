"""Send SIGKILL at random moments of `grader score`, and repeat the same command until it finishes."""

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
# Kill the scoring of one class at most this often. Then score the class to the end.
_MOST_OF_A_CLASS = 8
# The approximate time to write the reports of the class.
_WRITING_SECONDS = 0.03


def play_kills(lab: Lab, place: Place, *, kills: int, seed: int, from_nothing: bool = True) -> str:
    """Kill the grader `kills` times, and return a summary. Raises `NotHeld`.

    For every other class, all replays are cached. Otherwise nearly all kills would happen during replays. The other
    classes have no cached replays, or all except one if `from_nothing` is False.
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
                break  # it finished before the chosen moment
            grader.kill(everything=rng.random() < 0.5)
            ended = grader.finish()
            if ended.status == 0:
                break  # it finished before the signal
            must(ended.status == 128 + 9, f"exit {ended.status} of a killed grader: {ended.err[-300:]}")
            done += 1
            seen = _look_after(one, seen)
            half_written += len(_scratch_folders(one.out))
        # If the last command finished, this command reads the complete results.
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
    """Wait for a random moment. Return whether it came before the end of the command."""
    replays = len(content(place.lab.store))
    seconds = place.lab.warm_seconds + (replays - known) * place.lab.replay_seconds
    # If nearly all replays are cached, half of the kills happen while the grader writes the reports.
    if known and rng.random() < 0.5:
        if not grader.wait_until(lambda: bool(_scratch_folders(place.out))):
            return False
        seconds = _WRITING_SECONDS
    moment = time.monotonic() + rng.uniform(0, seconds)
    return grader.wait_until(lambda: time.monotonic() >= moment)


def _look_after(place: Place, seen: Mapping[str, Stamp]) -> dict[str, Stamp]:
    """Check the files after a kill: cache entries are unchanged or whole, reports are the old or the new ones."""
    found, lab = stamps(place.store), place.lab
    must(seen.items() <= found.items(), "an entry that was there was made again")
    must(found.keys() <= stamps(lab.store).keys(), "an entry that no undisturbed run makes")
    for name, data in content(place.out).items() if place.out.exists() else ():
        must(data in (lab.reports.get(name), lab.before.get(name)), f"{name} is neither as it was nor as it is to be")
    return found


def _scratch_folders(out: Path) -> list[Path]:
    """Return the folders next to the reports in which a grader writes new reports."""
    return [path for path in out.parent.iterdir() if is_scratch(path.name) and f".{out.name}." in path.name]


def _score_and_kill(place: Place, finder: Finder, engine: Engine, most: int) -> tuple[int, Ended]:
    """Score the class, and kill the process that the finder finds `most` times. Return the number of kills."""
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
    """Kill one of our processes while the class is scored: the grader tries again."""
    place.remember(without="bob")
    count, ended = _score_and_kill(place, finder, engine, 1)
    must(count == 1, "there was nothing to kill")
    place.must_be_right(ended)
    place.must_remember_all()
    return "it was tried once more, and all is right"


def kill_always(finder: Finder, place: Place, engine: Engine = "fresh") -> str:
    """Kill one of our processes every time it runs: its submission waits, and the other submissions are scored."""
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
    place.score()  # the pages of this second scoring list the changes
    place.must_be_right(place.score())
    return f"tried twice, then not judged ({row['reason'][:60]}...), and not remembered; the next day all is right"
