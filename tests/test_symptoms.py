import math
from typing import Any

import pytest

from harness.recipes.recipe import Symptom
from harness.run.metrics_log import Record
from harness.run.symptoms import judge_symptom, reduce_values, signal_values

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
        ("median", [1, 2, 3, 6], 2.5),
        # a NaN is worse than any number in both directions
        ("max", [1, NAN, 2], INF),
        ("min", [1, NAN, 2], -INF),
        ("min", [1, INF], 1),
        # the average with a NaN is NaN
        ("mean", [1, NAN], NAN),
        ("median", [1, 2, INF], NAN),
        ("first", [NAN, 1], NAN),
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
        (0.5, {"below": 0.0}, False),
        (INF, {"above": 4.0}, True),
        (NAN, {"above": 4.0}, False),
        (NAN, {"below": 4.0}, False),
    ],
)
def test_bounds_are_exclusive_and_a_nan_is_beyond_neither(loss: float, bounds: dict[str, float], present: bool) -> None:
    result = judge_symptom(batches(loss), symptom(**bounds))
    assert result.present is present
    assert result.value == pytest.approx(loss, nan_ok=True)


@pytest.mark.parametrize(
    ("steps", "value"), [(None, 9.0), ([0, 2], 1.0), ([1, 3], 2.0), ([3, 99], 9.0), ([4, 9], None)]
)
def test_a_range_of_steps_is_half_open(steps: list[int] | None, value: float | None) -> None:
    result = judge_symptom(batches(0, 1, 2, 9), symptom(steps=steps, reduce="max", above=-1.0))
    assert (result.value, result.present) == (value, value is not None)


def test_the_range_of_a_validation_signal_counts_epochs() -> None:
    log = [record for epoch in range(3) for record in (*batches(5, 5), {"epoch": epoch, "val_loss": epoch})]
    result = judge_symptom(log, symptom(signal="val_loss", reduce="max", steps=[1, 2], above=0.0))
    assert result.value == 1.0


@pytest.mark.parametrize(
    ("signal", "expected"), [("loss", [(0, 1.5)]), ("val_loss", [(0, 99.0)]), ("eval_mode_gain", [])]
)
def test_a_signal_comes_from_its_kind_of_record_and_nulls_are_left_out(
    signal: str, expected: list[tuple[int, float]]
) -> None:
    log: list[Record] = [
        {"step": 0, "epoch": 0, "loss": 1.5, "val_loss": 1.0},
        {"step": 1, "epoch": 0, "loss": None},
        {"epoch": 0, "loss": 2.5, "val_loss": 99.0},
        {"epoch": 1, "val_loss": None},
    ]
    assert signal_values(log, signal) == expected
    for bound in ("above", "below"):  # a signal that the log does not contain is not a symptom
        result = judge_symptom(log, symptom(signal=signal, **{bound: 0.0}))
        assert (result.value is None) == (not expected) and result.present == (bool(expected) and bound == "above")


@pytest.mark.parametrize(
    ("signal", "fields", "expected"),
    [
        ("eval_mode_gain", {"val_accuracy": 0.5, "val_accuracy_eval_mode": 0.75}, 0.25),
        ("eval_mode_gain", {"val_accuracy": 0.75, "val_accuracy_eval_mode": 0.5}, -0.25),
        ("eval_mode_gain", {"val_accuracy": 0.75, "val_accuracy_eval_mode": None}, None),
        ("eval_mode_gain", {"val_accuracy": None, "val_accuracy_eval_mode": 0.5}, None),
        ("eval_disagreement", {"val_loss": 2.0, "val_loss_repeated": 2.0}, 0.0),
        ("eval_disagreement", {"val_loss": -2.0, "val_loss_repeated": -1.0}, 0.5),
        ("eval_disagreement", {"val_loss": INF, "val_loss_repeated": INF}, 0.0),
        ("eval_disagreement", {"val_loss": 2.0, "val_loss_repeated": NAN}, NAN),
        ("eval_disagreement", {"val_loss": 0.0, "val_loss_repeated": 1.0}, 1e12),
    ],
)
def test_signals_that_are_computed_from_an_epoch(
    signal: str, fields: dict[str, object], expected: float | None
) -> None:
    log: list[Record] = [{"epoch": 0, "val_loss": 9.0, "val_accuracy": 0.1}, {"epoch": 1, **fields}]
    found = signal_values(log, signal)
    if expected is None:
        assert found == []
    else:
        ((index, value),) = found
        assert index == 1
        assert value == pytest.approx(expected, nan_ok=True)
