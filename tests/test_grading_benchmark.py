from pathlib import Path

import pytest
from intake_archives import contents, manifest, packed, taken, written

from benchmarks.grading import RECIPE, forget_the_students, make_class
from benchmarks.timing import BenchmarkError
from grader.replay.cache import Cache
from grader.replay.replay import Replay
from grader.replay.request import canary_requests
from grader.syntax.parse import tree_digest
from harness.recipe import load_recipe

OWN = [request.key for request in canary_requests(RECIPE)]
STUDENTS = "cd" * 32


def remembered(folder: Path, *, student: bool) -> Path:
    """Fill a folder with a row, the replays that a class shares and, if wanted, one of a student's."""
    store = Cache(folder, Replay)
    for key in OWN:
        store.put(key, Replay(status="OK"))
    if student:
        store.put(STUDENTS, Replay(status="OK"))
    return folder


def test_of_a_submission_nothing_is_remembered_and_of_the_suite_everything(tmp_path: Path) -> None:
    folder = remembered(tmp_path, student=True)
    forget_the_students(folder)
    store = Cache(folder, Replay)
    assert store.get(STUDENTS) is None
    assert sorted(path.stem for path in folder.rglob("*.json")) == sorted(OWN)


def test_where_no_replay_can_be_forgotten_nothing_is_timed(tmp_path: Path) -> None:
    # The row alone goes as well: that one file less says nothing about the replays.
    with pytest.raises(BenchmarkError, match="nothing to forget"):
        forget_the_students(remembered(tmp_path, student=False))


def test_a_class_hands_in_one_program_in_as_many_texts(tmp_path: Path) -> None:
    files = contents(experiment=load_recipe(RECIPE).healthy_source().encode())
    written(tmp_path, packed({**files, "manifest.json": manifest(files)}))
    make_class(tmp_path, 4)
    found = [taken(path) for path in sorted(tmp_path.iterdir())]
    assert [one.manifest.student for one in found] == ["ada", "student1", "student2", "student3"]
    sources = {one.files["experiment.py"].decode() for one in found}
    assert len(sources) == 4
    assert len({tree_digest(source) for source in sources}) == 1
    assert [one.missing for one in found] == [()] * 4
