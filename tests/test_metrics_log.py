import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.run.metrics_log import Record, batch_records, epoch_records, format_record, parse_log, read_metrics_log
from harness.run.recorder import BATCHES_AT_ONCE, BatchMeasurements, LogWriter

TABLE_NAMES = ("grad_mean", "grad_norm_by_parameter", "activations")
NUMBERS = st.none() | st.integers(-(2**53), 2**53) | st.floats()
TABLES = st.dictionaries(st.text(), NUMBERS | st.dictionaries(st.text(), NUMBERS, max_size=3), max_size=3)
RUN_RECORDS = st.builds(
    lambda scalars, places, tables: {**scalars, **places, **tables},
    st.dictionaries(st.text().filter(lambda name: name not in ("step", "epoch", *TABLE_NAMES)), NUMBERS, max_size=4),
    st.dictionaries(st.sampled_from(("step", "epoch")), st.integers(0, 2**53)),
    st.dictionaries(st.sampled_from(TABLE_NAMES), TABLES),
)


@given(st.lists(RUN_RECORDS, max_size=5))
def test_what_is_written_is_read_back(records: list[dict[str, Any]]) -> None:
    lines = list(map(format_record, records))
    assert all(line.isascii() and line.count("\n") == 1 for line in lines)
    read = parse_log("".join(lines), "metrics.log")
    # repr distinguishes -0.0 from 0.0 and 1 from 1.0 and True, and writes every NaN in the same way.
    assert repr(read) == repr(records)
    assert list(map(format_record, read)) == lines


def test_non_finite_numbers_have_names() -> None:
    record = {"loss": math.nan, "grad_mean": {"1.weight": math.inf}, "list": (-math.inf, 1.0)}
    expected = '{"loss": "NaN", "grad_mean": {"1.weight": "Infinity"}, "list": ["-Infinity", 1.0]}\n'
    assert format_record(record) == expected


@given(data=st.binary() | st.text().map(str.encode))
def test_any_bytes_are_a_log_or_an_error_that_names_the_file(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "metrics.log"
    path.write_bytes(data)
    try:
        read_metrics_log(path)
    except UserError as error:
        assert str(path) in str(error)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[]",
        "NaN",
        '{"loss": Infinity}',
        '{"loss": 1e999}',
        '{"loss": 1} {}',
        '{"loss": 1',
        '{"step": 0, "step": 1}',
        '{"grad_mean": {"b": 1, "b": 2}}',
        '{"a": ' + "[" * 100_000,
        '{"a": ' + "[" * 980 + "]" * 980 + "}",
        '{"a": ' + "9" * 5000 + "}",
        "\ufeff{}",
        '{"loss": "high"}',
        '{"loss": true}',
        '{"loss": [1.0]}',
        '{"loss": {"mean": 1.0}}',
        f'{{"loss": {10**400}}}',
        '{"step": 1.0}',
        '{"step": -1}',
        '{"epoch": null}',
        '{"grad_mean": 1.0}',
        '{"grad_mean": {"weight": 1e999}}',
        '{"activations": {"first": {"mean": [1.0]}}}',
    ],
)
def test_what_no_run_writes_is_refused_by_line(line: str) -> None:
    with pytest.raises(UserError, match=r"metrics\.log, line 2 is not a record of a run .*make the run again"):
        parse_log(f'{{"step": 0}}\n{line}\n', "metrics.log")


def test_a_line_separator_within_a_string_ends_no_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.log"
    path.write_text('{"one\u2028two\x85three": 1}\n{"step": 0}\n', encoding="utf-8")
    assert [list(record) for record in read_metrics_log(path)] == [["one\u2028two\x85three"], ["step"]]


def test_a_file_that_cannot_be_read_is_the_mistake_of_a_user(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"There is no log at .*: make the run first"):
        read_metrics_log(tmp_path / "metrics.log")
    with pytest.raises(UserError, match="cannot be read"):
        read_metrics_log(tmp_path)


def measured(loss: float) -> BatchMeasurements:
    """Return the measurements of a recorder on a model without parameters."""
    return BatchMeasurements([loss, *[math.nan] * 4], {}, 0.1, 1, frozenset())


def test_records_come_in_order_and_are_noted_once_each(tmp_path: Path) -> None:
    noted: list[Record] = []
    path = tmp_path / "metrics.log"
    losses = [math.inf if step == 1 else 0.5 for step in range(2 * BATCHES_AT_ONCE + 3)]
    with path.open("w") as file, LogWriter(file, noted.append) as log:
        for step, loss in enumerate(losses):
            log.batch({"step": step, "epoch": 0}, measured(loss))
        log.epoch({"epoch": 0, "val_loss": 0.1})
    records = read_metrics_log(path)
    assert epoch_records(records) == records[-1:]
    assert batch_records(records) == noted == records[:-1]
    assert [(record["step"], record["loss"]) for record in noted] == list(enumerate(losses))


def test_an_error_loses_nothing_that_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "metrics.log"
    with pytest.raises(RuntimeError), path.open("w") as file, LogWriter(file, lambda record: None) as log:
        log.batch({"step": 0}, measured(2.5))
        raise RuntimeError
    assert [(record["step"], record["loss"]) for record in read_metrics_log(path)] == [(0, 2.5)]
    assert json.loads(path.read_text())["lr"] == 0.1
