import io
import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.schedules import _cosine_of_half_turns, warmup_cosine

# Of a run on one processor; other processors and C libraries must agree.
GOLDEN = ["0x1.1111111111111p-5", "0x1.767a911323604p-4", "0x1.cda0623c83eb4p-5", "0x1.79c02e3ab38cdp-13"]


def optimizer(*rates: float) -> torch.optim.SGD:
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": rate} for rate in rates]
    return torch.optim.SGD(groups)


def rates_over(steps: int, scheduler: torch.optim.lr_scheduler.LambdaLR) -> list[list[float]]:
    """The learning rates that each of the next steps uses."""
    rates = []
    for _ in range(steps):
        rates.append([group["lr"] for group in scheduler.optimizer.param_groups])
        scheduler.optimizer.step()
        scheduler.step()
    return rates


def test_warm_up_is_linear_the_peak_is_one_and_the_end_is_the_final_fraction() -> None:
    scheduler = warmup_cosine(optimizer(1.0), warmup_steps=4, total_steps=12, final_fraction=0.25)
    rates = [rate for (rate,) in rates_over(15, scheduler)]
    assert rates[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert rates[8] == pytest.approx(0.25 + 0.75 / 2, abs=1e-15)  # half-way down
    assert all(later < earlier for earlier, later in pairwise(rates[4:13]))
    assert rates[12:] == [0.25] * 3


@settings(deadline=None)
@given(warmup=st.integers(0, 20), more=st.integers(0, 40), final=st.floats(0, 1))
def test_agrees_with_the_formula(warmup: int, more: int, final: float) -> None:
    total = max(1, warmup + more)
    scheduler = warmup_cosine(optimizer(0.3), warmup_steps=warmup, total_steps=total, final_fraction=final)
    for step, (rate,) in enumerate(rates_over(total + 2, scheduler)):
        if step < warmup:
            factor = (step + 1) / warmup
        else:
            progress = 1.0 if step >= total else (step - warmup) / (total - warmup)
            factor = final + (1 - final) * (1 + math.cos(math.pi * progress)) / 2
        assert rate == pytest.approx(0.3 * factor, abs=1e-14)


def test_every_group_keeps_its_own_rate() -> None:
    scheduler = warmup_cosine(optimizer(1.0, 0.5), warmup_steps=2, total_steps=4)
    assert rates_over(3, scheduler) == [[0.5, 0.25], [1.0, 0.5], [1.0, 0.5]]


@settings(deadline=None)
@given(stop=st.integers(1, 29))
def test_resumed_schedule_is_exact_and_its_state_loads_with_weights_only(stop: int) -> None:
    whole = rates_over(
        30, warmup_cosine(optimizer(0.1, 0.7), warmup_steps=5, total_steps=30, final_fraction=0.01)
    )
    scheduler = warmup_cosine(optimizer(0.1, 0.7), warmup_steps=5, total_steps=30, final_fraction=0.01)
    first = rates_over(stop, scheduler)
    buffer = io.BytesIO()
    torch.save([scheduler.state_dict(), scheduler.optimizer.state_dict()], buffer)
    buffer.seek(0)
    schedule_state, optimizer_state = torch.load(buffer, weights_only=True)

    # Other settings: those of the saved schedule hold.
    resumed = warmup_cosine(optimizer(9.0, 9.0), warmup_steps=1, total_steps=2)
    resumed.load_state_dict(schedule_state)
    resumed.optimizer.load_state_dict(optimizer_state)
    assert first + rates_over(30 - stop, resumed) == whole


def test_cosine_is_that_of_math_to_the_last_bits() -> None:
    # Every double near 1 is 1.1e-16 from its neighbour.
    worst = max(abs(_cosine_of_half_turns(n / 9973) - math.cos(math.pi * n / 9973)) for n in range(9974))
    assert worst <= 1e-15
    assert [_cosine_of_half_turns(turns) for turns in (0.0, 1.0)] == [1.0, -1.0]


def test_learning_rates_are_the_same_bits_on_every_machine() -> None:
    scheduler = warmup_cosine(optimizer(0.1), warmup_steps=3, total_steps=40)
    rates = [rate for (rate,) in rates_over(40, scheduler)]
    assert [rates[step].hex() for step in (0, 10, 20, 39)] == GOLDEN


@pytest.mark.parametrize(
    ("warmup", "total", "final", "message"),
    [
        (0, 0, 0.0, "total_steps is 0"),
        (-1, 5, 0.0, "warmup_steps is -1"),
        (6, 5, 0.0, "from 0 to total_steps, 5"),
        (1, 5, 1.5, "final_fraction is 1.5"),
        (1, 5, math.nan, "final_fraction is nan"),
    ],
)
def test_impossible_settings_are_refused(warmup: int, total: int, final: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        warmup_cosine(optimizer(1.0), warmup_steps=warmup, total_steps=total, final_fraction=final)
