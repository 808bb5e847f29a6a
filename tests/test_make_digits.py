import hashlib
from pathlib import Path

import numpy as np

from harness.data.embedded.archives import write_archives
from harness.data.embedded.make_digits import enlarge, enlargement_matrix, make_splits, split_by_class
from harness.data.embedded_data import STUDENTS_FOLDER, read_embedded_split

GRADERS_FOLDER = Path(__file__).parents[1] / "grader" / "replay" / "heldout"


def test_the_script_makes_the_stored_arrays_again() -> None:
    for name, (images, labels) in make_splits().items():
        stored = read_embedded_split("digits", name, GRADERS_FOLDER if name == "heldout" else STUDENTS_FOLDER)
        assert (stored.images == images).all()
        assert (stored.labels == labels).all()


def test_enlarging_keeps_even_grey_even_and_samples_in_place() -> None:
    matrix = enlargement_matrix(8)
    assert matrix.shape == (24, 8)
    assert (matrix.sum(axis=1) == 54).all()
    original = np.random.RandomState(0).randint(0, 17, (3, 8, 8)).astype(np.int64)
    large = enlarge(original)
    assert large.shape == (3, 1, 28, 28)
    # The middle of every block of 3 x 3 is a sample of the original; one of the frame is cut.
    assert (large[:, 0, 3:27:3, 3:27:3] == (original * 255 + 8) // 16).all()
    assert (enlarge(np.full((1, 8, 8), 16))[0, 0, 8:20, 8:20] == 255).all()


def test_splits_are_a_partition_with_each_class_in_its_share() -> None:
    labels = np.arange(1797, dtype=np.int64) % 10
    splits = split_by_class(labels)
    assert sorted(np.concatenate(list(splits.values())).tolist()) == list(range(1797))
    for indices in splits.values():
        counts = np.bincount(labels[indices])
        assert counts.max() - counts.min() <= 2


def test_archives_are_the_same_bytes_and_listed_in_sums(tmp_path: Path) -> None:
    images, labels = np.zeros((2, 1, 3, 3), np.uint8), np.arange(2, dtype=np.int64)
    splits = dict.fromkeys(("train", "validation", "heldout"), (images, labels))
    for folder in ("a", "b"):
        write_archives(tmp_path / folder, "tiny", splits)
    for part in ("harness/data/embedded", "grader/replay/heldout"):
        first, second = (tmp_path / folder / part / "tiny.npz" for folder in ("a", "b"))
        assert first.read_bytes() == second.read_bytes()
        digest = hashlib.sha256(first.read_bytes()).hexdigest()
        assert (first.parent / "SHA256SUMS").read_text() == f"{digest}  tiny.npz\n"
    students = tmp_path / "a" / "harness" / "data" / "embedded"
    assert (read_embedded_split("tiny", "validation", students).labels == labels).all()
    assert "heldout_images" not in np.load(students / "tiny.npz")
