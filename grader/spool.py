"""What one run of the grader puts aside on disk, so that no class is held in memory as a whole."""

import hashlib
import pickle
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grader.score.exhibits import Exhibits
from harness.errors import naming

if TYPE_CHECKING:  # what takes tarballs in is of no use to whoever only makes pages
    from grader.taken import Taken

# Its name among the reports, which nobody else takes.
SPOOL = ".trainwreck-spool"


@dataclass(frozen=True)
class Spool:
    """A folder with what belongs to each submission, by its name; any process of this run reads and writes it."""

    folder: Path

    def put_taken(self, taken: "Taken") -> None:
        """Put a submission that was taken in aside."""
        self._write(self._path(taken.name, "taken"), pickle.dumps(taken))

    def taken(self, name: str) -> "Taken":
        """Return a submission that was taken in."""
        from grader.taken import Taken

        taken = pickle.loads(self._path(name, "taken").read_bytes())  # noqa: S301 - written by this run
        assert isinstance(taken, Taken)
        return taken

    def put_exhibits(self, exhibits: Exhibits) -> None:
        """Put what the page of a submission shows aside."""
        self._write(self._path(exhibits.submission, "exhibits"), exhibits.model_dump_json().encode())

    def exhibits(self, name: str) -> bytes | None:
        """Return what the page of a submission shows, as JSON; None where nothing was put aside."""
        try:
            return self._path(name, "exhibits").read_bytes()
        except FileNotFoundError:
            return None

    def _path(self, name: str, kind: str) -> Path:
        return self.folder / f"{hashlib.sha256(name.encode()).hexdigest()}.{kind}"

    def _write(self, path: Path, data: bytes) -> None:
        with naming(self.folder):
            path.write_bytes(data)


@contextmanager
def open_spool(folder: Path) -> Iterator[Spool]:
    """Give a spool in this folder, which is nobody else's: what a killed grader left there goes, and so does all of it
    when the block ends. Raises `OSError` where it cannot be made.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield Spool(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
