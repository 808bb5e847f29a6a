import io
import json
import math
from pathlib import Path

import pytest

from harness.run.log_writer import BATCHES_AT_ONCE, LogWriter
from harness.run.metrics_log import Record, read_metrics_log
from harness.run.recorder import BatchMeasurements


def measured(loss: float) -> BatchMeasurements:
    """What a recorder finds on a model without parameters."""
    return BatchMeasurements([loss, *[math.nan] * 4], {}, 0.1, 1, frozenset())


def test_records_come_in_order_and_are_noted_once_each(tmp_path: Path) -> None:
    noted: list[Record] = []
    path = tmp_path / "metrics.log"
    losses = [math.inf if step == 1 else 0.5 for step in range(2 * BATCHES_AT_ONCE + 3)]
    with path.open("w", encoding="utf-8") as file, LogWriter(file, noted.append) as log:
        for step, loss in enumerate(losses):
            log.batch({"step": step, "epoch": 0}, measured(loss))
        log.epoch({"epoch": 0, "val_loss": 0.1})
    records = read_metrics_log(path)
    assert [record.get("step") for record in records] == [*range(len(losses)), None]
    assert [record["loss"] for record in records[:-1]] == losses
    assert noted == records[:-1]


def test_an_error_loses_nothing_that_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "metrics.log"
    with (
        pytest.raises(RuntimeError),
        path.open("w", encoding="utf-8") as file,
        LogWriter(file, lambda record: None) as log,
    ):
        log.batch({"step": 0}, measured(2.5))
        assert path.read_text() == ""
        raise RuntimeError
    assert [(record["step"], record["loss"]) for record in read_metrics_log(path)] == [(0, 2.5)]


def test_one_at_a_time_is_noted_before_the_next() -> None:
    file = io.StringIO()
    noted: list[Record] = []
    log = LogWriter(file, noted.append, batches_at_once=1)
    log.batch({"step": 0}, measured(2.5))
    assert [record["loss"] for record in noted] == [2.5]
    assert json.loads(file.getvalue()) == noted[0]
