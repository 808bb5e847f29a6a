import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.submission.report import agrees, read_number


@pytest.mark.parametrize(
    ("written", "true"),
    [
        ("0.93", 0.9312),
        ("0.93", 0.9388),  # truncated
        ("6305", 6305.919),
        ("6300", 6305.919),
        ("1,234.5", 1234.5),
        ("1,234", 1.2341),
        ("31,84", 31.8425),
        ("2.805e-7", 2.8051e-7),
        ("−0.5", -0.5),
        ("93.1 %", 0.9312),
        ("NaN", math.nan),
        ("-Infinity", -math.inf),
    ],
)
def test_every_usual_form_agrees(written: str, true: float) -> None:
    assert agrees(written, true)


@pytest.mark.parametrize(
    ("written", "true"),
    [
        ("0.930", 0.9312),
        ("6000", 6305.9),
        ("NaN", 1.0),
        ("0x1F", 31.0),
        ("1_0", 10.0),
        ("12,34,567.8", 1234567.8),
        ("1" * 65, 1e64),
    ],
)
def test_a_wrong_number_agrees_with_nothing(written: str, true: float) -> None:
    assert not agrees(written, true)


def test_a_share_may_be_written_in_per_cent_without_the_sign() -> None:
    assert agrees("93.1", 0.9312, fraction=True)
    assert not agrees("94.1", 0.9312, fraction=True)
    assert agrees("0.93", 0.9312, fraction=True)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(2, 12))
def test_every_rounding_of_a_number_agrees(value: float, digits: int) -> None:
    assert agrees(repr(value), value)
    assert agrees(f"{value:.{digits}g}", value)
    assert agrees(f"{value:.{digits}e}", value)
    if abs(value) < 1e15:
        assert agrees(f"{value:,.3f}", value)


@given(st.text(max_size=40))
def test_any_text_is_a_number_or_refused(text: str) -> None:
    try:
        read_number(text)
    except ValueError:
        assert not agrees(text, 1.0)
