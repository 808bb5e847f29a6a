"""Remembered replays and reports that were damaged: by a disk, a loss of power, another version, a person."""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from faults.fault import Fault
from faults.files import content, stamps
from faults.held import Absent, must
from faults.lab import RECIPE, Lab, Place, must_be_equal, must_refuse
from faults.running import run_grader

Damage = Callable[[Path], object]


def _flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _other_schema(path: Path) -> None:
    """What another version may have written: whole, and of another shape."""
    body = b'{"status": "OK", "figures": []}'
    path.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


_DAMAGES: tuple[Damage, ...] = (
    lambda path: path.write_bytes(path.read_bytes()[:-100]),
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(bytes(path.stat().st_size)),
    _flipped,
    _other_schema,
    lambda path: path.chmod(0),
)


def _entries(store: Path) -> list[Path]:
    return [store / name for name in stamps(store)]


def _without_privilege() -> tuple[str, ...]:
    """Return the beginning of a command that makes root read only what it may read by the files' own modes."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        raise Absent("root reads every file, and setpriv is not installed")
    rights = "-dac_override,-dac_read_search"
    return ("setpriv", f"--inh-caps={rights}", f"--bounding-set={rights}", "--")


def _damaged_entries(lab: Lab, place: Place) -> str:
    place.remember()
    replays = _entries(place.store)
    for index, path in enumerate(replays):
        _DAMAGES[index % len(_DAMAGES)](path)
    place.must_be_right(place.score(enter=_without_privilege()))
    must_be_equal(content(place.store), content(lab.store))
    return f"{len(replays)} replays were made again, and are whole"


def _one_damaged_entry(lab: Lab, place: Place) -> str:
    """One replay; the others, which are whole, must stay."""
    place.remember()
    _flipped(place.replay_of("bob"))
    before = stamps_of_others(place)
    place.must_be_right(place.score(enter=_without_privilege()))
    must_be_equal(content(place.store), content(lab.store))
    must(before == stamps_of_others(place), "a replay that was whole was made again")
    return "one replay was made again, and is whole"


def stamps_of_others(place: Place) -> dict[Path, tuple[int, int]]:
    """Return which files the replays are, all but bob's."""
    others = set(place.store.glob("??/*.json")) - {place.replay_of("bob")}
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in others}


def _folder_in_place(lab: Lab, place: Place) -> str:
    place.remember(without="bob")
    place.have_earlier_reports()
    entry = place.replay_of("bob")
    (entry / "somebody").mkdir(parents=True)
    before = content(place.store)
    sentence = must_refuse(place.score(), "Is a directory", entry, "move")
    must_be_equal(content(place.store), before)
    must_be_equal(content(place.out), lab.before)
    shutil.rmtree(entry)
    place.must_be_right(place.score())
    return f"{sentence} When it was moved away, all was right."


def _power_loss(lab: Lab, place: Place) -> str:
    """After a loss of power a file may be there without what was written to it, or with zeros in its place."""
    place.remember()
    place.have_earlier_reports()
    for index, path in enumerate(sorted(place.out.iterdir())):
        path.write_bytes(b"" if index % 2 else bytes(5000))
    for words in (("show", f"ada_{RECIPE}"), ("export", "--format", "csv")):
        ended = run_grader(*words, "--out", place.out)
        sentence = must_refuse(ended, place.out / "scores.json", "score the class again")
    # Nobody can tell any more whose page this was.
    lost = place.out / f"zed_{RECIPE}.html"
    ended = place.score()
    lost.unlink()
    place.must_be_right(ended)
    must_be_equal(content(place.store), content(lab.store))
    return f"{sentence} Scored again, all is right."


FAULTS = (
    Fault(
        "damaged_entry", "a remembered replay and all scores: other bytes, another version's, unreadable",
        "they are made again, the others not", _one_damaged_entry,
        in_suite=False,
    ),
    Fault(
        "damaged_store", "all that is remembered: cut off, empty, zeros, other bytes, another version's, unreadable",
        "all is made again", _damaged_entries, in_suite=False,
    ),
    Fault(
        "folder_for_entry", "a folder where a replay is to be remembered", "exit 2 that names it, nothing lost",
        _folder_in_place, in_suite=False,
    ),
    Fault(
        "power_loss", "reports, scores.json and scores without a byte, or full of zeros", "exit 2, then all is right",
        _power_loss,
    ),
)  # fmt: skip
