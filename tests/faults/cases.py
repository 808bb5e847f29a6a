"""Faults of machines and people: full disks, damaged files, two graders at once, clocks, killed processes."""

import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from helpers.watched import Watched

from faults.kills import kill_always, kill_once
from faults.lab import (
    RECIPE,
    Absent,
    Lab,
    Place,
    content,
    is_scratch,
    must,
    must_be_equal,
    must_refuse,
    stamps,
    start_grader,
    write_files,
)
from faults.mounts import mounted
from grader.course.decisions import decisions_path
from grader.session import lock_folder

Play = Callable[[Lab, Place], str]


@dataclass(frozen=True)
class Fault:
    """A fault of a machine or a person. `play` causes it and returns the result, or raises `NotHeld` or `Absent`.

    says: the fault and the required result. in_suite: whether the tests cause it, too.
    """

    id: str
    says: str
    play: Play
    in_suite: bool


FAULTS: list[Fault] = []


def fault(play: Play) -> Play:
    """Register a fault that `make faults` causes."""
    FAULTS.append(Fault(play.__name__, play.__doc__ or "", play, in_suite=False))
    return play


def quick_fault(play: Play) -> Play:
    """Register a fault that `make faults` and the tests cause."""
    FAULTS.append(Fault(play.__name__, play.__doc__ or "", play, in_suite=True))
    return play


_PAGE = 4096  # a file takes whole pages of a tmpfs
_NO_SPACE = ("No space left on device", "free some space")


