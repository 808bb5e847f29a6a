"""Disks that are full, and folders that cannot be written to."""

from dataclasses import replace
from pathlib import Path

from faults.fault import Fault, content, must, stamps, write_files
from faults.lab import Lab, Place, must_be_equal, must_refuse
from faults.mounts import Mounted
from faults.running import Ended

_PAGE = 4096  # what a file takes of a tmpfs is whole pages
_NO_SPACE = ("No space left on device", "free some space")


def _room(files: dict[str, bytes]) -> int:
    return sum(-(-len(data) // _PAGE) * _PAGE for data in files.values())


def _reports_on(disk: Mounted, place: Place) -> tuple[Place, Path]:
    """Return the place with its reports on the disk, and where this process finds them."""
    return replace(place, out=disk.folder / "reports"), disk.inside / "reports"


def _full_reports(lab: Lab, place: Place) -> str:
    place.remember()
    need = _room(lab.reports)
    with Mounted(place.folder / "disk", 4 * need) as disk:
        one, reports = _reports_on(disk, place)
        write_files(reports, lab.before)
        disk.fill(need // 2)  # half of the reports would fit
        sentence = must_refuse(one.score(enter=disk.enter), *_NO_SPACE, one.out)
        disk.empty()
        must_be_equal(content(reports), lab.before)
        ended = one.score(enter=disk.enter)
        must(ended.status == 0, f"exit {ended.status} with room again: {ended.err}")
        must_be_equal(content(reports), lab.reports)
    return f"{sentence} The earlier reports were as they were; with room again, all is right."


def _full_store(lab: Lab, place: Place) -> str:
    place.remember(without="bob")
    kept = content(place.store)
    with Mounted(place.folder / "disk", 4 * _room(content(lab.store))) as disk:
        store = place.folder / "disk" / "replays"
        write_files(disk.inside / "replays", kept)
        before = stamps(disk.inside / "replays")
        disk.fill(_PAGE)
        ended = place.score(enter=disk.enter, TRAINWRECK_REPLAYS=str(store))
        sentence = must_refuse(ended, *_NO_SPACE, store)
        disk.empty()
        must(stamps(disk.inside / "replays") == before, "an entry changed")
        must_be_equal(content(disk.inside / "replays"), kept)
        place.must_be_right(place.score(enter=disk.enter, TRAINWRECK_REPLAYS=str(store)))
        found = stamps(disk.inside / "replays")
        must(before.items() <= found.items(), "an entry that was there was made again")
        must_be_equal(content(disk.inside / "replays"), content(lab.store))
    return f"{sentence} With room again, it went on from there."


def _full_temporary(lab: Lab, place: Place) -> str:
    place.remember(without="bob")
    with Mounted(place.folder / "tmp", 64 * _PAGE) as disk:
        disk.fill(0)
        place.must_be_right(place.score(enter=disk.enter, TMPDIR=str(place.folder / "tmp")))
    return "all is right: nothing was to be kept there"


def _full_temporary_without_sandbox(lab: Lab, place: Place) -> str:
    with Mounted(place.folder / "tmp", 64 * _PAGE) as disk:
        disk.fill(_PAGE)
        ended = place.score("--trust-submissions", enter=disk.enter, TMPDIR=str(place.folder / "tmp"))
        disk.empty()
        left = content(disk.inside)
    sentence = must_refuse(_without_warning(ended), *_NO_SPACE, place.folder / "tmp")
    must(not left and not content(place.out), f"left behind: {sorted(left)}")
    return sentence


def _without_warning(ended: Ended) -> Ended:
    """Take the warning away that stands before every other word without a sandbox."""
    return replace(ended, err=ended.err[ended.err.find("Error: ") :])


def _read_only_reports(lab: Lab, place: Place) -> str:
    place.remember(without="bob")
    before = content(place.store)
    write_files(place.folder / "disk" / "reports", lab.before)
    with Mounted(place.folder / "disk", None) as disk:
        one, reports = _reports_on(disk, place)
        sentence = must_refuse(one.score(enter=disk.enter), "cannot be written to", "--out")
        must_be_equal(content(reports), lab.before)
    must(content(place.store) == before, "something was replayed all the same")
    return f"{sentence} It said so before any replay."


def _read_only_store(lab: Lab, place: Place) -> str:
    place.remember()
    with Mounted(place.store, None) as disk:
        place.must_be_right(place.score(enter=disk.enter))
    place.replay_of("bob").unlink()
    before = content(place.store)
    place.have_earlier_reports()
    with Mounted(place.store, None) as disk:
        sentence = must_refuse(place.score(enter=disk.enter), "Read-only file system", place.store)
    must_be_equal(content(place.store), before)
    must_be_equal(content(place.out), lab.before)
    return f"With all remembered, all is right; else: {sentence}"


def _full_stage(lab: Lab, place: Place) -> str:
    """Try every amount of room, page by page: where exactly it runs out makes no difference."""
    place.remember()
    need = _room(lab.reports)
    refused = 0
    with Mounted(place.folder / "disk", 4 * need) as disk:
        one, reports = _reports_on(disk, place)
        write_files(reports, lab.before)
        for room in range(0, need, max(_PAGE, need // 16)):
            disk.fill(room)
            must_refuse(one.score(enter=disk.enter), *_NO_SPACE)
            disk.empty()
            refused += 1
            must_be_equal(
                content(disk.inside), {f"reports/{name}": data for name, data in lab.before.items()}
            )
    return f"{refused} amounts of room too small: each refused, the earlier reports as they were"


FAULTS = (
    Fault("disk_full_reports", "the disk of the reports is full", "exit 2, the earlier reports untouched",
        _full_reports),
    Fault("disk_full_by_pages", "it fills up at any other byte", "the same", _full_stage, in_suite=False),
    Fault("disk_full_store", "the disk of the remembered replays is full",
        "exit 2, no entry lost, goes on later", _full_store, in_suite=False),
    Fault("disk_full_tmp", "the disk of TMPDIR is full", "the same bytes", _full_temporary, in_suite=False),
    Fault("disk_full_tmp_trusted", "the same with --trust-submissions, which works there", "exit 2",
        _full_temporary_without_sandbox),
    Fault("read_only_reports", "the reports' folder cannot be written to", "exit 2 before any replay",
        _read_only_reports),
    Fault("read_only_store", "the remembered replays cannot be written to",
        "the same bytes where all is there, else exit 2", _read_only_store, in_suite=False),
)  # fmt: skip
