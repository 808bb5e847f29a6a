"""SIGKILL at random moments of `grader score`, and the same command again, until it ends."""

import json
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from faults.fault import Fault, Stamp, content, is_scratch, must, stamps
from faults.lab import RECIPE, Lab, Place, must_be_equal, replays_in
from faults.running import Ended, Grader
from grader.replay.replayer import Engine

# Nobody who is killed more often would ever see an end: so many, and then this class is scored to its end.
_MOST_OF_A_CLASS = 8
# Within so many seconds after a kill nothing of it may be left.
_GONE_SECONDS = 30.0
# Writing the reports of the class takes about so long.
_WRITING_SECONDS = 0.03


@dataclass
class Figures:
    """Of all kills: by the stage they fell into, by what was killed; the classes that came to their end."""

    stages: Counter[str] = field(default_factory=Counter)
    targets: Counter[str] = field(default_factory=Counter)
    classes: int = 0
    scratches: int = 0

    def told(self) -> str:
        """Return them as a sentence."""
        stages = ", ".join(f"{count} {stage}" for stage, count in sorted(self.stages.items()))
        targets = ", ".join(f"{count} of {target}" for target, count in sorted(self.targets.items()))
        return (
            f"{self.stages.total()} kills ({stages}; {targets}) in {self.classes} classes: all ended in the same"
            f" bytes, no replay was repeated, {self.scratches} half-written folders of reports were left and cleared"
        )


def play_kills(lab: Lab, place: Place, *, kills: int, seed: int, from_nothing: bool = True) -> str:
    """Kill so many times; return what was seen. Raises `NotHeld`.

    Every other class has all its replays remembered, or nearly all kills would fall into them; the others have none, or
    all but one where it is not to begin `from_nothing`.
    """
    figures = Figures()
    rng = random.Random(seed)
    while figures.stages.total() < kills:
        one = Place(
            lab, place.folder, *(place.folder / f"{name}{figures.classes}" for name in ("out", "store"))
        )
        if figures.classes % 2:
            one.remember()
        elif not from_nothing:
            one.remember(without="bob")
        if figures.classes % 4 > 1:
            one.have_earlier_reports()
        most = min(_MOST_OF_A_CLASS, -(-kills // 2), kills - figures.stages.total())
        _Class(one, rng, figures).play(most)
        for folder in (one.out, one.store):
            shutil.rmtree(folder)
        figures.classes += 1
    return figures.told()


class _Class:
    """One class, killed and started again until it is scored."""

    def __init__(self, place: Place, rng: random.Random, figures: Figures) -> None:
        self._place = place
        self._rng = rng
        self._figures = figures
        self._wanted = stamps(place.lab.store)
        place.store.mkdir(exist_ok=True)
        self._seen: dict[str, Stamp] = stamps(place.store)

    def play(self, most: int) -> None:
        """Kill at most so often, then let it end, and compare."""
        for _ in range(most):
            grader = self._place.start()
            came = self._wait(grader)
            ended = self._kill(grader) if came else grader.finish()
            if ended.status == 0:
                break  # it was quicker than the moment drawn, or than the signal
            self._look_after(ended)
        else:
            ended = self._place.start().finish()
        self._place.must_be_right(ended)
        self._check_store()
        # Whose names are those of an undisturbed run, so that none is half-written either; nor has one been made anew.
        found = content(self._place.store)
        must({name: stamp[2] for name, stamp in self._wanted.items()} == found, "the store differs")

    def _wait(self, grader: Grader) -> bool:
        """Wait for a random moment; say whether it came before the end."""
        lab, out = self._place.lab, self._place.out
        replays = replays_in(lab.store)
        missing = sum(name not in self._seen for name in replays)
        # With nearly everything remembered, half of the kills fall where the reports are written.
        if missing == len(replays) or self._rng.random() < 0.5:
            whole = lab.warm_seconds + missing * lab.replay_seconds
            return _passed(grader, self._rng.uniform(0, whole))
        came = grader.wait_until(lambda: bool(_scratch_folders(out)))
        return came and _passed(grader, self._rng.uniform(0, _WRITING_SECONDS))

    def _kill(self, grader: Grader) -> Ended:
        everything = self._rng.random() < 0.5
        grader.kill(everything=everything)
        ended = grader.finish(_GONE_SECONDS)
        if ended.status != 0:
            self._figures.targets["everything" if everything else "the grader alone"] += 1
        return ended

    def _look_after(self, ended: Ended) -> None:
        must(ended.status == 128 + 9, f"exit {ended.status} of a killed grader: {ended.err[-300:]}")
        self._figures.stages[self._stage()] += 1
        self._check_store()
        self._check_reports()

    def _stage(self) -> str:
        there = stamps(self._place.store)
        if any(name not in there for name in self._wanted):
            return "while replaying"
        return "while scoring or writing the reports"

    def _check_store(self) -> None:
        found = stamps(self._place.store)
        for name, stamp in self._seen.items():
            must(found.get(name) == stamp, f"{name} was there and was made again")
        must(found.keys() <= self._wanted.keys(), "an entry that no undisturbed run makes")
        self._seen = found

    def _check_reports(self) -> None:
        """Every report is whole: as it was before, or as it is to be."""
        lab = self._place.lab
        if not self._place.out.exists():
            return
        self._figures.scratches += len(_scratch_folders(self._place.out))
        for name, data in content(self._place.out).items():
            whole = data in (lab.reports.get(name), lab.before.get(name))
            must(whole, f"{name} is neither as it was nor as it is to be")


def _passed(grader: Grader, seconds: float) -> bool:
    moment = time.monotonic() + seconds
    return grader.wait_until(lambda: time.monotonic() >= moment)


def _scratch_folders(out: Path) -> list[Path]:
    """Return the folders beside the reports in which a grader writes, or wrote, new ones."""
    return [path for path in out.parent.iterdir() if is_scratch(path.name) and f".{out.name}." in path.name]


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
    Fault("replay_killed", "the process that replays is killed once", "tried again, the same bytes",
        lambda lab, place: _once(_in_fresh("replay.py"), lab, place), in_suite=False),
    Fault("forked_run_killed_always", "every forked run is killed", "not judged, no zero, the others untouched",
        lambda lab, place: _always(Grader.forked, lab, place, "warm")),
    Fault("warm_process_killed", "the process that forks the runs is killed while one runs",
        "the run is made in a fresh process, the same bytes",
        lambda lab, place: _once(Grader.warm, lab, place, "warm"), in_suite=False),
    Fault("evaluator_killed_always", "the process that judges the weights is killed whenever it runs",
        "not judged, no zero, the others untouched",
        lambda lab, place: _always(_in_fresh("evaluate.py"), lab, place), in_suite=False),
)  # fmt: skip
