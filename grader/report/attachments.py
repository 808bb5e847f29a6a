"""Store the criteria and the attachments (what a page shows in addition) of submissions on the disk for a while."""

import os
import pickle
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from pydantic import TypeAdapter

from grader.score.attachments import Attachments
from grader.score.rubric import Criterion
from grader.score.scoring import Score
from grader.score.verdict import Criteria, CriterionScore, SubmissionScore
from harness.errors import name_place

_CRITERIA = TypeAdapter(dict[Criterion, CriterionScore])


class KeptAttachments(Mapping[str, Attachments]):
    """The attachments and the criteria of each submission, in a temporary file until the pages are written.

    The attachments of a large class would fill the memory. The file has no name, so it disappears when the process
    ends, and no other process can write to it.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        self._places: dict[str, int] = {}
        self.criteria = lru_cache(1)(self._criteria)  # callers read the criteria of one submission several times

    def keep(self, score: Score) -> SubmissionScore:
        """Store a submission. Return its row, whose criteria are read from the file only when they are needed.

        Raises `OSError` with the name of the folder if its disk is full.
        """
        with name_place(Path(tempfile.gettempdir())):
            start = self._file.seek(0, os.SEEK_END)
            size = self._file.write(_CRITERIA.dump_json({**score.row.criteria}))
            pickle.dump(score.attachments, self._file)
            self._file.flush()
        self._places[score.row.submission] = start + size
        return replace(score.row, criteria=_KeptCriteria(self, start, size)) if score.row.criteria else score.row

    def close(self) -> None:
        """Delete the file."""
        with suppress(OSError):  # closing fails if the disk is full, but nobody needs the unwritten rest
            self._file.close()

    def _criteria(self, start: int, size: int) -> Criteria:
        self._file.seek(start)
        return _CRITERIA.validate_json(self._file.read(size))

    def __getitem__(self, submission: str) -> Attachments:
        self._file.seek(self._places[submission])
        found: Attachments = pickle.load(self._file)  # noqa: S301 - this process has written it
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class _KeptCriteria(Mapping[Criterion, CriterionScore]):
    """The criteria of one submission, which are read from the temporary file when they are needed."""

    __slots__ = ("_kept", "_size", "_start")

    def __init__(self, kept: KeptAttachments, start: int, size: int) -> None:
        self._kept, self._start, self._size = kept, start, size

    def __getitem__(self, criterion: Criterion) -> CriterionScore:
        return self._kept.criteria(self._start, self._size)[criterion]

    def __iter__(self) -> Iterator[Criterion]:
        return iter(self._kept.criteria(self._start, self._size))

    def __len__(self) -> int:
        return len(self._kept.criteria(self._start, self._size))
