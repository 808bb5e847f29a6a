"""A class of honest submissions, and classes with attacks among them, each scored by the real `grader score`."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from honest_class import STUDENTS, HonestClass, make_submissions

from attacks import score_deriving as deriving
from attacks import warden
from attacks.attack import RECIPE, Attack, Base
from attacks.traces import changes, traces
from grader.replay.replayer import Engine

# Far above what any class here takes, on a busy machine too; what passes it has hung the grader.
CLASS_SECONDS = 1200
SLOW_SECONDS = 3600


@dataclass(frozen=True)
class Scored:
    """One class after `grader score`: what it said, what it wrote, and what else became of it."""

    status: int | None
    stdout: bytes
    stderr: bytes
    seconds: float
    left: tuple[str, ...]
    changes: tuple[str, ...]
    reports: Path
    memory: Path

    def rows(self) -> dict[str, dict[str, Any]]:
        """Return the rows of scores.json by submission; none where there is no such file."""
        path = self.reports / "scores.json"
        if not path.exists():
            return {}
        scores = json.loads(path.read_text(encoding="utf-8"))
        return {row["submission"]: row for row in scores["submissions"]}


@dataclass(frozen=True)
class Lab:
    """Honest tarballs by file name, the base of all attacks, and the class without any attack, scored."""

    folder: Path
    base: Base
    honest: Mapping[str, bytes]
    alone: Scored

    @property
    def baselines(self) -> dict[str, dict[str, Any]]:
        """The rows that no attacker may exceed, by what they are."""
        rows = self.alone.rows()
        runs = {what: rows[f"{student}_{RECIPE}"] for what, student in STUDENTS.items()}
        return runs | {what: rows[f"{who}_{deriving.EXERCISE}"] for what, who in deriving.STUDENTS.items()}


def make_lab(
    folder: Path,
    *,
    others: Sequence[str] = (),
    jobs: int = 2,
    known: HonestClass | None = None,
    engine: Engine = "warm",
) -> Lab:
    """Make the honest submissions (of the recipe `huge_lr`, and one right fix of each of `others`), and score them.

    known: such submissions that were made and replayed before; they are scored here all the same.
    """
    home = folder / "home"
    home.mkdir(parents=True)
    secret = f"canary-{os.urandom(12).hex()}"
    canary = home / "canary.txt"
    canary.write_text(secret)
    if known is None:
        honest = make_submissions(folder / "template", folder / "work", others=others, jobs=jobs)
        shutil.rmtree(folder / "template")
        shutil.rmtree(folder / "work")
    else:
        honest = known.tarballs
    memory = None if known is None else known.remember(folder / "known")
    honest = {**honest, **deriving.honest_tarballs()}
    bases = {what: honest[f"{student}_{RECIPE}.tar.gz"] for what, student in STUDENTS.items()}
    base = Base(**bases, canary=canary, secret=secret, submissions=folder / "alone" / "submissions")
    empty = Lab(folder, base, honest, Scored(None, b"", b"", 0.0, (), (), folder, folder))
    alone = score_class(empty, "alone", (), memory=memory, jobs=jobs, engine=engine)
    if alone.status != 0:
        raise RuntimeError(f"the honest class was not graded: {alone.stderr.decode(errors='replace')}")
    return replace(empty, alone=alone)


def score_class(
    lab: Lab, name: str, attacks: Sequence[Attack], *, memory: Path | None, jobs: int, engine: Engine = "warm"
) -> Scored:
    """Score a class of its own in `lab.folder/name`: the honest submissions and these attacks.

    memory: replays remembered from another class, which are copied (None: everything is replayed). What was scored
    before is not, so that every honest score is made again beside the attack. engine: as `grader score --sandbox`.
    """
    folder = lab.folder / name
    submissions, out, replays = folder / "submissions", folder / "reports", folder / "replays"
    submissions.mkdir(parents=True)
    (folder / "tmp").mkdir()
    if memory is not None:
        shutil.copytree(memory, replays, ignore=shutil.ignore_patterns("graded"))
    for file, data in lab.honest.items():
        (submissions / file).write_bytes(data)
    base = replace(lab.base, submissions=submissions)
    for attack in attacks:
        attack.place(submissions / attack.tarball, attack.build(base))
    watched = {"folders": (folder, lab.base.canary.parent), "apart_from": (out, replays)}
    before, kept = traces(**watched), traces([replays])
    slow = any(attack.slow for attack in attacks)
    command = [sys.executable, "-P", "-m", "grader", "score", str(submissions), "--out", str(out)]
    start = time.monotonic()
    told = _under_watch(
        [*command, "--jobs", str(jobs), "--sandbox", engine],
        lab,
        folder,
        SLOW_SECONDS if slow else CLASS_SECONDS,
    )
    seconds = time.monotonic() - start
    # New replays are remembered; those that were are as they were.
    spoilt = [line for line in changes(kept, traces([replays])) if not line.startswith("created")]
    said = {stream: (folder / stream).read_bytes() for stream in ("stdout", "stderr")}
    for stream in said:
        (folder / stream).unlink()
    changed = (*changes(before, traces(**watched)), *spoilt)
    return Scored(told["status"], **said, seconds=seconds, left=tuple(told["left"]), changes=changed,
                  reports=out, memory=replays)  # fmt: skip


def _under_watch(command: Sequence[str], lab: Lab, folder: Path, seconds: int) -> dict[str, Any]:
    kept = ("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= {
        "HOME": str(lab.base.canary.parent),
        "TMPDIR": str(folder / "tmp"),
        "TRAINWRECK_REPLAYS": str(folder / "replays"),
        "COLUMNS": "100",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    words = [sys.executable, "-P", warden.__file__, str(seconds)]
    words += [str(folder / "stdout"), str(folder / "stderr"), *command]
    done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the warden of {folder.name} failed: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
