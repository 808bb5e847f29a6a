"""SIGKILL at random moments of `grader score`, and the same command again, until it ends."""

import random
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from faults.files import Stamp, content, is_scratch, stamps
from faults.held import must
from faults.lab import Lab, Place, replays_in
from faults.running import Ended, Grader

# Nobody who is killed more often would ever see an end: so many, and then this class is scored to its end.
_MOST_OF_A_CLASS = 8
# Within so many seconds after a kill nothing of it may be left.
_GONE_SECONDS = 30.0
# What it takes to write the reports of the class, and to score it: kills in these stages fall at random into them.
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
            f" bytes, no replay was repeated, {self.scratches} half-written files were left and cleared"
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
        stage = self._rng.choice(("any", "scoring", "writing")) if missing < len(replays) else "any"
        if stage == "any":
            whole = lab.warm_seconds + missing * lab.replay_seconds
            return _passed(grader, self._rng.uniform(0, whole))
        if stage == "scoring":
            return _passed(grader, self._rng.uniform(0, lab.warm_seconds))
        folder = out
        before = _changed(folder)
        longest = _WRITING_SECONDS
        came = grader.wait_until(lambda: _changed(folder) != before)
        return came and _passed(grader, self._rng.uniform(0, longest))

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
        return "when all was remembered, the reports perhaps half there"

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
        for name, data in content(self._place.out).items():
            if is_scratch(name):
                self._figures.scratches += 1
                continue
            whole = data in (lab.reports.get(name), lab.before.get(name))
            must(whole, f"{name} is neither as it was nor as it is to be")


def _passed(grader: Grader, seconds: float) -> bool:
    moment = time.monotonic() + seconds
    return grader.wait_until(lambda: time.monotonic() >= moment)


def _changed(folder: Path) -> int:
    """Return when a folder or one below it last changed; 0 where there is none."""
    if not folder.exists():
        return 0
    return max(
        path.stat().st_mtime_ns for path in (folder, *(item for item in folder.iterdir() if item.is_dir()))
    )
