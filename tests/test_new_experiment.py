"""`grader new-experiment`: the input formats, the splits, and the written files."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from grader.replay import request
from grader.selfcheck import new_experiment
from grader.selfcheck.new_experiment import read_pictures, read_table_file, split, write_experiment
from harness.data import CLASS_NAMES, DATASETS, DataForm
from harness.data.datasets import Dataset, read_embedded
from harness.errors import UserError
from harness.formats.toml_file import read_table
from harness.recipes.known_edits import load_shared_edits
from harness.run.experiment import load_experiment, tensor_data

HEAD = ("Customer", "Age", "City", "Late?")


def write_csv(path: Path, rows: Sequence[Sequence[object]], head: Sequence[str] = HEAD) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])
    return path


def loans(count: int = 300) -> list[tuple[object, ...]]:
    random = np.random.RandomState(0)
    cities = ("Rome", "Oslo")
    return [
        (number // 3, int(random.randint(18, 80)), cities[number % 2], "yes" if random.rand() < 0.4 else "no")
        for number in range(count)
    ]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace all output folders by folders below `tmp_path`, so that the suite does not change."""
    for name in ("EMBEDDED_FOLDER", "HELDOUT_FOLDER", "EXPERIMENTS", "SOLUTIONS"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(new_experiment, name, tmp_path / name)
    return tmp_path


def loaded(folders: Path, name: str, monkeypatch: pytest.MonkeyPatch, *, heldout: bool = False) -> Any:
    """Return the result of load_data in the written experiment."""
    told = read_table(folders / "EMBEDDED_FOLDER" / f"{name}.toml")
    monkeypatch.setitem(DATASETS, name, DataForm(told["kind"], tuple(told["shape"]), tuple(told["columns"])))
    monkeypatch.setitem(CLASS_NAMES, name, tuple(told["classes"]))
    train, validation = read_embedded(name, ("train", "validation"), folders / "EMBEDDED_FOLDER")
    if heldout:
        (validation,) = read_embedded(name, ("heldout",), folders / "HELDOUT_FOLDER")
    path = folders / "EXPERIMENTS" / f"{name}.py"
    experiment = load_experiment(path, path.read_text())
    return experiment.load_data(tensor_data(Dataset.of(name, train, validation)))


@pytest.mark.parametrize("heldout", [False, True])
def test_a_table_becomes_an_experiment_that_splits_it_as_it_was_split(
    heldout: bool, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_csv(folders / "loans.csv", loans())
    told = write_experiment("loans", folders, target=None, group="Customer")
    assert told[0].startswith("rows of 4 columns, from customer to late: 1")
    (inputs, labels), (unseen, _) = loaded(folders, "loans", monkeypatch, heldout=heldout)
    part = read_embedded("loans", ("heldout",), folders / "HELDOUT_FOLDER")[0]
    train, validation = read_embedded("loans", ("train", "validation"), folders / "EMBEDDED_FOLDER")
    assert (len(inputs), len(unseen)) == (len(train), len(part if heldout else validation))
    assert len(train) + len(validation) + len(part) == 300
    numbers = [set(one.inputs[:, 0].tolist()) for one in (train, validation, part)]
    assert not numbers[0] & numbers[1]
    assert not numbers[1] & numbers[2]
    assert all(number % 5 == 0 for number in numbers[1] | numbers[2])
    assert all(number % 5 for number in numbers[0])
    assert inputs.mean(dim=0).abs().max() < 1e-5
    assert set(labels.tolist()) == {0, 1}
    assert [
        edit.source((folders / "EXPERIMENTS/loans.py").read_text())
        for edit in load_shared_edits("loans", folders / "SOLUTIONS")
    ]


def test_equal_rows_stay_together(tmp_path: Path) -> None:
    rows = [(number // 4, number % 2, number // 4 % 2) for number in range(400)]
    read = read_table_file(write_csv(tmp_path / "x.csv", rows, ("a", "b", "c")), None, None)
    parts = split(read)
    seen = [{tuple(row[1:]) for row in read.inputs[rows].tolist()} for rows in parts.values()]
    assert sum(map(len, seen)) == 200
    assert [len(rows) for rows in parts.values()] == [240, 80, 80]


def test_a_measurement_has_no_classes(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.RandomState(0)
    rows = [(number, f"{random.rand():.3f}", f"{random.rand() * 9:.2f}") for number in range(200)]
    told = write_experiment(
        "price", write_csv(folders / "p.csv", rows, ("rooms", "area", "price")), target=None, group=None
    )
    assert "from row to price" in told[0]
    (_, targets), _ = loaded(folders, "price", monkeypatch)
    assert targets.shape == (120, 1)
    assert targets.dtype == torch.float32
    assert CLASS_NAMES["price"] == ()


def test_pictures_lie_in_a_folder_for_each_class(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.RandomState(0)
    for name in ("cat", "big dog"):
        (folders / "pictures" / name).mkdir(parents=True)
        for number in range(60):
            pixels = random.randint(0, 255, (9, 12)).astype(np.uint8)
            Image.fromarray(pixels).save(folders / "pictures" / name / f"{number}.png")
    told = write_experiment("pets", folders / "pictures", target=None, group=None)
    assert told[0] == "9x12 images of 1 channel(s): 72 train, 24 validation, 24 heldout"
    (images, labels), _ = loaded(folders, "pets", monkeypatch)
    assert images.shape == (72, 1, 9, 12)
    assert set(labels.tolist()) == {0, 1}
    Image.fromarray(np.zeros((5, 5), np.uint8)).save(folders / "pictures/cat/odd.png")
    with pytest.raises(UserError, match=r"Most images are 9x12 with 1 channel\(s\), but 1 are different, such as"):
        read_pictures(folders / "pictures")
    (folders / "pictures/cat/odd.png").write_bytes(b"no picture")
    with pytest.raises(UserError, match=r"odd.png cannot be read as an image"):
        read_pictures(folders / "pictures")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "Loans"}, "cannot be a name: use 3 to 40 lower-case letters"),
        ({"name": "digits"}, "There is already a data set or an experiment digits"),
        ({"name": "digits_mlp"}, "There is already a data set or an experiment digits_mlp"),
        ({"target": "Price"}, "has no column Price: it has Customer, Age, City, Late?"),
        ({"rows": [*loans()[:5], (1, "", "Rome", "no")]}, "line 7 has no Age: fill it in"),
        ({"rows": [*loans()[:5], (1, 2, "Rome")]}, "line 7 has 3 cells, not 4"),
        ({"rows": loans(60)}, "There are 60 examples: give 100 or more"),
        ({"rows": [(*row[:3], "no") for row in loans()]}, "The target has 1 different values"),
        ({"head": ("a", "a", "b", "c")}, "must begin with a line of column names"),
        ({"rows": [(*row[:1], "nan", *row[2:]) for row in loans()]}, "a non-finite number"),
    ],
)
def test_a_mistake_is_one_sentence_and_writes_nothing(change: dict[str, Any], said: str, folders: Path) -> None:
    path = write_csv(folders / "x.csv", change.get("rows", loans()), change.get("head", HEAD))
    with pytest.raises(UserError) as error:
        write_experiment(change.get("name", "loans"), path, target=change.get("target"), group=None)
    assert said in str(error.value)
    assert not [file for file in folders.rglob("*") if file.is_file() and file != path]


def test_words_become_columns(tmp_path: Path) -> None:
    read = read_table_file(write_csv(tmp_path / "x.csv", loans()), None, None)
    assert read.columns == ("row", "customer", "age", "city_oslo", "city_rome", "late")
    assert read.classes == ("no", "yes")
    assert (read.inputs[:, 3] + read.inputs[:, 4] == 1).all()


def test_replays_depend_on_the_data_that_somebody_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "EMBEDDED_FOLDER", tmp_path)
    before = request.data_state()
    (tmp_path / "loans.sha256").write_text("1  loans.npz\n")
    first = request.data_state()
    (tmp_path / "loans.sha256").write_text("2  loans.npz\n")
    assert len({before, first, request.data_state()}) == 3
