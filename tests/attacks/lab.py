"""A class of honest submissions, and classes with attacks in addition, each scored by the real `grader score`."""

import json
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from helpers.honest_class import STUDENTS, HonestClass, make_submissions
from helpers.watched import Ended, Stuck, Watched

from attacks import score_deriving as deriving
from attacks import score_scripts as scripts
from attacks.attack import BREACHED, RECIPE, Attack, Base
from grader.course.log import log_path
from grader.replay.replayer import Engine
from harness.recipes.recipe import ROOT

# Every class here takes much less time, even on a busy machine. A grader that takes longer hangs.
CLASS_SECONDS, SLOW_SECONDS = 1200.0, 3600.0
# Other programs write to these folders, too. So an attack that reaches one leaves a file with the mark in its name.
_SHARED = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), ROOT)


@dataclass(frozen=True)
class Scored:
    """One class after `grader score`: the exit status, the files, and other changes on the machine."""

    ended: Ended
    seconds: float
    changes: tuple[str, ...]
    reports: Path
    memory: Path

    def rows(self) -> dict[str, dict[str, Any]]:
        """Return the rows of scores.json by submission; {} if there is no scores.json."""
        path = self.reports / "scores.json"
        scores = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"submissions": []}
        return {row["submission"]: row for row in scores["submissions"]}


@dataclass(frozen=True)
class Lab:
    """Honest tarballs by file name, the base of all attacks, and the scored class without any attack."""

    folder: Path
    base: Base
    honest: Mapping[str, bytes]
    alone: Scored

    @property
    def baselines(self) -> dict[str, dict[str, Any]]:
        """The rows whose points no attack may exceed, by the kind of submission."""
        rows = self.alone.rows()
        runs = {what: rows[f"{student}_{RECIPE}"] for what, student in STUDENTS.items()}
        further = [(deriving.EXERCISE, deriving.STUDENTS), (scripts.SCRIPT_RECIPE, scripts.STUDENTS)]
        named = {what: f"{who}_{exercise}" for exercise, students in further for what, who in students.items()}
        return runs | {what: rows[name] for what, name in named.items() if name in rows}


def make_lab(
    folder: Path,
    *,
    others: Sequence[str] = (),
    jobs: int = 2,
    known: HonestClass | None = None,
    engine: Engine = "warm",
    with_script: bool = False,
) -> Lab:
    """Make the honest submissions and score them.

    These are the submissions for the recipe `huge_lr`, and one correct fix of each recipe in `others`. known: honest
    submissions and replays from an earlier call. with_script: make the submission for attacks with scripts, too.
    """
    canary = folder / "home" / "canary.txt"
    canary.parent.mkdir(parents=True)
    secret = f"canary-{os.urandom(12).hex()}"
    canary.write_text(secret)
    if known is None:
        honest = make_submissions(folder / "template", folder / "work", others=others, jobs=jobs)
    else:
        honest = known.tarballs
    memory = None if known is None else known.remember(folder / "known")
    honest = {**honest, **deriving.honest_tarballs()}
    bases = {what: honest[f"{student}_{RECIPE}.tar.gz"] for what, student in STUDENTS.items()}
    if with_script:
        own = scripts.honest_tarballs(folder / "script")
        honest |= own
        bases["script"] = next(iter(own.values()))
    base = Base(**bases, canary=canary, secret=secret, submissions=folder / "alone" / "submissions")
    empty = Lab(folder, base, honest, Scored(Ended(0, "", ""), 0.0, (), folder, folder))
    alone = score_class(empty, "alone", (), memory=memory, jobs=jobs, engine=engine)
    if alone.ended.status != 0:
        raise RuntimeError(f"the honest class was not graded: {alone.ended.err}")
    return replace(empty, alone=alone)


def score_class(
    lab: Lab, name: str, attacks: Sequence[Attack], *, memory: Path | None, jobs: int, engine: Engine = "warm"
) -> Scored:
    """Score a class in `lab.folder/name`: the honest submissions and these attacks.

    memory: a folder with the cached replays of another class, which is copied (None: replay everything).
    """
    folder = lab.folder / name
    submissions, out, replays = folder / "submissions", folder / "reports", folder / "replays"
    submissions.mkdir(parents=True)
    (folder / "tmp").mkdir()
    if memory is not None:
        shutil.copytree(memory, replays)
    for file, data in lab.honest.items():
        (submissions / file).write_bytes(data)
        os.utime(submissions / file, (0, 0))  # a page shows this time
    base = replace(lab.base, submissions=submissions)
    for attack in attacks:
        attack.place(submissions / attack.tarball, attack.build(base))
    watched = (folder, lab.base.canary.parent)
    before, kept = _traces(watched, (out, replays, log_path(out))), _traces([replays])
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV") if name in os.environ}
    environment |= {
        "HOME": str(lab.base.canary.parent),
        "TMPDIR": str(folder / "tmp"),
        "TRAINWRECK_REPLAYS": str(replays),
        "COLUMNS": "100",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    words = (sys.executable, "-P", "-m", "grader", "score", submissions, "--out", out, "--jobs", str(jobs))
    seconds = SLOW_SECONDS if any(attack.slow for attack in attacks) else CLASS_SECONDS
    start = time.monotonic()
    grader = Watched((*words, "--sandbox", engine), environment, folder)
    try:
        ended, stuck = grader.finish(seconds, gone=3.0), []
    except Stuck as error:
        ended, stuck = Ended(-1, "", ""), [str(error)]
    seconds = time.monotonic() - start
    # New replays may appear in the cache. Existing replays must not change.
    spoilt = [line for line in _changes(kept, _traces([replays])) if not line.startswith("created")]
    changes = (*stuck, *_changes(before, _traces(watched, (out, replays, log_path(out)))), *spoilt)
    return Scored(ended, seconds, changes, reports=out, memory=replays)


def _traces(folders: Iterable[Path], apart_from: Iterable[Path] = ()) -> dict[str, object]:
    """Return the files below the folders with kind, size and time, and the shared memory of the machine."""
    skipped = {str(path) for path in apart_from}
    found: dict[str, object] = {}
    for folder in folders:
        for place, names, files in os.walk(folder):
            names[:] = [name for name in names if str(Path(place, name)) not in skipped]
            for name in (*names, *files):
                if str(Path(place, name)) in skipped:
                    continue
                about = Path(place, name).lstat()
                # Ignore a folder's time, because every temporary file in the folder changes it.
                times = () if stat.S_ISDIR(about.st_mode) else (about.st_size, about.st_mtime_ns)
                found[str(Path(place, name))] = (about.st_mode, *times)
    for shared in _SHARED:
        found.update((str(path), "marked") for path in shared.glob(f"*{BREACHED}*"))
    for kind in ("shm", "sem", "msg"):
        path = Path("/proc/sysvipc", kind)
        heading, *lines = path.read_text().splitlines() if path.exists() else [""]
        for line in lines:
            row = dict(zip(heading.split(), line.split(), strict=False))
            # Running programs have shared memory, too.
            if "cpid" not in row or not Path("/proc", row["cpid"]).exists():
                found[f"System V {kind} {row.get(f'{kind}id')}"] = row.get("key")
    return found


def _changes(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """Return a short description of each entry that appeared, changed or disappeared."""
    found = [f"created {path}" for path in after.keys() - before.keys()]
    found += [f"removed {path}" for path in before.keys() - after.keys()]
    return sorted(found + [f"changed {path}" for path in before.keys() & after.keys() if before[path] != after[path]])
