"""Faults with the real grader: the fast ones of `make faults`, SIGKILL at two moments, and wrong results to notice."""

import dataclasses
import os

import pytest
from faults.__main__ import outcome
from faults.cases import FAULTS, Fault
from faults.kills import play_kills
from faults.lab import RECIPE, Absent, Lab, NotHeld, make_lab, must_refuse, stamps
from helpers.honest_class import HonestClass
from helpers.sandbox_marks import needs_sandbox
from helpers.watched import Ended, Stuck, Watched


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
    assert play_kills(lab, lab.place("killed"), kills=2, seed=1, from_nothing=False).startswith("2 kills")


@needs_sandbox
def test_what_does_not_hold_is_noticed(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = dataclasses.replace(lab, reports={**lab.reports, f"bob_{RECIPE}.html": b"another"})
    fault = next(fault for fault in FAULTS if fault.id == "power_loss")
    assert outcome(fault, dataclasses.replace(wrong, folder=lab.folder / "undisturbed")) == "FAILED"
    assert f"other files than expected: bob_{RECIPE}.html" in capsys.readouterr().out
    place = lab.place("half")
    place.remember()
    entry = place.replay_of("bob")
    entry.write_bytes(entry.read_bytes()[:-1])
    with pytest.raises(NotHeld, match="half an entry"):
        stamps(place.store)


def test_nothing_gets_away_from_the_watch() -> None:
    grader = Watched(("sh", "-c", "setsid sleep 600 & exit 3"), os.environ)
    with pytest.raises(Stuck, match="sleep 600"):
        grader.finish(gone=1.0)
    assert Watched(("sh", "-c", "exit 3"), os.environ).finish() == Ended(3, "", "")
    assert Watched(("sh", "-c", "kill -9 $$"), os.environ).finish().status == 128 + 9


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (3, "Error: no room at reports.\n"),
        (2, "Traceback\nError: no room at reports.\n"),
        (2, "Error: no room.\n"),
        (2, "no room at reports\n"),
    ],
)
def test_a_wrong_refusal_is_noticed(status: int, said: str) -> None:
    assert must_refuse(Ended(2, "", "Error: no room at reports.\n"), "reports") == "no room at reports."
    with pytest.raises(NotHeld):
        must_refuse(Ended(status, "", said), "reports")
