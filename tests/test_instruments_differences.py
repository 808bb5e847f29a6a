import math

import pytest

from harness.checks.differences import differences, first_difference
from harness.run.metrics_log import Record


def batch(step: int, loss: float, **more: object) -> Record:
    return {"step": step, "epoch": 0, "loss": loss, **more}


def test_equal_logs_have_none() -> None:
    log = [batch(0, 1.0, grad_norm=None), batch(1, math.nan)]
    assert first_difference(log, [dict(record) for record in log]) is None


def test_the_first_quantity_in_the_order_of_the_log_is_named() -> None:
    first = [batch(0, 1.0), batch(1, 2.0, grad_mean={"a": 1.0, "b": 4.0}), batch(2, 3.0)]
    second = [batch(0, 1.0), batch(1, 2.0, grad_mean={"a": 1.0, "b": 5.0}), batch(2, 9.0)]
    found = first_difference(first, second)
    assert found is not None
    assert (found.place, found.quantity, found.first, found.second) == ("step 1", "grad_mean.b", 4.0, 5.0)
    assert found.distance == 0.25
    assert [difference.quantity for difference in differences(first[2], second[2])] == ["loss"]


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [(0.0, 2.0, 2.0), (1.0, math.nan, math.inf), (1.0, None, None), (None, 1.0, None), (-2.0, -1.0, 0.5)],
)
def test_distance(first: float | None, second: float | None, distance: float | None) -> None:
    found = next(differences(batch(0, 0.0, lr=first), batch(0, 0.0, lr=second)))
    assert found.distance == distance


def test_a_log_that_ends_early_differs_where_it_ends() -> None:
    log = [batch(0, 1.0), batch(1, 2.0), {"epoch": 0, "val_loss": 3.0}]
    for shorter, longer, values in ((log[:2], log, (None, 3.0)), (log, log[:2], (3.0, None))):
        found = first_difference(shorter, longer)
        assert found is not None
        assert (found.place, found.quantity, found.first, found.second) == ("epoch 0", "records", *values)


def test_a_quantity_that_only_one_has_is_named() -> None:
    found = list(differences(batch(0, 1.0), batch(0, 1.0, lr=0.1)))
    assert [(difference.quantity, difference.first, difference.second) for difference in found] == [
        ("lr", None, 0.1)
    ]
