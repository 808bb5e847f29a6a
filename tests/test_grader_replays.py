"""The replays of a class that are made, shared and cached. A substitute for the sandbox makes them here."""

import errno
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from grader.progress import ProgressBar
from grader.replay.replay import Replay
from grader.replay.replayer import Replayer, Sandbox
from grader.replay.replays import Made, Replays, Waiting, local_executor
from grader.replay.request import RUN_LIMITS, Request, in_time, trusted_requests
from grader.sandbox import RunStatus, SandboxCommand, SandboxResult, StopSignal
from grader.syntax.program import tree_digest
from harness.errors import UserError
from harness.recipes.catalogue import load_recipe
from harness.run import provenance
from harness.run.provenance import harness_hash
from harness.run.settings import RunSettings

RECIPE = load_recipe("huge_lr")
SETTINGS = RunSettings(seed=42, dataset="digits")
SOUND = "x = 1\n"
FAILING = "\n\nraise ValueError\n"
FAILING_LOWER = "# a remark\n\n\n\nraise ValueError\n"


class Stand(Replayer):
    """Reports the line in which a text raises an error, and counts the requests."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def stop(self) -> None:
        """Do nothing, because this replayer needs no time."""

    def make(self, request: Request) -> Replay:
        self.asked.append(request.source)
        if request.settings.dataset == "mnist":
            raise UserError("mnist is not here")
        if "full" in request.source:
            raise OSError(errno.ENOSPC, "No space left on device")
        if "killed" in request.source:
            return Replay(status="SG", message="it was killed by signal 9")
        lines = request.source.split("\n")
        failing = [number for number, line in enumerate(lines, start=1) if line.startswith("raise")]
        if failing:
            return Replay(status="RE", message=f"line {failing[0]}")
        return Replay(status="OK", log_sha256=request.source.strip())


def request(source: str, dataset: str = "digits") -> Request:
    settings = RunSettings(seed=42, dataset=dataset)
    return Request(RECIPE, settings, source, tree_digest(source), trusted=False)


def replayed(folder: Path, *sources: str, jobs: int = 1) -> tuple[list[str], dict[str, Replay]]:
    """Return the sources in the order of their replays, and the replay of each source."""
    stand = Stand()
    replays = Replays(local_executor(stand, jobs=jobs), folder)
    replays.make("replays", [request(source) for source in sources], ProgressBar())
    return stand.asked, {source: replays.of(request(source)) for source in sources}


def test_one_program_is_replayed_once_however_it_looks(tmp_path: Path) -> None:
    spaced = "x  =  1  # one\n"
    asked, found = replayed(tmp_path, SOUND, spaced, SOUND)
    assert asked == [SOUND]
    assert found[SOUND] is found[spaced]
    asked, found = replayed(tmp_path, spaced)
    assert asked == []
    assert found[spaced].status == "OK"


def test_each_text_of_a_failing_program_is_told_its_own_line(tmp_path: Path) -> None:
    for folder, sources in ((tmp_path / "1", (FAILING, FAILING_LOWER)), (tmp_path / "2", (FAILING_LOWER, FAILING))):
        asked, found = replayed(folder, *sources, jobs=2)
        assert sorted(asked) == sorted(sources)
        assert found[FAILING].message == "line 3"
        assert found[FAILING_LOWER].message == "line 5"
        assert replayed(folder, *sources)[0] == []


def test_a_fault_of_ours_is_not_remembered(tmp_path: Path) -> None:
    for _ in range(2):
        stand = Stand()
        replays = Replays(local_executor(stand, jobs=1), tmp_path)
        asked = request(SOUND, "mnist")
        replays.make("replays", [asked, asked], ProgressBar())
        assert stand.asked == [SOUND]
        assert replays.of(asked) == Replay(status="XX", message="mnist is not here")


def test_a_signal_that_a_plain_experiment_cannot_raise_is_the_machines(tmp_path: Path) -> None:
    plain, odd = "killed = 1\n", "import os\n\nkilled = os\n"
    for _ in range(2):  # the result is not cached
        asked, found = replayed(tmp_path, plain, odd)
        assert plain in asked
        assert found[plain].status == "XX"
        assert "twice" in found[plain].message
        assert found[odd].status == "SG"


class LastFirst:
    """An executor that finishes the last submitted request first."""

    most = 3

    def __init__(self) -> None:
        self.submitted: list[str] = []
        self.closed = False
        self._open: list[Request] = []

    def submit(self, request: Request) -> None:
        self.submitted.append(request.source)
        self._open.append(request)

    def wait_for_one(self) -> Made:
        return self._open.pop(), Replay(status="OK")

    def close(self) -> None:
        self.closed = True


def test_what_waits_goes_on_as_soon_as_its_own_replays_are_made(tmp_path: Path) -> None:
    one, two, three = "x = 1", "x = 2", "x = 3"
    needs = {"first": [one, two], "second": [three], "third": [], "fourth": [two]}
    executor = LastFirst()
    replays = Replays(lambda: executor, tmp_path)

    def attempt(item: str) -> str | Waiting[str]:
        missing = [asked for asked in map(request, needs[item]) if not replays.has(asked)]
        return Waiting(item, missing) if missing else item

    assert list(replays.as_ready(needs, attempt)) == ["second", "third", "fourth", "first"]
    assert executor.submitted == [one, two, three]
    assert executor.closed


def test_who_takes_no_more_stops_what_is_being_made(tmp_path: Path) -> None:
    executor = LastFirst()
    replays = Replays(lambda: executor, tmp_path)

    def attempt(item: str) -> str | Waiting[str]:
        return Waiting(item, [request(SOUND)]) if item == "waits" else item

    found = replays.as_ready(["sound", "waits"], attempt)
    assert next(found) == "sound"
    assert not executor.closed
    found.close()
    assert executor.closed


def ended(status: RunStatus, seconds: float) -> tuple[list[float], Sandbox]:
    """Return a sandbox in which every run ends in this way, and the list of seconds for each run."""
    given: list[float] = []

    def run(command: SandboxCommand, stop: StopSignal | None) -> SandboxResult:
        given.append(command.limits.seconds)
        return SandboxResult(status, seconds=seconds)

    return given, run


LONG = replace(SETTINGS, epochs=1000)


@pytest.mark.parametrize(("status", "trusted", "settings", "remembered"), [
    # A student's code under any settings; our code under a student's settings, and under the recipe's own settings.
    ("TO", False, SETTINGS, True), ("ML", False, SETTINGS, True), ("OL", False, LONG, True),
    ("TO", True, LONG, True), ("ML", True, LONG, True), ("TO", True, SETTINGS, False),
    # The machine was too busy.
    ("XX", False, SETTINGS, False), ("XX", True, LONG, False),
])  # fmt: skip
def test_what_exceeds_a_limit_is_remembered_unless_the_machine_is_to_blame(
    status: RunStatus, trusted: bool, settings: RunSettings, remembered: bool, tmp_path: Path
) -> None:
    asked = Request(RECIPE, settings, SOUND, tree_digest(SOUND), trusted)
    for attempt in range(2):
        given, sandbox = ended(status, 200)
        replays = Replays(local_executor(Replayer(sandbox, tmp_path), jobs=1), tmp_path)
        replays.make("replays", [asked], ProgressBar())
        assert len(given) == (0 if attempt and remembered else 1)
        assert replays.of(asked).status == ("XX" if trusted else status)


def test_all_runs_of_a_submission_share_its_time(tmp_path: Path) -> None:
    given, sandbox = ended("XX", 50)
    made = Replayer(sandbox, tmp_path).make(replace(request(SOUND), seconds=90))
    assert (given, made.seconds) == ([90, 40], 100)
    broken, reference = trusted_requests(RECIPE, LONG)
    assert broken.seconds == reference.seconds == RUN_LIMITS.seconds / 3

    def left(*seconds: float, lasting: bool = False, settings: RunSettings = LONG) -> float:
        earlier = zip((*trusted_requests(RECIPE, settings), request(SOUND)), seconds, strict=False)
        replays = {item: Replay(status="OK", seconds=cost, lasting=lasting) for item, cost in earlier}
        return in_time(request(SOUND), replays).seconds / RUN_LIMITS.seconds

    third = RUN_LIMITS.seconds / 3
    assert left() == 1
    assert left(third / 3, third / 3) == pytest.approx(7 / 9)
    assert left(third / 3, third / 3, third) == pytest.approx(0)  # not enough time for another third
    assert left(third, third) == 0
    assert left(1, 1, lasting=True) == 0
    assert left(third, third, settings=SETTINGS) == 1
    # A run without time does not start, and the cached result gives the reason.
    given.clear()
    assert "the grader did not run it" in Replayer(sandbox, tmp_path).make(replace(request(SOUND), seconds=0)).message
    assert given == []


def test_a_full_disk_stops_the_class_and_what_was_made_is_kept(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as caught:
        replayed(tmp_path, SOUND, "full = 1\n")
    assert caught.value.filename == tempfile.gettempdir()
    asked, _ = replayed(tmp_path, SOUND)
    assert asked == []


def test_a_new_experiment_or_check_leaves_the_runs_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "_HARNESS", tmp_path)
    for folder in ("checks", "experiments", "run"):
        (tmp_path / folder).mkdir()
    before = harness_hash("experiments", "checks"), harness_hash("experiments")
    (tmp_path / "experiments" / "mine.py").write_text("")
    assert (harness_hash("experiments", "checks"), harness_hash("experiments")) == before
    (tmp_path / "checks" / "mine.py").write_text("")
    assert harness_hash("experiments", "checks") == before[0]
    assert harness_hash("experiments") != before[1]
    (tmp_path / "run" / "mine.py").write_text("")
    assert harness_hash("experiments", "checks") != before[0]
