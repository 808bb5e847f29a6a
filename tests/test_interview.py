"""Interviews: which faults are drawn, what the clock says, and who is credited for what."""

import json
import shutil
import zlib
from itertools import combinations
from pathlib import Path

import pytest

from harness.behaviour.compare import Behaviour
from harness.errors import UserError
from harness.interview.draw import FAULTS, KINDS, Interview, draw_interview
from harness.interview.follow_up import judge_follow_up
from harness.interview.judge import InterviewVerdict, is_named, judge_source, judge_tests, verdict_of
from harness.interview.report import finish_room, show_verdict
from harness.interview.room import NOTES, TESTS, Room, open_room, rooms_of, start_room, unseal
from harness.interview.tests_of import run_tests
from harness.recipes.recipe import load_recipes

COUNT = {kind: sum(one.experiment == name for one in load_recipes()[0]) for kind, (name, _) in KINDS.items()}
ABLE = [kind for kind, count in COUNT.items() if count >= FAULTS]


def no_measurement(source: str) -> Behaviour:
    raise AssertionError("the text must decide")


def test_there_are_interviews() -> None:
    assert "tabular" in ABLE


@pytest.mark.parametrize("kind", ABLE)
def test_four_faults_fit_together_and_at_most_one_is_silent(kind: str) -> None:
    used: list[str] = []
    enough = COUNT[kind] >= 3 * FAULTS
    for seed in range(8):
        drawn = draw_interview(kind, seed, used)
        assert len({*drawn.faults}) == FAULTS
        assert sum(not one.symptoms for one in drawn.recipes()) <= 1
        assert drawn == draw_interview(kind, seed, used)
        if enough and len(used) < 2 * FAULTS:
            assert not {*used} & {*drawn.faults}
        used += drawn.faults


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UserError, match="There is no interview of the kind 'gtp'"):
        draw_interview("gtp", 1)


@pytest.mark.parametrize("kind", ABLE)
def test_the_text_decides_about_each_selection_of_the_faults(kind: str) -> None:
    drawn = draw_interview(kind, 7)
    for count in range(FAULTS + 1):
        for left in combinations(drawn.faults, count):
            found, introduced = judge_source(drawn, f"# mine\n{drawn.source_with(left)}", no_measurement)
            assert introduced == []
            assert {id: fixed for id, (fixed, _) in found.items()} == {id: id not in left for id in drawn.faults}


def by_text(source: str) -> Behaviour:
    """Take each program for one with a behaviour of its own."""
    return {"outputs": {"text": [float(zlib.crc32(source.encode()))]}}


def test_a_fix_in_other_lines_and_another_change_are_told_apart() -> None:
    drawn = draw_interview("tabular", 7)
    healthy = drawn.healthy_source()
    other = healthy.replace("HIDDEN = 48", "HIDDEN = 40")
    assert other != healthy
    found, introduced = judge_source(drawn, other, by_text)
    assert all(fixed for fixed, _ in found.values())
    assert len(introduced) == 1
    same = lambda source: {"outputs": {"text": [0.0]}}  # noqa: E731 - every program behaves as the healthy one
    assert judge_source(drawn, other, same)[1] == []


def test_invalid_python_is_the_candidates_mistake() -> None:
    drawn = draw_interview("tabular", 7)
    with pytest.raises(UserError, match=r"train\.py is not valid Python: line 1"):
        judge_source(drawn, "def (", no_measurement)


def test_a_test_counts_only_if_it_passes_on_sound_programs() -> None:
    healthy = {"good": True, "wrong": False, "strict": True}
    sound = {"variant": {"good": True, "wrong": False, "strict": False}}
    broken = {"one": {"good": False, "wrong": False, "strict": False}, "two": {"good": True}, "three": {}}
    caught, problems = judge_tests(healthy, sound, broken)
    assert caught == {"one": ("good",), "two": (), "three": ()}
    assert problems == [
        "wrong fails on the healthy script, so it tests no fault.",
        "strict fails on a sound variant of the healthy script (variant).",
    ]


