import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from harness.run.overfit import disable_dropout, overfit_one_batch
from harness.run.steps import training_step


def test_a_model_that_works_learns_one_batch_by_heart_and_one_that_does_not_fails() -> None:
    rng = torch.Generator().manual_seed(0)
    inputs, labels = torch.randn(16, 8, generator=rng), torch.randint(10, (16,), generator=rng)

    def final(learning_rate: float) -> int | None:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 10))
        optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9)
        result = overfit_one_batch(
            lambda: training_step(model, optimizer, F.cross_entropy, inputs, labels).item(), max_steps=200
        )
        assert result.losses[0] > 2.0
        return result.reached_at

    reached = final(0.1)
    assert reached is not None
    assert 10 < reached < 200
    assert final(0.0) is None


@pytest.mark.parametrize(
    ("coming", "max_steps", "losses", "reached_at"),
    [
        ([0.5, 0.01, 0.001], 3, [0.5, 0.01], 1),  # reached means at most the target
        ([0.005], 1, [0.005], 0),
        ([0.5, 0.4, 0.3, 0.2], 3, [0.5, 0.4, 0.3], None),
        ([0.5, math.inf, 0.001], 3, [0.5, math.inf], None),
    ],
)
def test_it_stops_at_the_target_the_limit_or_a_loss_that_is_not_finite(
    coming: list[float], max_steps: int, losses: list[float], reached_at: int | None
) -> None:
    source = iter(coming)
    result = overfit_one_batch(lambda: next(source), max_steps)
    assert (result.losses, result.reached_at) == (losses, reached_at)


def test_nan_stops_it() -> None:
    result = overfit_one_batch(lambda: math.nan, 5)
    assert len(result.losses) == 1
    assert result.reached_at is None


def test_no_steps_are_refused() -> None:
    with pytest.raises(ValueError, match="max_steps is 0"):
        overfit_one_batch(lambda: 0.0, 0)


def test_disable_dropout_makes_training_mode_repeatable() -> None:
    model = nn.Sequential(
        nn.Conv1d(4, 4, 1),
        nn.Dropout1d(0.5),
        nn.AlphaDropout(0.5),
        nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Dropout(0.0)),
    ).train()
    inputs = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0))
    assert not torch.equal(model(inputs), model(inputs))
    assert disable_dropout(model) == 3
    assert torch.equal(model(inputs), model(inputs))
    assert model.training
    assert disable_dropout(model) == 0


def test_disable_dropout_reaches_into_recurrent_and_attention_layers() -> None:
    recurrent = nn.LSTM(4, 4, num_layers=2, dropout=0.5)
    attention = nn.TransformerEncoderLayer(4, 2, dim_feedforward=8, dropout=0.5)
    inputs = torch.randn(6, 2, 4, generator=torch.Generator().manual_seed(0))
    assert not torch.equal(recurrent(inputs)[0], recurrent(inputs)[0])
    assert not torch.equal(attention(inputs), attention(inputs))
    assert disable_dropout(recurrent) == 1
    assert disable_dropout(attention) == 4
    assert torch.equal(recurrent(inputs)[0], recurrent(inputs)[0])
    assert torch.equal(attention(inputs), attention(inputs))
