import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.run.metrics_log import (
    BATCHES_AT_ONCE,
    LogWriter,
    Record,
    batch_records,
    epoch_records,
    format_record,
    log_lines,
    parse_log,
    parse_record,
    read_metrics_log,
)
from harness.run.recorder import BatchMeasurements

# A text that is the name of a non-finite number comes back as that number: no quantity of a log is a text.
TEXT = st.text().filter(lambda text: text not in ("NaN", "Infinity", "-Infinity"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
RECORDS = st.dictionaries(st.text(), VALUES, max_size=6)
TABLE_NAMES = ("grad_mean", "grad_norm_by_parameter", "activations")


def same(first: Any, second: Any) -> bool:
    # repr tells -0.0 from 0.0 and 1 from 1.0 and True, and has one NaN.
    return repr(first) == repr(second)


NUMBERS = st.none() | st.integers(-(2**53), 2**53) | st.floats()
TABLES = st.dictionaries(st.text(), NUMBERS | st.dictionaries(st.text(), NUMBERS, max_size=3), max_size=3)
RUN_RECORDS = st.builds(
    lambda scalars, places, tables: {**scalars, **places, **tables},
    st.dictionaries(
        st.text().filter(lambda name: name not in ("step", "epoch", *TABLE_NAMES)), NUMBERS, max_size=4
    ),
    st.dictionaries(st.sampled_from(("step", "epoch")), st.integers(0, 2**53)),
    st.dictionaries(st.sampled_from(TABLE_NAMES), TABLES),
)


@given(st.lists(RUN_RECORDS, max_size=5))
def test_what_is_written_is_read_back(records: list[dict[str, Any]]) -> None:
    text = "".join(map(format_record, records))
    assert same(parse_log(log_lines(text), "metrics.log"), records)
    assert "".join(map(format_record, parse_log(log_lines(text), "metrics.log"))) == text


@given(RECORDS)
def test_a_record_is_one_line_of_strict_ascii_json(record: dict[str, Any]) -> None:
    line = format_record(record)
    assert line.isascii() and line.count("\n") == 1 and line.endswith("\n")

    def refuse(name: str) -> None:
        raise AssertionError(name)

    json.loads(line, parse_constant=refuse)


def test_non_finite_numbers_have_names() -> None:
    record = {"loss": math.nan, "grad_mean": {"1.weight": math.inf}, "list": (-math.inf, 1.0)}
    line = format_record(record)
    assert line == '{"loss": "NaN", "grad_mean": {"1.weight": "Infinity"}, "list": ["-Infinity", 1.0]}\n'
    assert same(parse_record(line), {**record, "list": [-math.inf, 1.0]})


@given(st.text())
def test_any_text_is_a_log_or_an_error_that_names_its_line(text: str) -> None:
    try:
        records = parse_log(log_lines(text), "metrics.log")
    except UserError as error:
        assert str(error).startswith("metrics.log, line ")
    else:
        assert all(isinstance(record, dict) for record in records)


@given(data=st.binary())
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
        "1",
        "NaN",
        '{"loss": NaN}',
        '{"loss": Infinity}',
        '{"loss": 1e999}',
        '{"loss": 1,}',
        '{"loss": 1} {}',
        '{"loss": 1',
        "{'loss': 1}",
        '{"step": 0, "step": 1}',
        '{"a": {"b": 1, "b": 2}}',
        '{"a": ' + "[" * 100_000,
        '{"a": ' + "[" * 980 + "]" * 980 + "}",
        '{"a": ' + "9" * 5000 + "}",
        "\ufeff{}",
    ],
)
def test_what_is_not_strict_json_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        parse_record(line)


def test_a_line_separator_within_a_string_ends_no_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.log"
    path.write_text('{"one\u2028two\x85three": 1}\n{"step": 0}\n', encoding="utf-8")
    assert [list(record) for record in read_metrics_log(path)] == [["one\u2028two\x85three"], ["step"]]


@pytest.mark.parametrize(
    "line",
    [
        '{"loss": "high"}',
        '{"loss": true}',
        '{"loss": [1.0]}',
        '{"loss": {"mean": 1.0}}',
        f'{{"loss": {10**400}}}',
        '{"step": 1.0}',
        '{"step": -1}',
        '{"step": true}',
        '{"epoch": null}',
        '{"grad_mean": 1.0}',
        '{"grad_mean": {"1.weight": "high"}}',
        '{"activations": {"first": {"mean": [1.0]}}}',
    ],
)
def test_what_is_no_number_is_no_record_of_a_run(line: str) -> None:
    with pytest.raises(UserError, match=r"line 2: not a record of a run .* not "):
        parse_log(['{"step": 0}', line], "metrics.log")


def test_an_error_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.log"
    path.write_text('{"step": 0}\n{"step": 1')
    with pytest.raises(UserError, match=r"metrics\.log, line 2: .* make the run again"):
        read_metrics_log(path)


def test_a_file_that_cannot_be_read_is_a_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"There is no log at .*: make the run first"):
        read_metrics_log(tmp_path / "metrics.log")
    with pytest.raises(UserError, match="cannot be read"):
        read_metrics_log(tmp_path)
    (tmp_path / "metrics.log").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is not UTF-8 text"):
        read_metrics_log(tmp_path / "metrics.log")


def test_batches_have_a_step_and_epochs_have_none() -> None:
    records: list[dict[str, Any]] = [{"step": 0, "epoch": 0}, {"epoch": 0, "val_loss": 1.0}]
    assert batch_records(records) == records[:1]
    assert epoch_records(records) == records[1:]


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
