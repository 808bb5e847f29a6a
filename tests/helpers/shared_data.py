"""The real MNIST and CIFAR-10 files next to the repository, linked into a temporary cache."""

import hashlib
from pathlib import Path

import pytest

from harness.data import loading

SHARED_DATA = Path(__file__).parents[3] / "shared" / "data"

needs_shared_data = pytest.mark.skipif(
    not (SHARED_DATA / "MNIST").is_dir() or not (SHARED_DATA / "cifar-10-batches-py").is_dir(),
    reason="the real MNIST and CIFAR-10 files are not in ../shared/data",
)


def link_shared_data(cache: Path) -> Path:
    """Link the shared files into `cache`. New files are written to the cache only."""
    for folder in ("MNIST", "cifar-10-batches-py"):
        (cache / folder).symlink_to((SHARED_DATA / folder).resolve(), target_is_directory=True)
    return cache


def accept_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept the substitute for CIFAR-10 in ../shared/data, whose pixels are not the official ones."""
    folder = SHARED_DATA / "cifar-10-batches-py"
    digests = {
        name: hashlib.md5((folder / name).read_bytes(), usedforsecurity=False).hexdigest()
        for name in loading.CHECKSUMS["cifar10"]
    }
    monkeypatch.setattr(loading, "CHECKSUMS", {**loading.CHECKSUMS, "cifar10": digests})
