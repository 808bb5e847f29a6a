"""Write the embedded archives and the SHA256SUMS beside them; only the scripts in this folder use it."""

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Arrays = tuple[NDArray[np.uint8], NDArray[np.int64]]

# Students get the first folder; only the grader has the second.
STUDENTS_FOLDER = Path("harness", "data", "embedded")
GRADERS_FOLDER = Path("grader", "replay", "heldout")


def write_archives(repository: Path, name: str, splits: dict[str, Arrays]) -> None:
    """Write `name`.npz with the splits train and validation, another one with heldout, and both SHA256SUMS.

    `splits` maps each of the three names to images, uint8 (N, C, H, W), and labels, int64 (N,).
    NumPy writes no time stamp into an archive: equal arrays give equal bytes with the same zlib.
    """
    for folder, names in ((STUDENTS_FOLDER, ("train", "validation")), (GRADERS_FOLDER, ("heldout",))):
        target = repository / folder
        target.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, NDArray[np.uint8] | NDArray[np.int64]] = {}
        for split in names:
            arrays[f"{split}_images"], arrays[f"{split}_labels"] = splits[split]
        with (target / f"{name}.npz").open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        lines = [
            f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n"
            for archive in sorted(target.glob("*.npz"))
        ]
        (target / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
