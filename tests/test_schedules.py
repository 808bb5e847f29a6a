import io
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.run.schedules import warmup_cosine

# From a run on one processor. Other processors and C libraries must give the same values.
GOLDEN = ["0x1.1111111111111p-5", "0x1.767a911323604p-4", "0x1.cda0623c83eb4p-5", "0x1.79c02e3ab38cdp-13"]


def optimizer(*rates: float) -> torch.optim.SGD:
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": rate} for rate in rates]
    return torch.optim.SGD(groups)


def rates_over(steps: int, scheduler: torch.optim.lr_scheduler.LambdaLR) -> list[list[float]]:
    """Return the learning rates of the next steps."""
    rates = []
    for _ in range(steps):
        rates.append([group["lr"] for group in scheduler.optimizer.param_groups])
        scheduler.optimizer.step()
        scheduler.step()
    return rates


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


@settings(deadline=None)
@given(stop=st.integers(1, 29))
def test_resumed_schedule_is_exact_and_its_state_loads_with_weights_only(stop: int) -> None:
    whole = rates_over(30, warmup_cosine(optimizer(0.1, 0.7), warmup_steps=5, total_steps=30, final_fraction=0.01))
    scheduler = warmup_cosine(optimizer(0.1, 0.7), warmup_steps=5, total_steps=30, final_fraction=0.01)
    first = rates_over(stop, scheduler)
    buffer = io.BytesIO()
    torch.save([scheduler.state_dict(), scheduler.optimizer.state_dict()], buffer)
    buffer.seek(0)
    schedule_state, optimizer_state = torch.load(buffer, weights_only=True)

    # The saved schedule overrides other settings.
    resumed = warmup_cosine(optimizer(9.0, 9.0), warmup_steps=1, total_steps=2)
    resumed.load_state_dict(schedule_state)
    resumed.optimizer.load_state_dict(optimizer_state)
    assert first + rates_over(30 - stop, resumed) == whole


def test_learning_rates_are_the_same_bits_on_every_machine() -> None:
    scheduler = warmup_cosine(optimizer(0.1), warmup_steps=3, total_steps=40)
    rates = [rate for (rate,) in rates_over(40, scheduler)]
    assert [rates[step].hex() for step in (0, 10, 20, 39)] == GOLDEN


def test_more_warm_up_than_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="warmup_steps is 6: choose a number from 0 to 5"):
        warmup_cosine(optimizer(1.0), warmup_steps=6, total_steps=5)
