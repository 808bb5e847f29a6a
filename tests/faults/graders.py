"""Two graders at once: on one folder of reports, on one folder of remembered replays."""

import os
import shutil

from faults.fault import Fault, content, is_scratch, must, stamps
from faults.lab import Lab, Place, must_be_equal, must_refuse
from faults.running import Grader, grader_command
from grader.session import locked


def _is_held(place: Place) -> bool:
    if not place.out.is_dir():
        return False
    with locked(place.out) as free:
        return not free


def _one_out(lab: Lab, place: Place) -> str:
    place.remember(without="bob")
    place.have_earlier_reports()
    first = place.start()
    must(first.wait_until(lambda: _is_held(place)), "the first did not hold its folder")
    sentence = must_refuse(place.score(), "Another grader", place.out, "--out")
    must(not first.has_ended(), "the first was through before the second could meet it")
    finished = {name: data for name, data in content(place.out).items() if not is_scratch(name)}
    must_be_equal(finished, lab.before)
    first.kill(everything=True)
    first.finish()
    must(not _is_held(place), "the folder of a killed grader is held")
    shutil.rmtree(place.store)
    place.remember()
    place.must_be_right(place.score())
    return f"{sentence} After the first was killed, the third was let in at once."


def _one_store(lab: Lab, place: Place) -> str:
    place.remember(without="bob")
    before = stamps(place.store)
    other = Place(lab, place.folder, place.folder / "other", place.store)
    running = [(one, one.start()) for one in (place, other)]
    for one, grader in running:
        one.must_be_right(grader.finish())
    found = stamps(place.store)
    must(before.items() <= found.items(), "an entry that was there was made again")
    must_be_equal(content(place.store), content(lab.store))
    return "both are right, and so is the folder"


_PAIRS = (
    Fault("two_on_reports", "two graders on one folder of reports, the first killed after that",
        "exit 2 of the second; no stale lock", _one_out),
    Fault("two_on_store", "two graders on one folder of remembered replays", "both the same bytes", _one_store,
        in_suite=False),
)  # fmt: skip


def _no_room(lab: Lab, place: Place) -> str:
    place.remember(without="bob")
    known = place.store / next(iter(stamps(place.store)))
    stranger = known.with_name(f"{known.name[:2]}{'0' * 62}.json")
    shutil.copyfile(known, stranger)
    os.utime(known, (0, 0))  # older than the stranger, but needed
    other = Place(lab, place.folder, place.folder / "other", place.store)
    running = [(one, one.start(TRAINWRECK_REPLAYS_LIMIT="0MB")) for one in (place, other)]
    for one, grader in running:
        one.must_be_right(grader.finish())
    must(not stranger.exists(), "what nobody needed stayed")
    place.must_be_right(place.score(TRAINWRECK_REPLAYS_LIMIT="0MB"))
    return "two graders at once are right, and so is the next; what nobody needed went"


_LIMITS = (
    Fault("no_room_to_remember", "two graders on one memory of at most no bytes",
        "the same bytes, and what a run has used is there for the next", _no_room, in_suite=False),
)  # fmt: skip


# Python runs it before anything else.
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


def _jumping_clock(lab: Lab, place: Place) -> str:
    place.remember(without="bob")
    place.have_earlier_reports()
    odd = place.folder / "odd"
    odd.mkdir()
    (odd / "sitecustomize.py").write_text(_SITECUSTOMIZE)
    proof = Grader((grader_command()[0], "-P", "-c", _PROOF), {"PYTHONPATH": str(odd)}).finish()
    must(proof.status == 0, f"the clock does not jump: {proof.err}")
    moments = (0, 1, 4_102_444_800, 2**33)  # 1970, 2100, 2242
    for index, path in enumerate(sorted((*place.store.rglob("*"), *place.out.iterdir()))):
        os.utime(path, (moments[index % 4], moments[index % 4]))
    place.must_be_right(place.score(PYTHONPATH=str(odd)))
    return "no time limit was passed, and all is right"


_CLOCKS = (
    Fault("clock_jumps", "the clock jumps by days at every look, and files are of 1970, 2100 and 2242",
        "the same bytes, no wrong time limit", _jumping_clock, in_suite=False),
)  # fmt: skip

FAULTS = (*_PAIRS, *_LIMITS, *_CLOCKS)
