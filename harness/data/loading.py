"""Loads a data set by name: two that the repository carries, two that torchvision fetches.

torchvision is imported only where a subset of MNIST or CIFAR-10 is drawn for the first time.
"""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path

from harness.data import DATASETS, EMBEDDED
from harness.data.data_files import IncompleteFilesError
from harness.data.embedded_data import read_embedded_splits
from harness.data.image_sets import Dataset
from harness.data.subset_cache import read_cached, write_cached
from harness.data.subsets import draw_subset
from harness.errors import UserError

# Part of the name of every cached subset: raise it when the drawing changes.
_DRAWING = 1


def default_cache() -> Path:
    """Return the folder of downloaded data: $TRAINWRECK_DATA, else trainwreck in the user's cache folder."""
    if chosen := os.environ.get("TRAINWRECK_DATA"):
        return Path(chosen).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification has relative paths ignored.
    home = Path(shared) if Path(shared).is_absolute() else Path("~/.cache").expanduser()
    return home / "trainwreck"


def subset_file(
    name: str, cache: Path, train_size: int = 2000, validation_size: int = 500, subset_seed: int = 0
) -> Path:
    """Return where the drawn subset of a large data set is kept."""
    return cache / "subsets" / f"{name}-{train_size}-{validation_size}-seed{subset_seed}.v{_DRAWING}.npz"


def load_dataset(
    name: str,
    *,
    cache: Path | None = None,
    train_size: int = 2000,
    validation_size: int = 500,
    subset_seed: int = 0,
    checksums: Mapping[str, str] | None = None,
) -> Dataset:
    """Load a data set from this machine; nothing is downloaded.

    "digits" and "shapes" always come whole. Of "mnist" and "cifar10" a class-balanced subset is drawn by
    `subset_seed`, training images from the training set and validation images from the test set, out of the
    files in `cache` (`default_cache()` unless given), where the drawn subset is kept for the next time.
    The sizes are multiples of 10. `checksums` (file name to hex digest) replaces the published ones.
    Raises UserError for an unknown name, files that are missing or altered, for sizes that do not work, and
    for a full disk.
    """
    _require_known(name)
    if name in EMBEDDED:
        return Dataset.of(name, *read_embedded_splits(name, ("train", "validation")))
    root = default_cache() if cache is None else cache
    kept = subset_file(name, root, train_size, validation_size, subset_seed)
    if known := read_cached(kept, name):
        return known
    # Imported here: it is only needed when nothing is cached, and leads to torchvision.
    from harness.data.torchvision_data import SOURCES

    source = SOURCES[name]
    try:
        train, test = source.read(root, source.checksums if checksums is None else checksums)
    except OSError as error:
        raise UserError(
            f"The data set {name} cannot be read in {root} ({error}): "
            "check the permissions there and the free space, and run it again."
        ) from error
    drawn = Dataset.of(
        name,
        draw_subset(*train, train_size, subset_seed),
        draw_subset(*test, validation_size, subset_seed),
    )
    write_cached(kept, drawn)
    return drawn


def fetch_dataset(
    name: str,
    cache: Path | None = None,
    *,
    train_size: int = 2000,
    validation_size: int = 500,
    subset_seed: int = 0,
) -> Dataset:
    """Like `load_dataset`, and downloads what is missing first, with a progress bar on stderr.

    Raises UserError also without a network; it says which files to put where.
    """
    root = default_cache() if cache is None else cache

    def load() -> Dataset:
        return load_dataset(
            name, cache=root, train_size=train_size, validation_size=validation_size, subset_seed=subset_seed
        )

    try:
        return load()
    except IncompleteFilesError:
        from harness.data.downloads import download

        download(name, root)
        return load()


def _require_known(name: str) -> None:
    if name in DATASETS:
        return
    close = difflib.get_close_matches(name, DATASETS, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    raise UserError(f"There is no data set {name!r}{hint}: choose one of {', '.join(DATASETS)}.")
