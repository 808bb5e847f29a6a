"""A memory that has no room for what a class needs."""

import os
import shutil

from faults.fault import Fault
from faults.files import stamps
from faults.held import must
from faults.lab import Lab, Place


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


FAULTS = (
    Fault(
        "no_room_to_remember", "two graders on one memory of at most no bytes",
        "the same bytes, and what a run has used is there for the next", _no_room,
        in_suite=False,
    ),
)  # fmt: skip
