import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.shared_data import accept_stand_in, link_shared_data, needs_shared_data

from grader.replay.data import HELDOUT_FOLDER
from harness.data import CLASS_NAMES, DATASETS
from harness.data.datasets import Dataset, Split, read_embedded
from harness.data.loading import default_cache, load_dataset, read_subset, write_subset
from harness.errors import UserError
from harness.run.experiment import tensor_data


@pytest.mark.parametrize(
    ("name", "sizes", "digest"),
    [
        ("digits", (1280, 257), "d11855c50adaed8282ee4df228aa5192bbdad6d395d7dd11cd99bdb17d3fc3fe"),
        ("shapes", (1920, 400), "c5bd8911155829d082cd98339d33e3f416fe5e053f717edf1199527e2c64c856"),
        pytest.param("mnist", (2000, 500), "23d53d057046578865923c1bdd63432917e6151232ef0ab5a191a9fa3bcac3a8",
            marks=needs_shared_data),
        pytest.param("cifar10", (2000, 500), "f22142493e63ee22b4c2d5185c9bb2d2c7df6f4c89e9710d3e70a462c0704add",
            marks=needs_shared_data),
    ],
)  # fmt: skip
def test_a_data_set_has_its_sizes_types_and_digest(
    name: str, sizes: tuple[int, int], digest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name in ("mnist", "cifar10"):
        accept_stand_in(monkeypatch)
        link_shared_data(tmp_path)
    dataset = load_dataset(name, cache=tmp_path)
    assert (dataset.name, dataset.digest) == (name, digest)
    assert len(set(CLASS_NAMES[name])) == 10
    for split, size in zip((dataset.train, dataset.validation), sizes, strict=True):
        assert split.inputs.shape == (size, *DATASETS[name].shape)
        assert split.inputs.dtype == np.uint8
        assert (split.inputs.min(), split.inputs.max()) == (0, 255)
        assert split.labels.shape == (size,)
        assert split.labels.dtype == np.int64


@pytest.mark.parametrize("name", [name for name, form in DATASETS.items() if form.kind == "table"])
def test_a_table_is_sorted_and_held_out_rows_are_put_aside_like_validation_rows(name: str) -> None:
    known = load_dataset(name)
    heldout = read_embedded(name, ["heldout"], HELDOUT_FOLDER)[0]
    for other in (known.validation, heldout):
        data = tensor_data(Dataset.of(name, known.train, other))
        first, *_ = data.table.values()
        assert tuple(data.table) == DATASETS[name].columns
        assert bool((first.diff() >= 0).all())
        aside = first >= 80 if name == "orders" else first % 5 == 0
        assert int(aside.sum()) == len(other)
        target = DATASETS[name].columns[-1]
        assert sorted(data.table[target][aside].tolist()) == sorted(other.labels.tolist())


@pytest.mark.parametrize("name", ["phrases", "marks"])
def test_no_text_is_in_two_splits(name: str) -> None:
    splits = [*read_embedded(name, ["train", "validation"]), *read_embedded(name, ["heldout"], HELDOUT_FOLDER)]
    texts = [text.tobytes() for split in splits for text in split.inputs]
    assert len(set(texts)) == len(texts) == 2240
    assert tensor_data(load_dataset(name)).train.symbols.dtype == torch.int64


def test_an_unknown_data_set_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="no data set 'mnits': choose one of digits, shapes, mnist"):
        load_dataset("mnits")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"TRAINWRECK_DATA": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"TRAINWRECK_DATA": "~/a"}, "/home/ada/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/trainwreck"),
        ({"XDG_CACHE_HOME": "b"}, "/home/ada/.cache/trainwreck"),
        ({"TRAINWRECK_DATA": ""}, "/home/ada/.cache/trainwreck"),
    ],
)
def test_the_cache_is_where_the_user_says(
    variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TRAINWRECK_DATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/ada", **variables}.items():
        monkeypatch.setenv(name, value)
    assert default_cache() == Path(expected)


@needs_shared_data
def test_the_second_load_reads_the_kept_subset_without_torch_and_makes_a_damaged_one_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept_stand_in(monkeypatch)
    cache = link_shared_data(tmp_path)
    drawn = load_dataset("cifar10", cache=cache)
    (kept,) = (cache / "subsets").iterdir()
    whole = kept.read_bytes()

    (cache / "cifar-10-batches-py").unlink()
    program = (
        "import sys; from harness.data.loading import load_dataset; load_dataset('digits'); "
        "load_dataset('cifar10'); sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={"TRAINWRECK_DATA": str(cache)})

    (cache / "MNIST").unlink()
    kept.write_bytes(whole[:-1000])
    with pytest.raises(UserError):
        load_dataset("cifar10", cache=cache)
    assert load_dataset("cifar10", cache=link_shared_data(cache)).digest == drawn.digest
    assert kept.read_bytes() == whole


_RANDOM = np.random.RandomState(0)
_SPLIT = Split(_RANDOM.randint(0, 256, (5, 1, 3, 3)).astype(np.uint8), np.arange(5, dtype=np.int64))
_DATASET = Dataset.of("some", _SPLIT, _SPLIT)


def test_a_kept_subset_is_read_back_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "kept.npz"
    assert read_subset(path, "some") is None
    write_subset(path, _DATASET)
    known = read_subset(path, "some")
    assert known is not None
    assert known.digest == _DATASET.digest
    assert known.train.inputs.flags.writeable
    assert list(path.parent.iterdir()) == [path]


def test_no_altered_byte_and_no_cut_changes_the_data_or_raises(tmp_path: Path) -> None:
    path = tmp_path / "kept.npz"
    write_subset(path, _DATASET)
    whole = path.read_bytes()
    for position in range(len(whole)):
        altered = bytearray(whole)
        altered[position] ^= 1
        path.write_bytes(altered)
        known = read_subset(path, "some")
        # Some bytes of a zip, such as its time stamps, have no meaning.
        assert known is None or known.digest == _DATASET.digest
    for other in (*(whole[:length] for length in range(0, len(whole), 7)), b"\x80\x04K\x01.", b"\x93NUMPY\x01"):
        path.write_bytes(other)
        assert read_subset(path, "some") is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("mine")
    write_subset(in_the_way / "kept.npz", _DATASET)
    assert in_the_way.read_text() == "mine"
