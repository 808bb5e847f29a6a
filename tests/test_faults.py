"""Faults done to the real grader: the quick ones of `make faults`, SIGKILL at two moments, and that one is told."""

import dataclasses
import shutil
from pathlib import Path

import pytest
from faults import __main__ as program
from faults.__main__ import FAULTS
from faults.fault import Absent, Fault, NotHeld, content, is_scratch, stamps
from faults.kills import play_kills
from faults.lab import RECIPE, Lab, make_lab, must_be_equal, must_refuse
from faults.running import Ended, Grader, Stuck
from honest_class import HonestClass
from rich.console import Console
from sandbox_marks import needs_sandbox

from grader.replay.cache import Cache
from grader.replay.replay import Replay
from harness.files import scratch_path


@pytest.fixture(scope="module")
def lab(honest: HonestClass, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return make_lab(tmp_path_factory.mktemp("faults"), honest)


@needs_sandbox
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.in_suite], ids=lambda fault: fault.id)
def test_a_fault_loses_nothing_and_is_told(fault: Fault, lab: Lab) -> None:
    try:
        assert fault.play(lab, lab.place(fault.id))
    except Absent as reason:
        pytest.skip(str(reason))


@needs_sandbox
def test_a_killed_grader_goes_on_where_it_was(lab: Lab) -> None:
    seen = play_kills(lab, lab.place("killed"), kills=2, seed=1, from_nothing=False)
    assert seen.startswith("2 kills")


@needs_sandbox
def test_what_does_not_hold_is_found(lab: Lab) -> None:
    wrong = dataclasses.replace(lab, reports={**lab.reports, f"bob_{RECIPE}.html": b"another"})
    with pytest.raises(NotHeld, match=f"bob_{RECIPE}.html"):
        place = wrong.place("wrong")
        place.remember()
        place.must_be_right(place.score())
    place = wrong.place("wrong again")
    place.remember()
    before = stamps(place.store)
    entry = place.replay_of("bob")
    shutil.copyfile(entry, entry.with_name("copy"))
    entry.with_name("copy").replace(entry)
    found = stamps(place.store)
    assert before.keys() == found.keys()
    assert len(set(before.items()) - set(found.items())) == 1, "the same bytes, written anew"


def test_the_table_tells_what_held_and_what_did_not(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(lab: Lab, place: object) -> str:
        raise NotHeld("two files are gone")

    def absent(lab: Lab, place: object) -> str:
        raise Absent("no such machine")

    plays = {"good": lambda lab, place: "as it was", "bad": fails, "absent": absent}
    faults = [Fault(id, id, "nothing", play) for id, play in plays.items()]
    outcomes = [program._played(fault, lab, Console(stderr=True)) for fault in faults]
    assert [outcome.held for outcome in outcomes] == ["yes", "NO", "not tried"]
    program._show(outcomes, 1.0)
    shown = capsys.readouterr().out
    assert "3 faults: 1 held, 1 did not, 1 could not be tried here" in shown


def test_nothing_gets_away_from_its_keeper() -> None:
    grader = Grader(("sh", "-c", "setsid sleep 600 & exit 3"), {})
    with pytest.raises(Stuck, match="sleep 600"):
        grader.finish(1.0)
    assert Grader(("sh", "-c", "exit 3"), {}).finish() == Ended(3, "", "")
    assert Grader(("sh", "-c", "kill -9 $$"), {}).finish().status == 128 + 9


def test_half_files_and_wrong_refusals_are_seen(tmp_path: Path) -> None:
    Cache(tmp_path, Replay).put("ab" * 32, Replay(status="OK"))
    (name,) = stamps(tmp_path)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[:-1])
    with pytest.raises(NotHeld, match="half an entry"):
        stamps(tmp_path)
    assert is_scratch(scratch_path(tmp_path / name).name)
    assert not is_scratch(name)
    with pytest.raises(NotHeld, match="other files"):
        must_be_equal(content(tmp_path), {name: whole})
    assert must_refuse(Ended(2, "", "Error: no room at reports.\n"), "reports") == "no room at reports."
    for ended in (
        Ended(3, "", "Error: no room at reports.\n"),
        Ended(2, "", "Traceback\nError: no room at reports.\n"),
        Ended(2, "", "Error: no room.\n"),
        Ended(2, "", "Error: no\nroom at reports.\n"),
        Ended(2, "", "no room at reports\n"),
    ):
        with pytest.raises(NotHeld):
            must_refuse(ended, "reports")
