"""What the pages of a class show beside the scores, kept on disk until the pages are written."""

import os
import pickle
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from grader.score.verdict import Exhibits
from harness.errors import naming


class KeptExhibits(Mapping[str, Exhibits]):
    """The exhibits of each submission, in a temporary file: those of a large class would fill the memory.

    The file has no name, so it is gone when the process ends, and nobody else can write to it.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        self._places: dict[str, int] = {}

    def keep(self, exhibits: Exhibits) -> None:
        """Add the exhibits of a submission. Raises `OSError` that names the folder if its disk is full."""
        with naming(Path(tempfile.gettempdir())):
            self._places[exhibits.submission] = self._file.seek(0, os.SEEK_END)
            pickle.dump(exhibits, self._file)
            self._file.flush()

    def close(self) -> None:
        """Delete the file."""
        with suppress(OSError):  # what a full disk did not take is not needed any more
            self._file.close()

    def __getitem__(self, submission: str) -> Exhibits:
        self._file.seek(self._places[submission])
        found: Exhibits = pickle.load(self._file)  # noqa: S301 - this process has written it
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
