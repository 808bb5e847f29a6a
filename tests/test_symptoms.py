import math
from typing import Any

import pytest

from harness.recipe import Symptom
from harness.run.metrics_log import Record
from harness.symptoms import judge_symptom, reduce_values, signal_values

NAN, INF = math.nan, math.inf


def batches(*losses: float | None) -> list[Record]:
    return [{"step": step, "epoch": 0, "loss": loss} for step, loss in enumerate(losses)]


def symptom(**fields: Any) -> Symptom:
    return Symptom.model_validate({"signal": "loss", "reduce": "last", "says": "so", **fields})


@pytest.mark.parametrize(
    ("reducer", "values", "expected"),
    [
        ("first", [3, 1, 2], 3),
        ("last", [3, 1, 2], 2),
        ("min", [3, 1, 2], 1),
        ("max", [2, 3, 1], 3),
        ("mean", [1, 2, 6], 3),
        ("median", [1, 2, 6], 2),
        ("median", [1, 2, 3, 6], 2.5),
        # a NaN is worse than any number in both directions
        ("max", [1, NAN, 2], INF),
        ("min", [1, NAN, 2], -INF),
        ("max", [1, INF], INF),
        ("min", [1, INF], 1),
        ("min", [1, -INF], -INF),
        ("max", [1, -INF], 1),
        # and has no average
        ("mean", [1, NAN], NAN),
        ("mean", [1, INF], NAN),
        ("median", [1, 2, NAN], NAN),
        ("median", [1, 2, INF], NAN),
        ("first", [NAN, 1], NAN),
        ("last", [1, INF], INF),
        ("first", [5], 5),
    ],
)
def test_reducers(reducer: str, values: list[float], expected: float) -> None:
    assert reduce_values(values, reducer) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("loss", "bounds", "present"),
    [
        (5.0, {"above": 4.0}, True),
        (5.0, {"above": 5.0}, False),
        (5.0, {"below": 5.0}, False),
        (5.0, {"below": 6.0}, True),
        (5.0, {"above": 4.0, "below": 6.0}, True),
        (7.0, {"above": 4.0, "below": 6.0}, False),
        (3.0, {"above": 4.0, "below": 6.0}, False),
        (-1.0, {"above": 0.0}, False),
        (0.5, {"below": 0.0}, False),
        (INF, {"above": 4.0}, True),
        (NAN, {"above": 4.0}, False),
        (NAN, {"below": 4.0}, False),
    ],
)
def test_bounds_are_exclusive_and_a_nan_is_beyond_neither(
    loss: float, bounds: dict[str, float], present: bool
) -> None:
    result = judge_symptom(batches(loss), symptom(**bounds))
    assert result.present is present
    assert result.value == pytest.approx(loss, nan_ok=True)


@pytest.mark.parametrize(
    ("steps", "value"),
    [(None, 9.0), ([0, 2], 1.0), ([1, 3], 2.0), ([3, 99], 9.0), ([4, 9], None), ([2, 2], None)],
)
def test_a_range_of_steps_is_half_open(steps: list[int] | None, value: float | None) -> None:
    result = judge_symptom(batches(0, 1, 2, 9), symptom(steps=steps, reduce="max", above=-1.0))
    assert (result.value, result.present) == (value, value is not None)


def test_the_range_of_a_validation_signal_counts_epochs() -> None:
    log = [record for epoch in range(3) for record in (*batches(5, 5), {"epoch": epoch, "val_loss": epoch})]
    result = judge_symptom(log, symptom(signal="val_loss", reduce="max", steps=[1, 2], above=0.0))
    assert result.value == 1.0


@pytest.mark.parametrize("signal", ["loss", "lr", "grad_norm", "grad_zero_fraction", "stale_grad_ratio"])
def test_batch_signals_come_from_batches_and_nulls_are_left_out(signal: str) -> None:
    log: list[Record] = [
        {"step": 0, "epoch": 0, signal: 1.5},
        {"step": 1, "epoch": 0, signal: None},
        {"step": 2, "epoch": 0},
        {"epoch": 0, signal: 99.0},
        {"step": 3, "epoch": 1, signal: 2},
    ]
    assert signal_values(log, signal) == [(0, 1.5), (3, 2.0)]


@pytest.mark.parametrize("signal", ["val_loss", "val_accuracy", "eval_buffer_change"])
def test_epoch_signals_come_from_epochs_and_nulls_are_left_out(signal: str) -> None:
    log: list[Record] = [
        {"step": 0, "epoch": 0, signal: 99.0},
        {"epoch": 0, signal: None},
        {"epoch": 1, signal: 0.5},
    ]
    assert signal_values(log, signal) == [(1, 0.5)]


def epoch(**fields: object) -> list[Record]:
    return [{"epoch": 0, "val_loss": 9.0, "val_accuracy": 0.1}, {"epoch": 1, **fields}]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"val_accuracy": 0.5, "val_accuracy_eval_mode": 0.75}, [(1, 0.25)]),
        ({"val_accuracy": 0.75, "val_accuracy_eval_mode": 0.5}, [(1, -0.25)]),
        ({"val_accuracy": 0.75, "val_accuracy_eval_mode": None}, []),
        ({"val_accuracy": None, "val_accuracy_eval_mode": None}, []),
        # an evaluate that reports no accuracy, of a model that has one
        ({"val_accuracy": None, "val_accuracy_eval_mode": 0.5}, []),
    ],
)
def test_eval_mode_gain(fields: dict[str, object], expected: list[tuple[int, float]]) -> None:
    assert signal_values(epoch(val_loss=1.0, **fields), "eval_mode_gain") == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (2.0, 2.0, 0.0),
        (2.0, 3.0, 0.5),
        (2.0, 1.0, 0.5),
        (-2.0, -1.0, 0.5),
        (0.0, 0.0, 0.0),
        (INF, INF, 0.0),
        (2.0, NAN, NAN),
    ],
)
def test_eval_disagreement(first: float, second: float, expected: float) -> None:
    ((index, value),) = signal_values(epoch(val_loss=first, val_loss_repeated=second), "eval_disagreement")
    assert index == 1
    assert value == pytest.approx(expected, nan_ok=True)


def test_a_disagreement_with_nothing_is_large_and_finite() -> None:
    ((_, value),) = signal_values(epoch(val_loss=0.0, val_loss_repeated=1.0), "eval_disagreement")
    assert 1e6 < value < INF


@pytest.mark.parametrize("signal", ["eval_disagreement", "eval_mode_gain", "stale_grad_ratio", "val_loss"])
def test_a_signal_that_the_log_does_not_hold_is_no_symptom(signal: str) -> None:
    for bound in ("above", "below"):
        result = judge_symptom(batches(1, 2), symptom(signal=signal, **{bound: 0.0}))
        assert (result.value, result.present) == (None, False)