def test_a_line_of_the_notes_names_the_place_of_a_fault() -> None:
    drawn = draw_interview("tabular", 3)
    recipe = drawn.recipes()[0]
    healthy = drawn.healthy_source()
    assert not is_named(recipe, healthy, "- nowhere: the training is wrong somehow\n")
    assert not is_named(recipe, healthy, "- main:\n")
    assert any(is_named(one, healthy, "- main(): a value that is far too large\n") for one in drawn.recipes())


def test_points_are_added_and_changes_cost() -> None:
    drawn = draw_interview("tabular", 7)
    states = dict.fromkeys(drawn.faults, (True, "text"))
    follow_up = {"all": (20.0, 20.0, "yes")}
    caught = dict.fromkeys(drawn.faults, ("test_it",))
    full = verdict_of(drawn, states, [], "", caught, [], follow_up)
    assert full.total == 4 * (12 + 5) + 20
    assert verdict_of(drawn, states, ["outputs"], "", caught, [], follow_up).total == full.total - 5
    none = verdict_of(drawn, dict.fromkeys(drawn.faults, (False, "text")), ["a"] * 9, "", {}, [], {})
    assert none.total == 0
    assert "   0 of 100 points" in [*show_verdict(none)]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Room:
    made, started = start_room(tmp_path_factory.mktemp("work"), "tabular", seed=5, minutes=30, again=False, bar=False)
    assert started
    return made


def test_a_room_has_what_its_task_names(room: Room) -> None:
    names = {path.name for path in room.folder.iterdir()}
    assert {"train.py", "track.py", "TASK.md", "notes.md", "test_train.py", "data", "runs", "interview.json"} <= names
    state = (room.folder / "interview.json").read_text(encoding="utf-8")
    assert not any(id in state for id in room.interview.faults)
    assert unseal(json.loads(state)["sealed"]) == room.interview
    again, started = start_room(room.folder.parent, "tabular", seed=5, minutes=30, again=False, bar=False)
    assert (again.folder, started) == (room.folder, False)


def test_pauses_are_not_on_the_clock(room: Room, tmp_path: Path) -> None:
    copy = tmp_path / "interview-1"
    shutil.copytree(room.folder, copy)
    record = json.loads((copy / "interview.json").read_text(encoding="utf-8"))
    record["began"] = "2026-01-01T10:00:00+00:00"
    record["made"] = [
        {"what": "pause", "at": "2026-01-01T10:05:00+00:00", "source": 16 * "0"},
        {"what": "go on", "at": "2026-01-01T11:00:00+00:00", "source": 16 * "0"},
    ]
    record["finished"] = "2026-01-01T11:10:00+00:00"
    (copy / "interview.json").write_text(json.dumps(record), encoding="utf-8")
    opened = Room(copy)
    assert opened.time_used().total_seconds() == 15 * 60
    assert not opened.is_paused
    with pytest.raises(UserError, match="is finished"):
        opened.require_open()


@pytest.mark.parametrize(
    ("name", "value"), [("source", "../../../secret"), ("at", "soon"), ("at", "2026-01-01T10:05:00")]
)
def test_an_entry_of_a_candidate_names_no_other_file_and_no_other_time(
    room: Room, tmp_path: Path, name: str, value: str
) -> None:
    copy = tmp_path / "interview-1"
    shutil.copytree(room.folder, copy)
    record = json.loads((copy / "interview.json").read_text(encoding="utf-8"))
    record["made"][0][name] = value
    (copy / "interview.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(UserError, match="cannot be read"):
        Room(copy)


def test_a_damaged_state_is_named(tmp_path: Path) -> None:
    (tmp_path / "interview-1").mkdir()
    (tmp_path / "interview-1" / "interview.json").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match="cannot be read"):
        rooms_of(tmp_path)
    with pytest.raises(UserError, match="There is no interview yet"):
        open_room(tmp_path / "none")


def test_tests_run_on_each_program(room: Room) -> None:
    drawn = room.interview
    tests = "import train\n\ndef test_epochs():\n    assert train.EPOCHS == 8\n\ndef test_never():\n    assert False\n"
    assert run_tests(room.folder, drawn.healthy_source(), tests) == {"test_epochs": True, "test_never": False}
    assert run_tests(room.folder, drawn.healthy_source(), "import nothing_of_this_name\n") == {}


