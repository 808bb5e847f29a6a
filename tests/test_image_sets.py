import numpy as np

from harness.data.image_sets import Dataset, Split, digest_of_splits


def _split(fill: int = 0, images: int = 4) -> Split:
    return Split(np.full((images, 1, 2, 3), fill, np.uint8), np.arange(images, dtype=np.int64))


def test_the_digest_is_fixed_for_good() -> None:
    assert digest_of_splits(_split()) == "240adf3d786fce3df45db3818393d487a01be083bde85db1d410e5b613d2a3dd"


def test_the_digest_is_of_the_values_not_of_their_storage() -> None:
    plain = _split()
    turned = Split(np.asfortranarray(plain.images), plain.labels.astype(">i8"))
    assert digest_of_splits(turned) == digest_of_splits(plain)


def test_every_difference_changes_the_digest() -> None:
    plain = _split()
    others = [
        _split(fill=1),
        _split(images=5),
        Split(plain.images.reshape(4, 1, 3, 2), plain.labels),
        Split(plain.images, plain.labels[::-1]),
        Split(plain.images, plain.labels.astype(np.int32)),
    ]
    assert len({digest_of_splits(split) for split in [plain, *others]}) == 6


def test_a_data_set_carries_the_digest_of_both_splits_in_order() -> None:
    first, second = _split(1), _split(2)
    dataset = Dataset.of("some", first, second)
    assert dataset.digest == digest_of_splits(first, second)
    assert dataset.digest != Dataset.of("some", second, first).digest
    assert len(dataset.train) == 4
