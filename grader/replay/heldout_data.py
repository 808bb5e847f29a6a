"""The images that decide about a fix, which no student has: beside the grader, or the end of the test set."""

import io
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from harness.data import EMBEDDED
from harness.data.datasets import Split, draw_subset, read_embedded
from harness.data.downloads import read_source
from harness.errors import naming
from harness.files import sha256_line, sha256_path, write_with_sha256

FOLDER = Path(__file__).with_name("heldout")
SIZE = 500  # as many as in a validation split


def heldout_archive(name: str, cache: Path, checksums: Mapping[str, str] | None = None) -> bytes:
    """Return an .npz of `images` uint8 (N, C, H, W) and `labels` int64 (N,).

    Of MNIST and CIFAR-10 a class-balanced part of the test set that no student's validation split shares, drawn
    once and kept in `cache`. Raises `UserError` where the data is missing or altered.
    """
    if name in EMBEDDED:
        return _packed(read_embedded(name, ["heldout"], FOLDER)[0])
    kept = cache / "subsets" / f"{name}-heldout-{SIZE}.npz"
    with suppress(OSError):
        data = kept.read_bytes()
        if sha256_path(kept).read_text(encoding="utf-8") == sha256_line(data, kept.name):
            return data
    _, test = read_source(name, cache, checksums)
    data = _packed(draw_subset(*test, SIZE, 0, from_end=True))
    with naming(kept.parent):
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_with_sha256(kept, data)
    return data


def _packed(split: Split) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, images=split.images, labels=split.labels)
    return buffer.getvalue()