SUMS = """

@torch.no_grad()
def partial_sums(model, loader):
    model.eval()
    sums = torch.zeros(3, dtype=torch.float64)
    for numbers, categories, labels in loader:
        logits = model(numbers, categories)
        right = ((logits > 0) == (labels > 0.5)).sum()
        loss = F.binary_cross_entropy_with_logits(logits, labels, reduction="sum")
        sums += torch.tensor([loss, right, len(labels)], dtype=torch.float64)
    return sums


def figures(sums):
    return {"val_loss": float(sums[0] / sums[2]), "val_accuracy": float(sums[1] / sums[2])}


if __name__"""
MEANS = SUMS.replace("sums[2]", "3").replace("len(labels)", "1")


@pytest.mark.parametrize(("added", "points"), [(SUMS, 20), (MEANS, 0), ("\n\nif __name__", 0)])
def test_the_follow_up_is_judged_by_equality(room: Room, added: str, points: float) -> None:
    healthy = room.interview.healthy_source()
    room.script.write_text(healthy.replace("\n\nif __name__", added, 1), encoding="utf-8")
    found = judge_follow_up("tabular", room.folder, healthy)
    assert sum(gained for gained, _, _ in found.values()) == points, found


SAMPLER = """
import torch
from torch.utils.data import Sampler


class ResumableSampler(Sampler):
    def __init__(self, dataset, num_replicas, rank, seed=0):
        self.size, self.ranks, self.rank, self.seed = len(dataset), num_replicas, rank, seed
        self.set_epoch(0)

    def set_epoch(self, epoch):
        self.epoch, self.done = epoch, 0

    def __len__(self):
        return len(range(self.rank, self.size, self.ranks))

    def __iter__(self):
        generator = torch.Generator().manual_seed(100 * self.seed + self.epoch)
        share = torch.randperm(self.size, generator=generator).tolist()[self.rank :: self.ranks]
        for i in share[self.done :]:
            self.done += 1
            yield i
        self.done = 0

    def state_dict(self):
        return {"epoch": self.epoch, "done": self.done}

    def load_state_dict(self, state):
        self.epoch, self.done = state["epoch"], state["done"]
"""


@pytest.mark.parametrize(
    ("edit", "lost"),
    [
        (("", ""), 0),
        (("            self.done += 1\n", ""), 8),  # starts the epoch over
        (("            self.done += 1\n            yield i", "            yield i\n            self.done += 1"), 8),
        (("+ self.epoch)", ")"), 3),
        (("[self.rank :: self.ranks]", ""), 10),
        (("100 * self.seed + ", ""), 2),
    ],
)
def test_a_sampler_that_continues_is_judged_by_equality(edit: tuple[str, str], lost: float, tmp_path: Path) -> None:
    assert edit[0] in SAMPLER
    (tmp_path / "train.py").write_text(SAMPLER.replace(*edit) if edit[0] else SAMPLER, encoding="utf-8")
    found = judge_follow_up("ddp", tmp_path, "")
    assert sum(most - gained for gained, most, _ in found.values()) == lost, found


@pytest.mark.slow
def test_an_interview_can_be_finished(room: Room) -> None:
    left = room.interview.faults[0]
    room.script.write_text(room.interview.source_with([left]), encoding="utf-8")
    (room.folder / NOTES).write_text("- main: something was wrong here, in a sentence\n", encoding="utf-8")
    (room.folder / TESTS).write_text("import train\n\ndef test_it():\n    assert train.LR == 3e-3\n", encoding="utf-8")
    verdict = finish_room(room)
    assert isinstance(verdict, InterviewVerdict)
    assert [one.id for one in verdict.faults if not one.fixed] == [left]
    assert verdict.introduced == ()
    page = (room.folder / "interview.html").read_text(encoding="utf-8")
    assert all(id in page for id in room.interview.faults)


def test_an_interview_without_its_faults_can_be_played(room: Room, tmp_path: Path) -> None:
    copy = tmp_path / "interview-1"
    shutil.copytree(room.folder, copy)
    record = json.loads((copy / "interview.json").read_text(encoding="utf-8"))
    (copy / "interview.json").write_text(json.dumps(record | {"sealed": ""}), encoding="utf-8")
    assert Room(copy).interview == Interview("tabular", 5, ())