def _room(files: dict[str, bytes]) -> int:
    return sum(-(-len(data) // _PAGE) * _PAGE for data in files.values())


@quick_fault
def disk_full_reports(lab: Lab, place: Place) -> str:
    """The disk of the reports fills up in the middle, or near the end: exit 2, the earlier reports do not change."""
    place.remember()
    need, sentence = _room(lab.reports), ""
    with mounted(place.folder / "disk", 4 * need) as disk:
        one, reports = replace(place, out=disk.folder / "reports"), disk.inside / "reports"
        write_files(reports, lab.before)
        for room in (need // 2, need - 2 * _PAGE):
            disk.fill(room)
            sentence = must_refuse(one.score(enter=disk.enter), *_NO_SPACE, one.out)
            disk.empty()
            must_be_equal(content(disk.inside), {f"reports/{name}": data for name, data in lab.before.items()})
        ended = one.score(enter=disk.enter)
        must(ended.status == 0, f"exit {ended.status} with room again: {ended.err}")
        must_be_equal(content(reports), lab.reports)
    return f"{sentence} With room again, all is right."


@fault
def disk_full_store(lab: Lab, place: Place) -> str:
    """The disk of the replay cache is full: exit 2, no entry is lost, and later the grader continues."""
    place.remember(without="bob")
    kept = content(place.store)
    with mounted(place.folder / "disk", 4 * _room(content(lab.store))) as disk:
        store = str(disk.folder / "replays")
        one = replace(place, store=disk.inside / "replays")
        write_files(one.store, kept)
        before = stamps(one.store)
        disk.fill(_PAGE)
        ended = place.score(enter=disk.enter, TRAINWRECK_REPLAYS=store)
        sentence = must_refuse(ended, *_NO_SPACE, store)
        disk.empty()
        must(stamps(one.store) == before, "an entry changed")
        must_be_equal(content(one.store), kept)
        place.must_be_right(place.score(enter=disk.enter, TRAINWRECK_REPLAYS=store))
        one.must_remember_all(before)
    return f"{sentence} With room again, it went on from there."


@fault
def disk_full_tmp(lab: Lab, place: Place) -> str:
    """The disk of TMPDIR is full: the same bytes."""
    place.remember(without="bob")
    with mounted(place.folder / "tmp", 64 * _PAGE) as disk:
        disk.fill(0)
        place.must_be_right(place.score(enter=disk.enter, TMPDIR=str(disk.folder)))
    return "all is right: nothing was to be kept there"


@quick_fault
def disk_full_tmp_trusted(lab: Lab, place: Place) -> str:
    """The disk of TMPDIR is full with --trust-submissions, which runs experiments there: exit 2."""
    with mounted(place.folder / "tmp", 64 * _PAGE) as disk:
        disk.fill(_PAGE)
        ended = place.score("--trust-submissions", enter=disk.enter, TMPDIR=str(disk.folder))
        disk.empty()
        left = content(disk.inside)
    # The warning comes before every other output.
    ended = replace(ended, err=ended.err[ended.err.find("Error: ") :])
    sentence = must_refuse(ended, *_NO_SPACE, place.folder / "tmp")
    must(not left and not content(place.out), f"left behind: {sorted(left)}")
    return sentence


@quick_fault
def read_only_reports(lab: Lab, place: Place) -> str:
    """The reports' folder cannot be written to: exit 2 before any replay."""
    place.remember(without="bob")
    before, one = content(place.store), replace(place, out=place.folder / "disk" / "reports")
    write_files(one.out, lab.before)
    with mounted(one.out.parent, None) as disk:
        sentence = must_refuse(one.score(enter=disk.enter), "no right to write to", "--out")
    must_be_equal(content(one.out), lab.before)
    must(content(place.store) == before, "something was replayed all the same")
    return sentence


@fault
def read_only_store(lab: Lab, place: Place) -> str:
    """The replay cache cannot be written to: the same bytes if it contains all replays, else exit 2."""
    place.remember()
    with mounted(place.store, None) as disk:
        place.must_be_right(place.score(enter=disk.enter))
    place.replay_of("bob").unlink()
    before = content(place.store)
    write_files(place.out, lab.before)
    with mounted(place.store, None) as disk:
        sentence = must_refuse(place.score(enter=disk.enter), "Read-only file system", place.store)
    must_be_equal(content(place.store), before)
    must_be_equal(content(place.out), lab.before)
    return sentence


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _write_another_schema(path: Path) -> None:
    body = b'{"status": "OK", "figures": []}'
    path.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


_DAMAGES: tuple[Callable[[Path], object], ...] = (
    lambda path: path.write_bytes(path.read_bytes()[:-100]),
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(bytes(path.stat().st_size)),
    _flip,
    _write_another_schema,
    lambda path: path.chmod(0),
)


def _without_privilege() -> tuple[str, ...]:
    """Return the beginning of a command that takes root's privilege to ignore the permissions of files."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        raise Absent("root reads every file, and setpriv is not installed")
    rights = "-dac_override,-dac_read_search"
    return ("setpriv", f"--inh-caps={rights}", f"--bounding-set={rights}", "--")


@fault
def damaged_store(lab: Lab, place: Place) -> str:
    """Replays are truncated, empty, zeros, other bytes, another version's, or unreadable: only these are made again."""
    place.remember()
    entries = sorted(place.store.glob("??/*.json"))
    for damages in (_DAMAGES[:3], _DAMAGES[3:]):
        before = stamps(place.store)
        for path, damage in zip(entries, damages, strict=False):
            damage(path)
        place.must_be_right(place.score(enter=_without_privilege()))
        damaged = {path.relative_to(place.store).as_posix() for path in entries[: len(damages)]}
        place.must_remember_all({name: stamp for name, stamp in before.items() if name not in damaged})
    return f"{len(_DAMAGES)} replays were made again and are whole, and the others stayed"


@quick_fault
def power_loss(lab: Lab, place: Place) -> str:
    """Reports and scores.json are empty or full of zeros after a power cut: exit 2, then all files are correct."""
    place.remember()
    write_files(place.out, lab.before)
    for index, path in enumerate(sorted(place.out.iterdir())):
        path.write_bytes(b"" if index % 2 else bytes(5000))
    ended = start_grader("export", "--format", "canvas", "--out", place.out).finish()
    sentence = must_refuse(ended, place.out / "scores.json", "score the class again")
    place.must_be_right(place.score())
    place.must_remember_all()
    return f"{sentence} Scored again, all is right."


@quick_fault
def own_files(lab: Lab, place: Place) -> str:
    """Exports among the reports and decisions next to them stay."""
    place.remember()
    kept = {"export/canvas/marks.csv": b"mine"}
    write_files(place.out, kept)
    decisions = decisions_path(place.out)
    decisions.write_bytes(b"# Mine.\n")
    for _ in range(2):
        ended = place.score()
        must(ended.status == 0, f"exit {ended.status}: {ended.err}")
        must_be_equal(content(place.out), {**lab.reports, **kept})
        must(decisions.read_bytes() == b"# Mine.\n", "the decisions are others now")
    return "the exports and the decisions are the same after two scorings"


@fault
def own_files_in_the_way(lab: Lab, place: Place) -> str:
    """Somebody's own files are in the folder of the reports: exit 2 with their name, and nothing is replaced."""
    place.remember()
    sentence = ""
    for name in ("index.html", f"bob_{RECIPE}.html", "scores.json", "notes.txt", ".hidden", "ada/photo.png"):
        write_files(place.out, {name: b"<p>mine</p>"})
        sentence = must_refuse(place.score(), name.partition("/")[0], place.out, "away")
        must_be_equal(content(place.out), {name: b"<p>mine</p>"})
        shutil.rmtree(place.out)
    place.must_be_right(place.score())
    return sentence


def _is_held(place: Place) -> bool:
    if not place.out.is_dir():
        return False
    with lock_folder(place.out) as free:
        return not free


@quick_fault
def two_on_reports(lab: Lab, place: Place) -> str:
    """Two graders use one folder of reports, and the first is killed: the second exits with 2, and no lock remains."""
    place.remember(without="bob")
    write_files(place.out, lab.before)
    first = place.start()
    must(first.wait_until(lambda: _is_held(place)), "the first did not hold its folder")
    sentence = must_refuse(place.score(), "Another grader", place.out, "--out")
    must(not first.has_ended(), "the first was through before the second could meet it")
    must_be_equal({name: data for name, data in content(place.out).items() if not is_scratch(name)}, lab.before)
    first.kill(everything=True)
    first.finish()
    must(not _is_held(place), "the folder of a killed grader is held")
    shutil.rmtree(place.store)
    place.remember()
    place.must_be_right(place.score())
    return f"{sentence} After the first was killed, the third was let in at once."


def _two_at_once(lab: Lab, place: Place, **variables: str) -> None:
    other = Place(lab, place.folder, place.folder / "other", place.store)
    running = [(one, one.start(enter=(), **variables)) for one in (place, other)]
    for one, grader in running:
        one.must_be_right(grader.finish())


@fault
def two_on_store(lab: Lab, place: Place) -> str:
    """Two graders use one replay cache: both write the same bytes."""
    place.remember(without="bob")
    before = stamps(place.store)
    _two_at_once(lab, place)
    place.must_remember_all(before)
    return "both are right, and so is the folder"


@fault
def old_memory(lab: Lab, place: Place) -> str:
    """Two graders use one cache, whose old replays are deleted: the same bytes, and needed replays are made again."""
    place.remember(without="bob")
    known = place.store / next(iter(stamps(place.store)))
    stranger = known.with_name(f"{known.name[:2]}{'0' * 62}.json")
    shutil.copyfile(known, stranger)
    for path in (known, stranger):
        os.utime(path, (0, 0))
    _two_at_once(lab, place)
    must(not stranger.exists(), "what nobody needed stayed")
    place.must_be_right(place.score())
    return "two graders at once are right, and so is the next; what nobody needed went"


# Python runs this before all other code.
_SITECUSTOMIZE = """
import random
import time

_real, _random = time.time_ns, random.Random(4)


def _jumping():
    return _real() + _random.choice((-20_000, -3, 0, 3, 40_000)) * 86_400 * 10**9


time.time_ns = _jumping
time.time = lambda: _jumping() / 1e9
"""
_PROOF = "import time; assert any(abs(time.time() - time.time()) > 80_000 for _ in range(50))"


@fault
def clock_jumps(lab: Lab, place: Place) -> str:
    """The clock jumps by days at every reading, and files have dates in 1970, 2100 and 2242: the same bytes."""
    place.remember(without="bob")
    write_files(place.out, lab.before)
    odd = {"PYTHONPATH": str(place.folder)}
    (place.folder / "sitecustomize.py").write_text(_SITECUSTOMIZE)
    proof = Watched((sys.executable, "-P", "-c", _PROOF), {**os.environ, **odd}).finish()
    must(proof.status == 0, f"the clock does not jump: {proof.err}")
    moments = (0, 1, 4_102_444_800, 2**33)  # 1970, 2100, 2242
    for index, path in enumerate(sorted((*place.store.rglob("*"), *place.out.iterdir()))):
        os.utime(path, (moments[index % 4], moments[index % 4]))
    place.must_be_right(place.score(enter=(), **odd))
    return "no time limit was passed, and all is right"


@fault
def replay_killed(lab: Lab, place: Place) -> str:
    """The process of a replay is killed once: the grader tries again, and gives the same bytes."""
    return kill_once(lambda grader: grader.run("replay.py"), place)


@fault
def worker_killed(lab: Lab, place: Place) -> str:
    """The worker that forks the runs is killed during a run: another worker makes the run."""
    return kill_once(Watched.worker, place, "warm")


@quick_fault
def forked_run_killed_always(lab: Lab, place: Place) -> str:
    """Every forked run is killed: not judged, no zero, the other submissions do not change."""
    return kill_always(lambda grader: grader.run("replay.py"), place, "warm")


@fault
def evaluator_killed_always(lab: Lab, place: Place) -> str:
    """The evaluator of the weights is killed every time: not judged, no zero, the other submissions do not change."""
    return kill_always(lambda grader: grader.run("evaluate.py"), place)
