import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.submission.cited_numbers import agrees, cited_value, written_number

RECORDS: list[dict[str, Any]] = [
    {
        "step": 0,
        "epoch": 0,
        "loss": 2.5,
        "lr": 0.1,
        "grad_norm": math.nan,
        "optimizer_steps": 1,
        "grad_mean": {"1.weight": 0.25, "1.bias": None},
        "activations": {"first": None, "last": {"mean": 0.5, "var": math.inf}},
    },
    {"epoch": 0, "val_loss": 0.5, "val_accuracy": None, "eval_buffer_change": 0.0},
    {"step": 1, "epoch": 1, "loss": 2.0},
    {
        "epoch": 1,
        "val_loss": 0.5,
        "val_accuracy": 0.75,
        "val_loss_repeated": 0.25,
        "val_accuracy_eval_mode": 1.0,
    },
]


@dataclass(frozen=True)
class At:
    signal: str
    step: int | None = None
    epoch: int | None = None


@pytest.mark.parametrize(
    ("written", "true"),
    [
        ("0.93", 0.9312),
        ("0.93", 0.935),
        ("0.93", 0.925),
        ("18234.5", 18234.4999),
        ("18000", 18000.4),
        ("1.8e4", 18499.0),
        ("1.8E+4", 17501.0),
        ("2.68", 2.675),  # as the log prints it; the float64 itself is a little below
        ("93%", 0.9312),
        ("93.1 %", 0.9312),
        ("-0.5", -0.51),
        ("+.5", 0.5),
        ("5.", 5.2),
        ("0", -0.0),
        ("0.00", 0.004),
        ("1e-7", 1.2e-7),
        ("NaN", math.nan),
        (".nan", math.nan),
        ("-nan", math.nan),
        ("Infinity", math.inf),
        ("inf", math.inf),
        ("-.inf", -math.inf),
        (0.93, 0.93),
        (1e300, 1e300),
        (5e-324, 5e-324),
        (math.nan, math.nan),
    ],
)
def test_a_number_agrees_with_what_rounds_to_it(written: str | float, true: float) -> None:
    assert agrees(written, true)


@pytest.mark.parametrize(
    ("written", "true"),
    [
        ("0.930", 0.9312),
        ("0.93", 0.936),
        ("0.93", 0.9249),
        ("18234.5", 18234.6),
        ("18000", 18001.0),
        ("1.8e4", 18501.0),
        ("93%", 93.0),
        ("0.93", -0.93),
        ("0e9", 5.0),
        ("NaN", 1.0),
        ("1", math.nan),
        ("1e400", math.inf),
        ("Infinity", -math.inf),
        ("Infinity", math.nan),
        ("1_000", 1000.0),
        ("1,000", 1000.0),
        ("0x10", 16.0),
        ("ten", 10.0),
        ("", 0.0),
        ("1" * 65, 1.0),
        ("1e9999", 1.0),
        ("\u0661", 1.0),
    ],
)
def test_a_number_agrees_with_nothing_else(written: str, true: float) -> None:
    assert not agrees(written, true)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 15))
@example(0.809, 15)
def test_every_rounding_agrees(true: float, digits: int) -> None:
    assert agrees(f"{true:.{digits}e}", true)
    assert agrees(repr(true), true)


@given(st.floats(0.001, 1000), st.integers(1, 6))
def test_a_unit_more_or_less_does_not_agree(true: float, digits: int) -> None:
    number = written_number(f"{true:.{digits}f}")
    assert isinstance(number, tuple)
    value, unit = number
    assert unit == Decimal(10) ** -digits
    assert not agrees(f"{value + 2 * unit:f}", true)
    assert not agrees(f"{value - 2 * unit:f}", true)


@given(st.text(), st.floats())
def test_any_text_can_be_compared(written: str, true: float) -> None:
    assert agrees(written, true) in (True, False)


@pytest.mark.parametrize(
    ("citation", "value"),
    [
        (At("loss", step=0), 2.5),
        (At("loss", step=1), 2.0),
        (At("grad_norm", step=0), math.nan),
        (At("optimizer_steps", step=0), 1.0),
        (At("grad_mean.1.weight", step=0), 0.25),
        (At("activations.last.var", step=0), math.inf),
        (At("val_accuracy", epoch=1), 0.75),
        (At("eval_buffer_change", epoch=0), 0.0),
        (At("val_loss_repeated", epoch=1), 0.25),
        (At("eval_mode_gain", epoch=1), 0.25),
        (At("eval_disagreement", epoch=1), 0.5),
    ],
)
def test_a_cited_number_is_found(citation: At, value: float) -> None:
    assert cited_value(RECORDS, citation) == pytest.approx(value, nan_ok=True, abs=0)


@pytest.mark.parametrize(
    ("citation", "message"),
    [
        (At("los", step=0), "no signal 'los': did you mean loss"),
        (At("", step=0), "no signal ''"),
        (At("loss", epoch=0), "once a batch: cite it with step"),
        (At("val_loss", step=0), "once an epoch: cite it with epoch"),
        (At("loss", step=2), "no step 2: choose one from 0 to 1"),
        (At("val_loss", epoch=7), "no epoch 7: choose one from 0 to 1"),
        (At("grad_mean.1.wieght", step=0), "no 'grad_mean.1.wieght' there: did you mean 1.weight"),
        (At("grad_mean", step=0), "no number for grad_mean"),
        (At("grad_mean.1.bias", step=0), "no number for grad_mean.1.bias"),
        (At("grad_mean.", step=0), "no 'grad_mean.' there"),
        (At("activations.first.mean", step=0), "no number"),
        (At("loss.x", step=0), "no number"),
        (At("lr", step=1), "no 'lr' there"),
        (At("val_accuracy", epoch=0), "no number for val_accuracy"),
        (At("eval_mode_gain", epoch=0), "no number for eval_mode_gain"),
    ],
)
def test_what_the_log_does_not_hold_is_said(citation: At, message: str) -> None:
    with pytest.raises(UserError, match=message):
        cited_value(RECORDS, citation)


def test_an_empty_log_holds_nothing() -> None:
    with pytest.raises(UserError, match="no step at all"):
        cited_value([], At("loss", step=0))


@given(st.text() | st.sampled_from(["grad_mean.", "activations..", "val_loss."]), st.integers())
def test_any_signal_has_a_number_or_an_error(signal: str, index: int) -> None:
    for citation in (At(signal, step=index), At(signal, epoch=index)):
        try:
            assert isinstance(cited_value(RECORDS, citation), float)
        except UserError as error:
            assert str(error)
