"""Writes `metrics.log` while a run is on, several batches at a time."""

from collections.abc import Callable
from typing import TextIO

from harness.run.metrics_log import Record, format_record
from harness.run.recorder import BatchMeasurements

# Between two training steps, which have just filled the caches, making and formatting a record takes five times
# as long as after another record.
BATCHES_AT_ONCE = 32


class LogWriter:
    """The open log of a run; `note` is called with each record of a batch once it is written.

    A context manager: leaving it, through an error too, writes what is still held back.
    """

    def __init__(
        self, file: TextIO, note: Callable[[Record], object], *, batches_at_once: int = BATCHES_AT_ONCE
    ) -> None:
        self._file = file
        self._note = note
        self._batches_at_once = batches_at_once
        self._held_back: list[tuple[Record, BatchMeasurements]] = []

    def __enter__(self) -> "LogWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def batch(self, position: Record, measured: BatchMeasurements) -> None:
        """Add a batch: its `step` and `epoch`, and what was measured."""
        self._held_back.append((position, measured))
        if len(self._held_back) >= self._batches_at_once:
            self.flush()

    def epoch(self, record: Record) -> None:
        """Add the record of an epoch, and write everything so far."""
        self._write_batches()
        self._file.write(format_record(record))
        self._file.flush()

    def flush(self) -> None:
        """Write everything so far."""
        self._write_batches()
        self._file.flush()

    def _write_batches(self) -> None:
        held_back, self._held_back = self._held_back, []
        records = [{**position, **measured.record()} for position, measured in held_back]
        for record in records:
            self._file.write(format_record(record))
        for record in records:
            self._note(record)
