"""The records that every data set comes in, and the digest that says which data a run saw."""

import hashlib
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Split:
    """Images and their labels, in a fixed order.

    images: uint8 (N, C, H, W), 0 is black and 255 is full brightness.
    labels: int64 (N,), each an index into the data set's class names.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Dataset:
    """A data set as a student gets it, with the SHA-256 (hex) of its four arrays."""

    name: str
    train: Split
    validation: Split
    digest: str

    @classmethod
    def of(cls, name: str, train: Split, validation: Split) -> Self:
        """Put two splits together and compute their digest."""
        return cls(name, train, validation, digest_of_splits(train, validation))


def digest_of_splits(*splits: Split) -> str:
    """Return the SHA-256 (hex) over shape, type and bytes of each split's images and labels, in order."""
    digest = hashlib.sha256()
    for split in splits:
        for array in (split.images, split.labels):
            # Little-endian spelled out: the digest is of the values, on whichever machine.
            plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            digest.update(f"{plain.dtype.str}{plain.shape}".encode())
            digest.update(plain.data)
    return digest.hexdigest()
