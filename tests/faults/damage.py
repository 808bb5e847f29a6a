"""Remembered replays and reports that were damaged: by a disk, a loss of power, another version, a person."""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from faults.fault import Absent, Fault, content, must, write_files
from faults.lab import RECIPE, Lab, Place, must_be_equal, must_refuse
from faults.running import run_grader
from grader.course.decisions import decisions_path

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
    whole, *others = sorted(place.store.glob("??/*.json"))
    for index, path in enumerate(others):
        _DAMAGES[index % len(_DAMAGES)](path)
    before = (whole.stat().st_ino, whole.stat().st_mtime_ns)
    place.must_be_right(place.score(enter=_without_privilege()))
    must_be_equal(content(place.store), content(lab.store))
    must(before == (whole.stat().st_ino, whole.stat().st_mtime_ns), "an undamaged replay was made again")
    return f"{len(others)} replays were made again and are whole, and the other stayed"


def _power_loss(lab: Lab, place: Place) -> str:
    """After a loss of power a file may be there without what was written to it, or with zeros in its place."""
    place.remember()
    place.have_earlier_reports()
    for index, path in enumerate(sorted(place.out.iterdir())):
        path.write_bytes(b"" if index % 2 else bytes(5000))
    for words in (("show", f"ada_{RECIPE}"), ("export", "--format", "csv")):
        ended = run_grader(*words, "--out", place.out)
        sentence = must_refuse(ended, place.out / "scores.json", "score the class again")
    place.must_be_right(place.score())
    must_be_equal(content(place.store), content(lab.store))
    return f"{sentence} Scored again, all is right."


_DAMAGED = (
    Fault("damaged_store", "all replays but one: cut off, empty, zeros, other bytes, another version's, unreadable",
        "they are made again, the other not", _damaged_entries, in_suite=False),
    Fault("power_loss", "reports and scores.json empty or full of zeros", "exit 2, then all is right", _power_loss),
)  # fmt: skip


_KEPT = {"export/canvas/marks.csv": b"mine"}
_DECISIONS = b"# Mine.\n"
_IN_THE_WAY = ("index.html", f"bob_{RECIPE}.html", "scores.json", "notes.txt", ".hidden", "ada/photo.png")


def _stays(lab: Lab, place: Place) -> str:
    place.remember()
    write_files(place.out, _KEPT)
    decisions = decisions_path(place.out)
    decisions.write_bytes(_DECISIONS)
    for _ in range(2):
        ended = place.score()
        must(ended.status == 0, f"exit {ended.status}: {ended.err}")
        must_be_equal(content(place.out), {**lab.reports, **_KEPT})
        must(decisions.read_bytes() == _DECISIONS, "the decisions are others now")
    return "the exports and the decisions are the same after two scorings"


def _in_the_way(lab: Lab, place: Place) -> str:
    place.remember()
    sentence = ""
    for name in _IN_THE_WAY:
        write_files(place.out, {name: b"<p>mine</p>"})
        sentence = must_refuse(place.score(), name.partition("/")[0], place.out, "move it away")
        must_be_equal(content(place.out), {name: b"<p>mine</p>"})
        shutil.rmtree(place.out)
    place.must_be_right(place.score())
    return sentence


_OWN_FILES = (
    Fault("own_files", "exports among the reports, decisions beside them", "they stay", _stays),
    Fault("own_files_in_the_way", "somebody's own files in the folder of the reports",
        "exit 2 that names it, nothing replaced", _in_the_way, in_suite=False),
)  # fmt: skip

FAULTS = (*_DAMAGED, *_OWN_FILES)
