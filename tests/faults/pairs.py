"""Two graders at once: on one folder of reports, on one folder of remembered replays."""

import shutil

from faults.fault import Fault
from faults.files import content, is_scratch, stamps
from faults.held import must
from faults.lab import Lab, Place, must_be_equal, must_refuse
from grader.replay.folder_lock import locked


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


FAULTS = (
    Fault(
        "two_on_reports", "two graders on one folder of reports, the first killed after that",
        "exit 2 of the second; no stale lock", _one_out,
    ),
    Fault("two_on_store", "two graders on one folder of remembered replays", "both the same bytes", _one_store,
        in_suite=False,
    ),
)  # fmt: skip
